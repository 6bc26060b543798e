package partition

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	"gdb/blockdev"
	"gdb/internal/files"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/edgefile"
	"gdb/layout/layouttest"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"pgregory.net/rapid"
)

// mustStore writes a store that is nothing but train edges.
func mustStore(t testing.TB, fs vfs.FS, nodes, edges, types int) *layout.Store {
	t.Helper()
	m := &kv.Meta{UUID: kv.UUID{4, 5}, Nodes: uint64(nodes), EdgeTypes: make([]string, types),
		EdgeSplits: []kv.EdgeSplitMeta{{Name: "train", Count: uint64(edges)}}}
	if err := fs.MkdirAll("s/edges", 0o755); err != nil {
		t.Fatal(err)
	}
	path := edgefile.Path("train")
	f, err := layout.CreateFile(fs, "s/"+path)
	if err != nil {
		t.Fatal(err)
	}
	w, err := edgefile.NewWriter(f, edgefile.SpecOf(m, edgefile.Kind("train")), nil)
	r := rand.New(rand.NewPCG(uint64(edges), 1))
	for range edges {
		if err == nil {
			err = w.Add(uint32(r.IntN(nodes)), uint32(r.IntN(nodes)), uint16(r.IntN(max(types, 1))))
		}
	}
	if err == nil {
		err = w.Finish()
	}
	if err != nil {
		t.Fatal(err)
	}
	meta, err := f.Finish(path, edgefile.Kind("train"))
	if err != nil {
		t.Fatal(err)
	}
	m.Files = []kv.FileMeta{meta}
	return layout.NewStore(fs, "s", m)
}

// triples are edges in a form that sorts.
func triples(e edgefile.Edges) (out [][3]uint32) {
	for i := range e.Src {
		rel := uint32(0)
		if e.Rel != nil {
			rel = uint32(e.Rel[i])
		}
		out = append(out, [3]uint32{e.Dst[i], e.Src[i], rel})
	}
	return out
}

func compare(a, b [3]uint32) int { return slices.Compare(a[:], b[:]) }

// mustOpen opens buckets and says whether they were made.
func mustOpen(t testing.TB, s *layout.Store, opt BucketOptions) (b *Buckets, made bool) {
	t.Helper()
	b, note, err := OpenBuckets(t.Context(), s, device, opt)
	if err != nil {
		t.Fatal(err)
	}
	return b, note != ""
}

var device = mustDevice()

// TestBucketPlace: the order is a bijection, and pairs stand beside each other.
func TestBucketPlace(t *testing.T) {
	for p := 1; p < 12; p++ {
		seen := make([]bool, p*p)
		for i := range p {
			for j := range p {
				at := place(i, j, p)
				if at < 0 || at >= p*p || seen[at] {
					t.Fatalf("bucket %d,%d of %d is at %d", i, j, p, at)
				}
				seen[at] = true
				if i < j && place(j, i, p) != at+1 {
					t.Fatalf("bucket %d,%d of %d is apart from its reverse", i, j, p)
				}
			}
		}
	}
}

// TestBuckets compares all buckets with those of edges dealt out in memory, whatever the memory
// that they were sorted in.
func TestBuckets(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		nodes := rapid.IntRange(1, 300).Draw(rt, "nodes")
		edges := rapid.IntRange(0, 4000).Draw(rt, "edges")
		s := mustStore(t, vfs.NewMem(), nodes, edges, rapid.IntRange(0, 3).Draw(rt, "types"))
		opt := BucketOptions{Budget: mem.NewBudget(64 << 20), Partition: Spec{
			Parts:  rapid.IntRange(1, min(nodes, 9)).Draw(rt, "parts"),
			Random: rapid.Bool().Draw(rt, "random"), Seed: 7}}
		b, _ := mustOpen(t, s, opt)
		all, err := readEdges(t.Context(), s, device, "train")
		if err != nil {
			rt.Fatal(err)
		}
		m := b.Map()
		want := map[Bucket][][3]uint32{}
		for _, e := range triples(all) {
			from, _ := m.Place(layout.NodeID(e[1]))
			to, _ := m.Place(layout.NodeID(e[0]))
			want[bucket(from, to)] = append(want[bucket(from, to)], e)
		}
		var some []Bucket
		for i := range m.Parts() {
			for j := range m.Parts() {
				if n := b.Count(bucket(i, j)); n != uint64(len(want[bucket(i, j)])) {
					rt.Fatalf("bucket %d,%d has %d edges", i, j, n)
				}
				if rapid.Bool().Draw(rt, "read") {
					some = append(some, bucket(i, j))
				}
			}
		}
		got := map[Bucket][][3]uint32{}
		err = b.Read(t.Context(), some, func(k Bucket, e edgefile.Edges) error {
			got[k] = append(got[k], triples(e)...)
			return nil
		})
		if err != nil {
			rt.Fatal(err)
		}
		for _, k := range some {
			slices.SortFunc(want[k], compare)
			if !slices.Equal(got[k], want[k]) {
				rt.Fatalf("bucket %v has other edges", k)
			}
		}
		if reads := len(b.stretches(some)); reads > len(some) {
			rt.Fatalf("%d reads of %d buckets", reads, len(some))
		}
		if err := b.Close(); err != nil || opt.Budget.Used() != 0 {
			rt.Fatal(err, opt.Budget.Used())
		}
	})
}

// TestKept makes files once, and anew for other partitions, another graph, or damage.
func TestKept(t *testing.T) {
	fs := vfs.NewMem()
	s := mustStore(t, fs, 100, 2000, 3)
	opt := BucketOptions{Partition: Spec{Parts: 5, Random: true, Seed: 1}}
	open := func(what string, want bool) {
		t.Helper()
		b, made := mustOpen(t, s, opt)
		if made != want {
			t.Errorf("%s: made is %v", what, made)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
	open("first", true)
	open("again", false)
	opt.Partition.Seed = 2
	open("another seed", true)
	opt.Partition.Parts = 6
	open("more partitions", true)
	opt.Partition.Random = false
	open("ranges", true)
	opt.Partition.Seed = 3
	open("ranges with another seed", false)
	layouttest.Flip(t, fs, "s/"+indexPath, 4096+9, 1)
	open("a damaged index", true)
	layouttest.Flip(t, fs, "s/"+edgesPath, 10, 1)
	open("a damaged header", true)
	names, err := fs.List("s/prep")
	if err != nil || len(names) != 2 {
		t.Errorf("prep has %v, %v", names, err)
	}
	s2 := mustStore(t, fs, 100, 2001, 3)
	s.Meta().Files, s.Meta().EdgeSplits = s2.Meta().Files, s2.Meta().EdgeSplits
	open("another graph", true)
}

// TestWrongIndex: an index that is whole, as its checksum says, but is not of these edges, is made
// anew with them.
func TestWrongIndex(t *testing.T) {
	fs := vfs.NewMem()
	s := mustStore(t, fs, 100, 2000, 3)
	opt := BucketOptions{Partition: Spec{Parts: 5}}
	for _, c := range []struct {
		name, want string
		change     func(offsets []uint64)
	}{
		{"an edge more", "it has 2000 edges, the index 2001",
			func(offsets []uint64) { offsets[25]++ }},
		{"an edge less", "it has 2000 edges, the index 1999",
			func(offsets []uint64) { offsets[25]-- }},
		{"a bucket that ends before it begins", "the places of its buckets do not ascend",
			func(offsets []uint64) { offsets[9], offsets[10] = offsets[10], offsets[9] }},
	} {
		b, _ := mustOpen(t, s, opt)
		right := slices.Clone(b.offsets)
		if right[9] == right[10] || right[24] == right[25] {
			t.Fatal("buckets without edges")
		}
		wrong := &builder{s: s, m: b.m, offsets: slices.Clone(right)}
		c.change(wrong.offsets)
		if err := errors.Join(b.Close(), wrong.writeIndex()); err != nil {
			t.Fatal(err)
		}
		b, note, err := OpenBuckets(t.Context(), s, device, opt)
		if err != nil || !strings.Contains(note, c.want) || !slices.Equal(b.offsets, right) {
			t.Fatalf("%s: note %q, want %q (%v)", c.name, note, c.want, err)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOneBuilds: who comes while others build is told.
func TestOneBuilds(t *testing.T) {
	fs := vfs.NewMem()
	s := mustStore(t, fs, 100, 2000, 3)
	if err := fs.MkdirAll("s/prep", 0o755); err != nil {
		t.Fatal(err)
	}
	lock, err := files.Lock(fs, "s/"+lockPath)
	if err != nil {
		t.Fatal(err)
	}
	opt := BucketOptions{Partition: Spec{Parts: 5}}
	if _, _, err := OpenBuckets(t.Context(), s, device, opt); !errors.Is(err, ErrBuildingBuckets) {
		t.Error(err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := OpenBuckets(t.Context(), s, device, BucketOptions{}); err == nil {
		t.Error("no partitions at all were taken")
	}
	opt.Budget = mem.NewBudget(1 << 20)
	if _, _, err := OpenBuckets(t.Context(), s, device, opt); err == nil ||
		!strings.Contains(err.Error(), "sorting") {
		t.Errorf("sorted in a budget of 1 MiB: %v", err)
	}
}

// TestFaults fails each change of the file system once, with a full disk, and loses power before
// each: what is opened afterwards has all edges.
func TestFaults(t *testing.T) {
	opt := BucketOptions{Partition: Spec{Parts: 4, Random: true, Seed: 9}}
	total := 0
	for fail := 0; ; fail++ {
		fs := vfs.NewCrashableMem()
		s := mustStore(t, fs, 50, 700, 0)
		if err := vfsSync(fs, "s", "s/edges"); err != nil {
			t.Fatal(err)
		}
		ops := 0
		var clone *vfs.MemFS
		broken := errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
				return nil
			}
			if ops++; ops == fail+1 {
				clone = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50,
					RNG: rand.New(rand.NewPCG(uint64(fail), 1))})
				return syscall.ENOSPC
			}
			return nil
		}))
		b, _, err := OpenBuckets(t.Context(), layout.NewStore(broken, "s", s.Meta()), device, opt)
		if err == nil {
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			if clone == nil {
				break
			}
		} else if !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("failure %d: %v", fail, err)
		}
		total++
		for _, after := range []vfs.FS{fs, clone} {
			b, _ := mustOpen(t, layout.NewStore(after, "s", s.Meta()), opt)
			edges := 0
			add := func(_ Bucket, e edgefile.Edges) error {
				edges += e.Len()
				return nil
			}
			if err := b.Read(t.Context(), allBuckets(4), add); err != nil || edges != 700 {
				t.Fatalf("failure %d: %d edges, %v", fail, edges, err)
			}
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if total < 10 {
		t.Errorf("only %d changes failed", total)
	}
}

func allBuckets(p int) (all []Bucket) {
	for i := range p {
		for j := range p {
			all = append(all, bucket(i, j))
		}
	}
	return all
}

// vfsSync makes directories and the files in them durable.
func vfsSync(fs vfs.FS, dirs ...string) error {
	for _, dir := range append(dirs, "") {
		d, err := fs.OpenDir(dir)
		if err != nil {
			return fmt.Errorf("open %s: %w", dir, err)
		}
		if err := errors.Join(d.Sync(), d.Close()); err != nil {
			return err
		}
	}
	return nil
}

func mustDevice() blockdev.Device {
	dev, err := blockdev.Open(blockdev.Options{})
	if err != nil {
		panic(err)
	}
	return dev
}

// readEdges reads all edges of a split.
func readEdges(ctx context.Context, s *layout.Store, dev blockdev.Device, split string) (
	e edgefile.Edges, err error) {
	f, err := edgefile.Open(ctx, s, dev, split)
	if err != nil {
		return e, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return e, f.Read(ctx, 0, f.Count(), &e)
}
