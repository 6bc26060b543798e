package live

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gdb/kv"
	"gdb/layout"
	"gdb/layout/parts"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// grown ingests the first of three parts of a history and appends the others. It returns what the
// store had at each snapshot.
func grown(t *testing.T, fs vfs.FS) (h *history, was []string) {
	t.Helper()
	for seed := uint64(0); h == nil || len(h.parts) != 3; seed++ {
		h = newHistory(rand.New(rand.NewPCG(seed, 3)))
	}
	h.ingest(t, fs, h.parts[0], "s")
	was = append(was, contentsAt(t, fs, ""))
	for _, p := range h.parts[1:] {
		if _, err := Append(t.Context(), fs, "s", h.options(t, fs, p, false)); err != nil {
			t.Fatal(err)
		}
		was = append(was, contentsAt(t, fs, ""))
	}
	return h, was
}

// contentsAt returns what the store has at a snapshot.
func contentsAt(t *testing.T, fs vfs.FS, at string) string {
	t.Helper()
	s, err := layout.OpenAt(t.Context(), fs, "s", at)
	if err != nil {
		t.Fatalf("at %q: %v", at, err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	return contentsOf(t, s, rand.New(rand.NewPCG(1, 1)))
}

func compact(t *testing.T, fs vfs.FS) {
	t.Helper()
	if _, err := Compact(t.Context(), fs, "s", parts.OrderOptions{Memory: 1 << 30}); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, fs vfs.FS, at string) *layout.Store {
	t.Helper()
	s, err := layout.OpenAt(t.Context(), fs, "s", at)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// sweep removes what is not needed, and returns what is left in a folder of the store.
func sweep(t *testing.T, fs vfs.FS, folder string) []string {
	t.Helper()
	if err := Sweep(t.Context(), fs, "s"); err != nil {
		t.Fatal(err)
	}
	left, err := fs.List(folder)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(left)
	return left
}

// TestSnapshots: each snapshot reads as the store was, by its number, its name and its time, and
// after a compaction those that names or runs keep. The others are gone, and so are their files.
func TestSnapshots(t *testing.T) {
	fs := vfs.NewMem()
	_, was := grown(t, fs)
	for i, want := range was {
		if got := contentsAt(t, fs, fmt.Sprint(i)); got != want {
			t.Errorf("snapshot %d:\n%s\nit was:\n%s", i, got, want)
		}
	}
	s := open(t, fs, "")
	if got := contentsAt(t, fs, s.Meta().Committed.Format("2006-01-02")); got != was[2] {
		t.Errorf("today: %s, want %s", got, was[2])
	}
	c := s.Catalog()
	if err := errors.Join(s.Close(), c.Hold(t.Context(), "first", 0),
		c.PutRun(t.Context(), kv.RunMeta{Name: "r1", Snapshot: 1})); err != nil {
		t.Fatal(err)
	}
	compact(t, fs) // makes snapshot 3, which is 2 again
	for at, want := range map[string]string{"0": was[0], "first": was[0], "1": was[1], "2": was[2],
		"3": was[2], layout.Latest: was[2]} {
		if got := contentsAt(t, fs, at); got != want {
			t.Errorf("at %s: %s, want %s", at, got, want)
		}
	}
	if err := c.DeleteRun(t.Context(), "r1"); err != nil {
		t.Fatal(err)
	}
	if left := sweep(t, fs, "s/levels"); !slices.Equal(left, []string{"3"}) {
		t.Errorf("levels %v are left", left)
	}
	for _, at := range []string{"1", "4", "last", "2001-01-01"} {
		if _, err := layout.OpenAt(t.Context(), fs, "s", at); !errors.Is(err, kv.ErrNoSnapshot) {
			t.Errorf("at %s: error %v", at, err)
		}
	}
	if got := contentsAt(t, fs, "first"); got != was[0] {
		t.Errorf("first: %s, want %s", got, was[0])
	}
	if err := c.Unhold(t.Context(), "first"); err != nil {
		t.Fatal(err)
	}
	if left := sweep(t, fs, "s"); !slices.Equal(left, []string{"catalog", "levels", "tmp"}) {
		t.Errorf("%v are left", left)
	}
	if found, err := c.Verify(t.Context()); err != nil || len(found) > 0 {
		t.Errorf("verify: %v, %v", found, err)
	}
}

// TestReaderKeepsFiles: who has the store open reads the same through compactions, and its files go
// when it is done.
func TestReaderKeepsFiles(t *testing.T) {
	fs := vfs.NewMem()
	h, was := grown(t, fs)
	s, last := open(t, fs, "1"), open(t, fs, "")
	compact(t, fs) // of what last reads
	const compactions = 50
	for i := range compactions {
		name := fmt.Sprint(70000 + i) // of any kind of ids
		p := part{nodes: "id,a,b,kind,part\n" + name + ",1,2,x,train\n",
			edges: fmt.Sprintf("src,dst\n%s,%s", name, h.name(0))}
		if strings.HasPrefix(h.parts[0].edges, "src,dst,weight") {
			p.edges = strings.ReplaceAll(p.edges, "dst\n", "dst,weight\n") + ",1"
		}
		if _, err := Append(t.Context(), fs, "s", h.options(t, fs, p, false)); err != nil {
			t.Fatal(err)
		}
		compact(t, fs)
	}
	if got := contentsOf(t, s, rand.New(rand.NewPCG(1, 1))); got != was[1] {
		t.Errorf("after compactions:\n%s\nit was:\n%s", got, was[1])
	}
	if got := contentsOf(t, last, rand.New(rand.NewPCG(1, 1))); got != was[2] {
		t.Errorf("after compactions:\n%s\nit was:\n%s", got, was[2])
	}
	left := sweep(t, fs, "s/levels")
	made := fmt.Sprint(2*compactions + 3)
	if !slices.Equal(left, []string{"1.commit", made, "2"}) { // what 2 added was written out
		t.Errorf("levels %v are left while 1 and 2 are read", left)
	}
	if err := errors.Join(s.Close(), last.Close()); err != nil {
		t.Fatal(err)
	}
	if left = sweep(t, fs, "s/levels"); !slices.Equal(left, []string{made}) {
		t.Errorf("levels %v are left", left)
	}
}

// TestSplitsOfSnapshots: splits that are replaced are a commit, and earlier snapshots have theirs.
func TestSplitsOfSnapshots(t *testing.T) {
	fs := vfs.NewMem()
	_, was := grown(t, fs)
	s := open(t, fs, "")
	train, err := s.Split(t.Context(), "train")
	if err != nil {
		t.Fatal(err)
	}
	fewer := train.Clone()
	fewer.Remove(train.Minimum())
	for i := range was {
		if err := s.Catalog().Hold(t.Context(), fmt.Sprint("at", i), uint64(i)); err != nil {
			t.Fatal(err)
		}
	}
	sets := map[string]*roaring.Bitmap{"train": fewer}
	if err := PutSplits(t.Context(), fs, "s", sets); err != nil {
		t.Fatal(err)
	}
	for i, want := range was {
		if got := contentsAt(t, fs, fmt.Sprint(i)); got != want {
			t.Errorf("snapshot %d:\n%s\nit was:\n%s", i, got, want)
		}
	}
	if got, err := s.Split(t.Context(), "train"); err != nil || !got.Equals(train) {
		t.Errorf("train of who had the store open is %v, %v; want %v", got, err, train)
	}
	if got, err := open(t, fs, "3").Split(t.Context(), "train"); err != nil || !got.Equals(fewer) {
		t.Errorf("train is now %v, %v; want %v", got, err, fewer)
	}
	if found, err := s.Catalog().Verify(t.Context()); err != nil || len(found) > 0 {
		t.Errorf("verify: %v, %v", found, err)
	}
	for i := range was {
		if err := s.Catalog().Unhold(t.Context(), fmt.Sprint("at", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	compact(t, fs)
	s = open(t, fs, "")
	if found, err := s.Catalog().Verify(t.Context()); err != nil || len(found) > 0 {
		t.Errorf("verify when the former splits are forgotten: %v, %v", found, err)
	}
	if set, err := s.Catalog().Set(t.Context(), "train"); !errors.Is(err, kv.ErrNotFound) {
		t.Errorf("the set of the former split is still there: %v, %v", set, err)
	}
}

// TestTwoWriters: the second is told that another writes.
func TestTwoWriters(t *testing.T) {
	fs := vfs.NewMem()
	h, _ := grown(t, fs)
	w, err := begin(t.Context(), fs, "s")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Append(t.Context(), fs, "s", h.options(t, fs, h.parts[1], false)); !errors.Is(err,
		ErrBusy) {
		t.Errorf("append: %v", err)
	}
	opt := parts.OrderOptions{Memory: 1 << 30}
	if _, err := Compact(t.Context(), fs, "s", opt); !errors.Is(err, ErrBusy) {
		t.Errorf("compact: %v", err)
	}
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	compact(t, fs)
}

// TestSnapshotsOfSmallCommits: snapshots of small commits are read by their files, which stay for
// those that are kept, also when the commits were written out as a level.
func TestSnapshotsOfSmallCommits(t *testing.T) {
	fs := vfs.NewMem()
	h, was := grown(t, fs)
	head := "src,dst\n"
	weight := ""
	if strings.HasPrefix(h.parts[0].edges, "src,dst,weight") {
		head, weight = "src,dst,weight\n", ",5"
	}
	for i := range 4 {
		p := part{nodes: "id", edges: head + h.name(i) + "," + h.name(17-3*i) + weight}
		if _, err := Append(t.Context(), fs, "s", h.options(t, fs, p, false)); err != nil {
			t.Fatal(err)
		}
		was = append(was, contentsAt(t, fs, ""))
	}
	s, reader := open(t, fs, ""), open(t, fs, "5")
	if n := len(s.HeldCommits()); n != 6 {
		t.Fatalf("%d small commits", n)
	}
	for i, want := range was {
		if got := contentsAt(t, fs, fmt.Sprint(i)); got != want {
			t.Errorf("snapshot %d:\n%s\nit was:\n%s", i, got, want)
		}
	}
	if err := errors.Join(s.Catalog().Hold(t.Context(), "four", 4), s.Close()); err != nil {
		t.Fatal(err)
	}
	compact(t, fs)
	for at, i := range map[string]int{"four": 4, "5": 5, "6": 6, "7": 6} {
		if got := contentsAt(t, fs, at); got != was[i] {
			t.Errorf("at %s:\n%s\nit was:\n%s", at, got, was[i])
		}
	}
	if got := contentsOf(t, reader, rand.New(rand.NewPCG(1, 1))); got != was[5] {
		t.Errorf("who reads 5 has\n%s\nit was:\n%s", got, was[5])
	}
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
	left := sweep(t, fs, "s/levels")
	want := []string{"1.commit", "2.commit", "3.commit", "4.commit", "7"}
	if !slices.Equal(left, want) {
		t.Errorf("%v are left, want %v", left, want)
	}
	if _, err := layout.OpenAt(t.Context(), fs, "s", "5"); !errors.Is(err, kv.ErrNoSnapshot) {
		t.Errorf("at 5: error %v", err)
	}
}
