package catalog

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"gdb/internal/rng"
	"gdb/kv"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"pgregory.net/rapid"
)

// testMeta returns metadata in which every kind of field is set.
func testMeta() *kv.Meta {
	return &kv.Meta{
		Format: kv.FormatVersion, UUID: kv.UUID{1, 2, 3, 15: 255}, CreatedBy: "gdb 0.1.0",
		Created: time.Date(2026, 3, 4, 5, 6, 7, 890, time.UTC),
		Nodes:   1000, Edges: 1 << 40, Undirected: true, Directions: []string{"in", "out"},
		BlockBytes: 4096,
		EdgeTypes:  []string{"cites", "écrit", "raw\xff\xfe", "\U0010FF42"},
		Weighted:   true, Timestamped: true,
		IDs: kv.IDsMeta{Kind: kv.IDsString, HashSeed: math.MaxUint64},
		Features: []kv.RowsMeta{{Name: "x", Path: "features/x.rows", DType: "f16", Dim: 7,
			RowBytes: 14, PageBytes: 4096, SumBytes: 512}},
		Labels: &kv.LabelsMeta{Kind: "class", Rows: kv.RowsMeta{Name: "labels",
			Path: "labels/labels.rows", DType: "i32", Dim: 1, RowBytes: 4, PageBytes: 4096,
			SumBytes: 512},
			Classes:     []string{"a", "caf\xe9", "caf\xe8"},
			ClassCounts: []uint64{1, 2, 3}, Labeled: 6},
		Splits:      []kv.SplitMeta{{Name: "train", Count: 3}, {Name: "val@0"}},
		SplitColumn: -1, Partitioner: "none", Partitions: []kv.Partition{{Nodes: 1000,
			Edges: 1 << 40}},
		Stats: kv.GraphStats{InHist: []uint64{1, 2}, InMax: 9, TypeCounts: []uint64{5}},
		Source: kv.SourceMeta{Format: "csv", Paths: []string{"a.csv"},
			Args: []string{"--undirected"}},
		Files: []kv.FileMeta{{Path: "topology/in.csc", Kind: "CSCT", Size: 8192, Checksum: 7}},
	}
}

func testSets() map[string]*roaring.Bitmap {
	return map[string]*roaring.Bitmap{
		"train": roaring.BitmapOf(1, 5, 1<<32-1),
		"val@0": roaring.New(),
	}
}

// testCatalog returns a catalog on fs that does not wait long for a lock.
func testCatalog(fs vfs.FS) *Catalog {
	c := New(fs, "store/catalog")
	c.patience = 50 * time.Millisecond
	return c
}

func mustCreate(t *testing.T, fs vfs.FS) *Catalog {
	t.Helper()
	c := testCatalog(fs)
	if err := c.Create(t.Context(), testMeta(), testSets()); err != nil {
		t.Fatal(err)
	}
	return c
}

func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestCatalogRoundTrip(t *testing.T) {
	disk := New(vfs.Default, t.TempDir()+"/catalog")
	for name, c := range map[string]*Catalog{"memory": testCatalog(vfs.NewMem()), "disk": disk} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			if err := c.Create(ctx, testMeta(), testSets()); err != nil {
				t.Fatal(err)
			}
			if got := must(c.Meta(ctx))(t); !reflect.DeepEqual(got, testMeta()) {
				t.Errorf("metadata is\n%+v, want\n%+v", got, testMeta())
			}
			if got := must(c.Sets(ctx))(t); !reflect.DeepEqual(got, []string{"train", "val@0"}) {
				t.Errorf("sets %q", got)
			}
			for name, want := range testSets() {
				if got := must(c.Set(ctx, name))(t); !got.Equals(want) {
					t.Errorf("set %s is %v, want %v", name, got, want)
				}
			}
			if got := must(c.Verify(ctx))(t); len(got) > 0 {
				t.Errorf("findings in a whole catalog: %v", got)
			}
		})
	}
}

func TestCatalogRuns(t *testing.T) {
	ctx, c := t.Context(), mustCreate(t, vfs.NewMem())
	if runs := must(c.Runs(ctx))(t); len(runs) != 0 {
		t.Errorf("a new catalog has runs: %v", runs)
	}
	want := []kv.RunMeta{
		{Name: "r0001", Status: "done", Epochs: 3, Best: 0.5, Test: math.Inf(-1),
			Metric: "accuracy", Created: time.Unix(5, 6).UTC(), Updated: time.Unix(7, 8).UTC()},
		{Name: "r\xff", Best: math.NaN()},
	}
	for _, r := range []kv.RunMeta{want[1], {Name: "r0001", Status: "running"}, want[0]} {
		if err := c.PutRun(ctx, r); err != nil {
			t.Fatal(err)
		}
	}
	if got := must(c.Runs(ctx))(t); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("runs\n%v, want\n%v", got, want)
	}
	if err := c.PutRun(ctx, kv.RunMeta{}); err == nil {
		t.Error("a run without a name was taken")
	}
}

func TestCatalogProfiles(t *testing.T) {
	ctx, c := t.Context(), mustCreate(t, vfs.NewMem())
	if _, err := c.Profile(ctx, "disk"); !errors.Is(err, kv.ErrNotFound) {
		t.Errorf("missing profile: %v, want ErrNotFound", err)
	}
	for _, text := range []string{`{"iops": 1}`, `{"iops": 2}`} {
		if err := c.PutProfile(ctx, "disk", []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got := must(c.Profile(ctx, "disk"))(t); string(got) != text {
			t.Errorf("profile %s, want %s", got, text)
		}
	}
	if err := c.PutProfile(ctx, "disk", []byte("{")); err == nil {
		t.Error("a profile that is not JSON was taken")
	}
}

func TestCatalogMissing(t *testing.T) {
	dir := t.TempDir()
	if err := vfs.Default.MkdirAll(dir+"/empty", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"empty", "none"} {
		c, ctx := New(vfs.Default, dir+"/"+name), t.Context()
		_, meta := c.Meta(ctx)
		_, set := c.Set(ctx, "train")
		_, sets := c.Sets(ctx)
		_, runs := c.Runs(ctx)
		_, profile := c.Profile(ctx, "p")
		_, verify := c.Verify(ctx)
		for i, err := range []error{meta, set, sets, runs, profile, verify,
			c.PutRun(ctx, kv.RunMeta{Name: "r"}), c.PutProfile(ctx, "p", []byte("1"))} {
			if !errors.Is(err, kv.ErrNoStore) {
				t.Errorf("%s, call %d: %v, want ErrNoStore", name, i, err)
			}
		}
	}
	if names := must(vfs.Default.List(dir))(t); len(names) != 1 {
		t.Errorf("opening what is no store left %q", names)
	}
	if names := must(vfs.Default.List(dir + "/empty"))(t); len(names) != 0 {
		t.Errorf("opening an empty directory left %q", names)
	}
}

func TestCatalogCreateTwice(t *testing.T) {
	c := mustCreate(t, vfs.NewMem())
	if err := c.Create(t.Context(), testMeta(), nil); !errors.Is(err, kv.ErrExists) {
		t.Errorf("second Create: %v, want ErrExists", err)
	}
	if got := must(c.Sets(t.Context()))(t); len(got) != 2 {
		t.Errorf("the first catalog's sets are now %q", got)
	}
}

func TestCatalogFormat(t *testing.T) {
	m := testMeta()
	m.Format = kv.TypedVersion + 1
	c := testCatalog(vfs.NewMem())
	if err := c.Create(t.Context(), m, nil); !errors.Is(err, kv.ErrFormat) {
		t.Errorf("create with another format: %v, want ErrFormat", err)
	}
	c = mustCreate(t, vfs.NewMem())
	err := c.update(t.Context(), func(w writer) error {
		return w.put([]byte(keyMeta), []byte(`{"Format": 99, "Nodes": "of another type"}`))
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Meta(t.Context()); !errors.Is(err, kv.ErrFormat) || errors.Is(err,
		kv.ErrDamaged) {
		t.Errorf("open a store of format 99: %v, want ErrFormat", err)
	}
	err = c.update(t.Context(), func(w writer) error {
		return w.put([]byte(keyMeta), []byte(`{"Format": 1, "Manifest": 2, "Files": "levels"}`))
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Meta(t.Context()); !errors.Is(err, kv.ErrFormat) {
		t.Errorf("open a store whose manifest is of version 2: %v, want ErrFormat", err)
	}
}

func TestCatalogBusy(t *testing.T) {
	for name, fs := range map[string]vfs.FS{"memory": vfs.NewMem(), "disk": vfs.Default} {
		t.Run(name, func(t *testing.T) {
			c := New(fs, t.TempDir()+"/catalog")
			c.patience = 20 * time.Millisecond
			if err := c.Create(t.Context(), testMeta(), nil); err != nil {
				t.Fatal(err)
			}
			other := New(fs, c.dir) // of another process
			l, err := other.lock(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Meta(t.Context()); !errors.Is(err, kv.ErrBusy) {
				t.Errorf("Meta of a locked catalog: %v, want ErrBusy", err)
			}
			if err := c.PutRun(t.Context(), kv.RunMeta{Name: "r"}); !errors.Is(err, kv.ErrBusy) {
				t.Errorf("PutRun of a locked catalog: %v, want ErrBusy", err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := c.Meta(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("Meta with a cancelled context: %v", err)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Meta(t.Context()); err != nil {
				t.Errorf("Meta after the lock was given back: %v", err)
			}
		})
	}
}

// TestCatalogWaits: a transaction waits for one of the same catalog, however long, where it waits
// for other processes a while.
func TestCatalogWaits(t *testing.T) {
	c := mustCreate(t, vfs.NewMem())
	c.patience = time.Millisecond
	l, err := c.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- c.PutRun(t.Context(), kv.RunMeta{Name: "r"}) }()
	select {
	case err := <-done:
		t.Errorf("a transaction did not wait: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestCatalogConcurrent has readers and writers wait for each other.
func TestCatalogConcurrent(t *testing.T) {
	c := mustCreate(t, vfs.NewMem())
	c.patience = lockWait
	const writers, each = 4, 5
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			for k := range each {
				m := kv.RunMeta{Name: fmt.Sprint(i), Epochs: k}
				if err := c.PutRun(t.Context(), m); err != nil {
					t.Error(err)
				}
				if _, err := c.Meta(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	runs := must(c.Runs(t.Context()))(t)
	if len(runs) != writers {
		t.Fatalf("%d runs, want %d", len(runs), writers)
	}
	for _, r := range runs {
		if r.Epochs != each-1 {
			t.Errorf("run %s is at epoch %d, want %d", r.Name, r.Epochs, each-1)
		}
	}
}

// TestCatalogStaysSmall checks that transactions do not pile up files, that a read leaves none,
// and that large sets are not rewritten.
func TestCatalogStaysSmall(t *testing.T) {
	fs := vfs.NewMem()
	c, ctx := testCatalog(fs), t.Context()
	large := roaring.New()
	for i := range uint32(6 << 20) {
		if rng.Sub(1, uint64(i))&1 == 0 {
			large.Add(i)
		}
	}
	sets := testSets()
	sets["large"] = large
	if err := c.Create(ctx, testMeta(), sets); err != nil {
		t.Fatal(err)
	}
	before := must(c.readSeal())(t)
	for i := range 40 {
		if err := c.PutRun(ctx, kv.RunMeta{Name: fmt.Sprintf("r%04d", i%3),
			Epochs: i}); err != nil {
			t.Fatal(err)
		}
		s := must(c.readSeal())(t)
		if n := len(s.files); n > 2*tidyEvery+6 {
			t.Fatalf("after %d transactions the catalog has %d files: %v", i, n, s.files)
		}
		names := must(fs.List(c.dir))(t)
		if len(names) != len(s.files)+2 { // the seal and the lock
			t.Fatalf("directory has %q, the seal lists %v", names, s.files)
		}
	}
	after, kept := must(c.readSeal())(t), false
	for _, f := range before.files {
		if _, ok := after.find(f.name); ok && f.size > 500_000 {
			kept = true
		}
	}
	if !kept {
		t.Errorf("the table of the large set was rewritten: %v, then %v", before.files, after.files)
	}
	if got := must(c.Set(ctx, "large"))(t); !got.Equals(large) {
		t.Error("the large set has changed")
	}
	if s := must(c.readSeal())(t); s.generation != after.generation {
		t.Errorf("reading moved the seal from generation %d to %d", after.generation, s.generation)
	}
}

// TestCatalogReadOnly reads a catalog on a file system that cannot be written to.
func TestCatalogReadOnly(t *testing.T) {
	mem := vfs.NewMem()
	mustCreate(t, mem)
	for _, errno := range []error{syscall.EROFS, syscall.EACCES} {
		c := testCatalog(errorfs.Wrap(mem, errorfs.InjectorFunc(func(o errorfs.Op) error {
			switch o.Kind {
			case errorfs.OpFileClose:
			case errorfs.OpLock, errorfs.OpCreate, errorfs.OpRemove, errorfs.OpMkdirAll:
				return &os.PathError{Op: "open", Path: o.Path, Err: errno}
			}
			return nil
		})))
		checkWhole(t, c)
		if err := c.PutRun(t.Context(), kv.RunMeta{Name: "r"}); !errors.Is(err, errno) {
			t.Errorf("a transaction on a read-only file system: %v, want %v", err, errno)
		}
	}
}

// TestCatalogUnlocked changes the catalog under a reader that could not lock it: it sees one state
// or the other, never a mix.
func TestCatalogUnlocked(t *testing.T) {
	mem := vfs.NewMem()
	writer := mustCreate(t, mem)
	var left atomic.Int32
	c := testCatalog(errorfs.Wrap(mem, errorfs.InjectorFunc(func(o errorfs.Op) error {
		if o.Kind == errorfs.OpLock {
			return syscall.EROFS
		}
		if o.Kind == errorfs.OpOpen && strings.Contains(o.Path, "MANIFEST") && left.Add(-1) >= 0 {
			return writer.PutRun(t.Context(), kv.RunMeta{Name: "r", Epochs: int(left.Load())})
		}
		return nil
	})))
	for changes := range int32(4) {
		left.Store(changes)
		runs := must(c.Runs(t.Context()))(t)
		if changes > 0 && (len(runs) != 1 || runs[0].Epochs != 0) {
			t.Errorf("after %d changes the runs are %v", changes, runs)
		}
	}
}

// TestCatalogNames: a directory has one lock, whatever name it is given.
func TestCatalogNames(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	a, b := New(vfs.Default, "catalog"), New(vfs.Default, dir+"/./catalog")
	b.patience = 20 * time.Millisecond
	if err := a.Create(t.Context(), testMeta(), nil); err != nil {
		t.Fatal(err)
	}
	l := must(a.lock(t.Context()))(t)
	if _, err := b.Meta(t.Context()); !errors.Is(err, kv.ErrBusy) {
		t.Errorf("the same directory by another name: %v, want ErrBusy", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestCatalogMatchesMaps compares drawn transactions with two Go maps.
func TestCatalogMatchesMaps(t *testing.T) {
	names := rapid.StringMatching(`[a-c@/\xff]{1,3}`)
	rapid.Check(t, func(t *rapid.T) {
		ctx, c := context.Background(), testCatalog(vfs.NewMem())
		if err := c.Create(ctx, testMeta(), nil); err != nil {
			t.Fatal(err)
		}
		runs, profiles := map[string]int{}, map[string]string{}
		for i := range rapid.IntRange(0, 2*tidyEvery).Draw(t, "transactions") {
			name := names.Draw(t, "name")
			if rapid.Bool().Draw(t, "run") {
				runs[name] = i
				if err := c.PutRun(ctx, kv.RunMeta{Name: name, Epochs: i}); err != nil {
					t.Fatal(err)
				}
			} else {
				profiles[name] = fmt.Sprint(i)
				if err := c.PutProfile(ctx, name, []byte(profiles[name])); err != nil {
					t.Fatal(err)
				}
			}
		}
		got, err := c.Runs(ctx)
		if err != nil || len(got) != len(runs) {
			t.Fatalf("%d runs, %v, want %d", len(got), err, len(runs))
		}
		for _, r := range got {
			if epochs, ok := runs[r.Name]; !ok || epochs != r.Epochs {
				t.Fatalf("run %q has %d epochs, want %d", r.Name, r.Epochs, epochs)
			}
		}
		for name, want := range profiles {
			if got, err := c.Profile(ctx, name); err != nil || string(got) != want {
				t.Fatalf("profile %q is %s, %v, want %s", name, got, err, want)
			}
		}
	})
}

// Sets lists the names of the stored sets.
func (c *Catalog) Sets(ctx context.Context) ([]string, error) {
	var names []string
	err := c.view(ctx, func(r reader) error {
		names = nil
		return r.each(keySet, func(name string, _ []byte) error {
			names = append(names, name)
			return nil
		})
	})
	return names, err
}
