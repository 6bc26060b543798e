package live

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"gdb/kv"
	"gdb/layout"
	"gdb/layout/ingest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestMergeFrom: the levels that are merged begin with the first that is small beside what follows
// it, and there are never more than levelsMost.
func TestMergeFrom(t *testing.T) {
	for _, of := range []struct {
		bytes []int64
		want  int
	}{
		{[]int64{1, 1, 1}, -1},
		{slices.Repeat([]int64{1}, 13), 0},
		{append([]int64{9}, slices.Repeat([]int64{1}, 12)...), 1},
		{append([]int64{3}, slices.Repeat([]int64{1}, 12)...), 0},
		{[]int64{1 << 24, 1 << 22, 1 << 20, 1 << 18, 1 << 16, 1 << 14, 1 << 12, 1 << 10, 1 << 8,
			1 << 6, 1 << 4, 1 << 2, 1}, 11},
	} {
		var levels []*layout.Level
		for _, n := range of.bytes {
			levels = append(levels, &layout.Level{Of: kv.LevelMeta{Bytes: n}})
		}
		if got := mergeFrom(levels); got != of.want {
			t.Errorf("%d: merged from %d, want %d", of.bytes, got, of.want)
		}
	}
}

// TestMerge: a store that was appended to often has few levels, each edge was written few times,
// and earlier snapshots that are kept read what they had.
func TestMerge(t *testing.T) {
	fewLevels(t, 3)
	fs, h := vfs.NewMem(), &history{}
	nodes := func(from, to int) string {
		text := "id,a,b,kind,part\n"
		for v := from; v < to; v++ {
			text += fmt.Sprintf("n%d,%d,1,%s,%s\n", v, v, []string{"x", "y"}[v%2],
				[]string{"train", "val"}[v%2])
		}
		return text
	}
	edges := func(from, to int) string {
		text := ""
		for v := max(from, 1); v < to; v++ {
			text += fmt.Sprintf("\nn%d,n%d\nn%d,n%d", v, v/2, v/3, v)
		}
		return text
	}
	r := rand.New(rand.NewPCG(1, 1))
	h.ingest(t, fs, part{"src,dst" + edges(0, 10), nodes(0, 10)}, "s")
	kept := map[int]string{}
	for i := range 12 {
		from := 10 + 4*i
		p := part{"src,dst" + edges(from, from+4), nodes(from, from+4)}
		if _, err := Append(t.Context(), fs, "s", h.options(t, fs, p, false)); err != nil {
			t.Fatal(err)
		}
		s, err := layout.OpenLive(t.Context(), fs, "s")
		if err != nil {
			t.Fatal(err)
		}
		if n := len(s.Levels()); n > 3 {
			t.Errorf("%d levels after commit %d", n, i+1)
		}
		if i%4 == 1 {
			at := int(s.Meta().Snapshot)
			kept[at] = contents(t, fs, "s", r)
			if err := s.Catalog().Hold(t.Context(), fmt.Sprint("at ", at), uint64(at)); err != nil {
				t.Fatal(err)
			}
		}
	}
	h.ingest(t, fs, part{"src,dst" + edges(0, 58), nodes(0, 58)}, "once")
	if got, want := contents(t, fs, "s", r), contents(t, fs, "once", r); got != want {
		t.Errorf("merged:\n%s\nat once:\n%s", got, want)
	}
	for at, want := range kept {
		s, err := layout.OpenAt(t.Context(), fs, "s", fmt.Sprint(at))
		if err != nil {
			t.Fatal(err)
		}
		if got := contentsOf(t, s, r); got != want {
			t.Errorf("snapshot %d:\n%s\nwas:\n%s", at, got, want)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestMergeKeepsHeld holds that a commit which changes nothing loses no small commit, where levels
// that are too many wait to be merged.
func TestMergeKeepsHeld(t *testing.T) {
	h := &trial{T: t, fs: vfs.NewMem()}
	h.write("e.csv", "src,dst\na,b\nb,c\nc,d\n")
	opt := ingest.Options{Out: "s"}
	opt.Edges, opt.Memory = "e.csv", 1<<30
	if _, err := ingest.Run(t.Context(), h.fs, opt); err != nil {
		t.Fatal(err)
	}
	add := func(edges string) {
		h.write("e.csv", "src,dst\n"+edges)
		opt.Out = ""
		if _, err := Append(t.Context(), h.fs, "s", opt); err != nil {
			t.Fatal(err)
		}
	}
	large := largeAll()
	for _, edge := range []string{"a,c\n", "a,d\n", "d,a\n"} {
		add(edge)
	}
	large()
	add("d,b\n")
	fewLevels(t, 1)
	h.write("e.csv", "src,dst\nb,a\n")
	done, err := Delete(t.Context(), h.fs, "s", Deletion{Options: opt})
	if err != nil || done.LostEdges != 1 || done.Edges != 0 {
		t.Fatalf("%+v, %v", done, err)
	}
	s, err := layout.OpenLive(t.Context(), h.fs, "s")
	if err != nil || s.Meta().Edges != 7 || len(s.HeldCommits()) != 1 {
		t.Fatalf("%d edges, %d small commits, %v; want 7 and 1", s.Meta().Edges,
			len(s.HeldCommits()), err)
	}
	add("d,c\n")
	large = largeAll()
	add("c,a\n") // which writes small commits out, and merges
	large()
	s, err = layout.OpenLive(t.Context(), h.fs, "s")
	if err != nil || s.Meta().Edges != 9 || len(s.Levels()) != 1 {
		t.Fatalf("%d edges, %d levels, %v; want 9 and 1", s.Meta().Edges, len(s.Levels()), err)
	}
	sound(t, h.fs, "s")
}

// TestMergeKeys: entries of two streams are merged in order until one has no more.
func TestMergeKeys(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	sorted := func() []uint64 {
		keys := make([]uint64, 1+r.IntN(1<<r.IntN(15)))
		first, most := r.Uint64N(1<<r.IntN(14)), uint64(1)<<(1+r.IntN(20))
		for i := range keys {
			keys[i] = first + r.Uint64N(most)
		}
		slices.Sort(keys)
		return keys
	}
	for range 500 {
		x, y := sorted(), sorted()
		a, b := &entryStream{run: entries{keys: x}}, &entryStream{run: entries{keys: y}}
		to := entries{keys: []uint64{7}}
		mergeKeys(&to, a, b)
		want := slices.Concat(x[:a.i], y[:b.i])
		slices.Sort(want)
		if !slices.Equal(to.keys[1:], want) {
			t.Fatalf("%d and %d keys: %d, want %d", len(x), len(y), to.keys[1:], want)
		}
		last := want[len(want)-1]
		ended := a.i == min(len(x), streamEntries) || b.i == min(len(y), streamEntries)
		if !ended || a.i < len(x) && x[a.i] < last || b.i < len(y) && y[b.i] < last {
			t.Fatalf("%d of %d and %d of %d keys are merged, to %d", a.i, len(x), b.i, len(y),
				last)
		}
	}
}
