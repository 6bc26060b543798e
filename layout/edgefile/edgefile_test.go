package edgefile

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"gdb/blockdev"
	"gdb/internal/codec"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/layouttest"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"
)

// randomEdges are n edges between nodes, of types types; of none if that is 0.
func randomEdges(r *rand.Rand, n, nodes, types int) (e Edges) {
	for range n {
		e.Src = append(e.Src, uint32(r.IntN(nodes)))
		e.Dst = append(e.Dst, uint32(r.IntN(nodes)))
		if types > 0 {
			e.Rel = append(e.Rel, uint16(r.IntN(types)))
		}
	}
	return e
}

// mustStore writes a store that is nothing but a file of edges.
func mustStore(t testing.TB, fs vfs.FS, e *Edges, types int) *layout.Store {
	t.Helper()
	m := &kv.Meta{UUID: kv.UUID{1, 2, 3}, Nodes: 1000, EdgeTypes: make([]string, types),
		EdgeSplits: []kv.EdgeSplitMeta{{Name: "train", Count: uint64(e.Len())}}}
	if err := fs.MkdirAll("s/edges", 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := layout.CreateFile(fs, "s/"+Path("train"))
	if err != nil {
		t.Fatal(err)
	}
	w, err := NewWriter(f, SpecOf(m, Kind("train")), nil)
	for i := range e.Src {
		rel := uint16(0)
		if types > 0 {
			rel = e.Rel[i]
		}
		if err == nil {
			err = w.Add(e.Src[i], e.Dst[i], rel)
		}
	}
	if err == nil {
		err = w.Finish()
	}
	if err != nil || w.Count() != uint64(e.Len()) {
		t.Fatal(w.Count(), err)
	}
	meta, err := f.Finish(Path("train"), Kind("train"))
	if err != nil {
		t.Fatal(err)
	}
	m.Files = []kv.FileMeta{meta}
	return layout.NewStore(fs, "s", m)
}

// TestRead reads what was written, whole and any range of it.
func TestRead(t *testing.T) {
	dev := layouttest.Device(t)
	for _, types := range []int{0, 7} {
		for _, n := range []int{0, 1, 407, 408, 409, 510, 511, 5000} {
			r := rand.New(rand.NewPCG(uint64(n), uint64(types)))
			want := randomEdges(r, n, 1000, types)
			s := mustStore(t, vfs.NewMem(), &want, types)
			got, err := readAll(t.Context(), s, dev, "train")
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("%d edges of %d types: %v", n, types, err)
			}
			if b := Bytes(s.Meta(), "train"); b != int64(n*(8+2*min(types, 1))) {
				t.Errorf("%d edges are said to take %d bytes", n, b)
			}
			f, err := Open(t.Context(), s, dev, "train")
			if err != nil {
				t.Fatal(err)
			}
			for range 20 {
				from := r.IntN(n + 1)
				to := from + r.IntN(n+1-from)
				var part Edges
				if err := f.Read(t.Context(), uint64(from), uint64(to), &part); err != nil {
					t.Fatal(err)
				}
				if w := want.Slice(from, to); part.Len() != w.Len() ||
					w.Len() > 0 && !reflect.DeepEqual(part, w) {
					t.Fatalf("edges %d to %d of %d differ", from, to, n)
				}
			}
			if err := f.Read(t.Context(), 0, uint64(n)+1, &Edges{}); err == nil {
				t.Error("one edge more than there are was read")
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestNoSplits says what to do where there are none.
func TestNoSplits(t *testing.T) {
	dev := layouttest.Device(t)
	for want, m := range map[string]*kv.Meta{
		"--edge-split": {},
		"ingest it again": {EdgeSplits: []kv.EdgeSplitMeta{{Name: "train", Count: 1}},
			Files: []kv.FileMeta{{Kind: layout.KindTopologyIn}}}} {
		_, err := Open(t.Context(), layout.NewStore(vfs.NewMem(), "s", m), dev, "train")
		if !errors.Is(err, ErrNoSplits) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	s := mustStore(t, vfs.NewMem(), &Edges{}, 0)
	if _, err := Open(t.Context(), s, dev, "test"); err == nil ||
		!strings.Contains(err.Error(), "there are train") {
		t.Error(err)
	}
}

// TestDamage flips a bit in every block, cuts the file, and looks for what is not of the graph.
func TestDamage(t *testing.T) {
	dev := layouttest.Device(t)
	e := randomEdges(rand.New(rand.NewPCG(1, 1)), 1500, 1000, 3)
	fs := vfs.NewMem()
	s := mustStore(t, fs, &e, 3)
	path := "s/" + Path("train")
	whole := layouttest.ReadFile(t, fs, path)
	damaged := func(what string) {
		t.Helper()
		if _, err := readAll(t.Context(), s, dev, "train"); !errors.Is(err, layout.ErrCorrupt) {
			t.Errorf("%s: %v", what, err)
		}
		layouttest.WriteFile(t, fs, path, whole)
	}
	for off := int64(0); off < int64(len(whole)); off += 1000 {
		layouttest.Flip(t, fs, path, off, 4)
		damaged("a flipped bit")
	}
	layouttest.WriteFile(t, fs, path, whole[:len(whole)-layout.PageBytes])
	damaged("a file without its last block")
	swapped := append([]byte{}, whole[:4096]...)
	swapped = append(append(append(swapped, whole[8192:12288]...), whole[4096:8192]...),
		whole[12288:]...)
	layouttest.WriteFile(t, fs, path, swapped)
	damaged("exchanged blocks")
	if err := fs.Remove(path); err != nil {
		t.Fatal(err)
	}
	damaged("a file that is missing")
	// The header has 1000.
	s.Meta().Nodes = 999
	damaged("a file of another graph")
}

// TestBlock holds that a block's edges come out as they went in.
func TestBlock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := Spec{Kind: Kind("val"), UUID: kv.UUID{9}, Nodes: 1 << 32,
			Types: rapid.IntRange(0, 1<<16).Draw(t, "types")}
		var e, got Edges
		for range rapid.IntRange(1, spec.PerBlock()).Draw(t, "edges") {
			e.Src = append(e.Src, rapid.Uint32().Draw(t, "src"))
			e.Dst = append(e.Dst, rapid.Uint32().Draw(t, "dst"))
			if spec.Types > 0 {
				e.Rel = append(e.Rel, rapid.Uint16Range(0, uint16(spec.Types-1)).Draw(t, "rel"))
			}
		}
		b := make([]byte, layout.PageBytes)
		spec.encodeBlock(b, 7, &e)
		if err := spec.DecodeBlock(b, 7, &got); err != nil || !reflect.DeepEqual(got, e) {
			t.Fatal(err)
		}
		if err := spec.DecodeBlock(b, 8, &got); err == nil {
			t.Fatal("block 7 was taken for block 8")
		}
	})
}

// FuzzDecodeBlock decodes any bytes, with a checksum that fits: edges of the graph, or an error.
func FuzzDecodeBlock(f *testing.F) {
	spec := Spec{Kind: Kind("train"), UUID: kv.UUID{1}, Nodes: 100, Types: 3}
	e := randomEdges(rand.New(rand.NewPCG(1, 1)), 40, 100, 3)
	b := make([]byte, layout.PageBytes)
	spec.encodeBlock(b, 1, &e)
	f.Add(b, uint16(3))
	f.Add(b[:200], uint16(0))
	f.Fuzz(func(t *testing.T, data []byte, types uint16) {
		spec := Spec{Kind: Kind("train"), UUID: kv.UUID{1}, Nodes: 100, Types: int(types)}
		b := make([]byte, layout.PageBytes)
		copy(b, data)
		binary.LittleEndian.PutUint32(b,
			codec.BlockSum(spec.Kind, spec.UUID, 1, b[4:layout.PageBytes]))
		var e Edges
		if err := spec.DecodeBlock(b, 1, &e); err != nil {
			return
		}
		again, b2 := Edges{}, make([]byte, layout.PageBytes)
		spec.encodeBlock(b2, 1, &e)
		if err := spec.DecodeBlock(b2, 1, &again); err != nil || !reflect.DeepEqual(e, again) {
			t.Fatalf("not the same after coding it again: %v", err)
		}
		if err := spec.checkEdges(&e, 0); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzFields reads any header fields.
func FuzzFields(f *testing.F) {
	spec := Spec{Kind: Kind("train"), Nodes: 100, Types: 3}
	f.Add(spec.fields())
	f.Add([]byte{2, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		if own, err := spec.checkFields(b); err == nil && len(own)+len(spec.fields()) != len(b) {
			t.Fatalf("%d bytes of %d", len(own), len(b))
		}
	})
}

// readAll reads all edges of a split.
func readAll(ctx context.Context, s *layout.Store, dev blockdev.Device, split string) (e Edges,
	err error) {
	f, err := Open(ctx, s, dev, split)
	if err != nil {
		return e, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return e, f.Read(ctx, 0, f.Count(), &e)
}
