package layout

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"
	"testing"

	"gdb/blockdev"
	"gdb/internal/binfmt"
	"gdb/internal/codec"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/kv/ids"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func mustShape(t testing.TB, f topologyFields) blockShape {
	t.Helper()
	s, err := f.shape()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// writeLists writes a topology file of these edges, in order, and returns its bytes.
func writeLists(t testing.TB, spec TopologySpec, nodes []NodeID, edges []Edge) []byte {
	t.Helper()
	fs := vfs.NewMem()
	w, err := NewTopologyWriter(fs, "x", spec)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range edges {
		if err := w.AddEdge(nodes[i], e); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	f, err := fs.Open("x.csc")
	if err != nil {
		t.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, info.Size())
	if _, err := f.ReadAt(b, 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return b
}

// FuzzBlock gives any bytes to the decoder of blocks, with any shape: it never panics, and what it
// takes has lists inside the block.
func FuzzBlock(f *testing.F) {
	for _, all := range []bool{false, true} {
		spec := TopologySpec{Nodes: 5000, Types: all, Weights: all, Times: all}
		var nodes []NodeID
		var edges []Edge
		for i := range 1500 {
			nodes = append(nodes, NodeID(min(i/3, 77)))
			edges = append(edges, Edge{Nbr: NodeID(i)})
		}
		b := writeLists(f, spec, nodes, edges)
		for off := 4096; off < len(b); off += 4096 {
			f.Add(b[off:off+4096], all, all, all)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, types, weights, times bool) {
		s := mustShape(t, topologyFields{blockBytes: 4096, types: types, weights: weights,
			times: times})
		b = append(make([]byte, 0, 4096), b[:min(len(b), 4096)]...)
		b = b[:cap(b)]
		k, err := parseBlock(&s, b)
		if err != nil {
			return
		}
		var l Lists
		if err := s.decode(&k, &l); err != nil {
			return
		}
		if len(l.Off) != int(k.slots)+1 || len(l.Nbrs) != int(k.entries) ||
			l.Off[k.slots] != uint64(k.entries) || !slices.IsSorted(l.Off) {
			t.Fatalf("%d offsets and %d ids for %d lists and %d entries", len(l.Off), len(l.Nbrs),
				k.slots, k.entries)
		}
		for i := range k.slots {
			from, to, err := uint32(0), k.entries, error(nil)
			if !k.hub {
				from, to, err = s.list(&k, i)
			}
			if err != nil || uint64(from) != l.Off[i] || uint64(to) != l.Off[i+1] {
				t.Fatalf("list %d is %d to %d: %v", i, from, to, err)
			}
		}
	})
}

// FuzzTopologyFields decodes header fields; what it takes encodes to the same bytes.
func FuzzTopologyFields(f *testing.F) {
	f.Add((&topologyFields{blockBytes: 4096, nodes: 7}).encode())
	f.Add((&topologyFields{blockBytes: 1 << 20, nodes: 1 << 32, types: true, weights: true,
		times: true}).encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := decodeTopologyFields(b)
		if err == nil && !bytes.Equal(got.encode(), b) {
			t.Fatalf("%x decodes to %+v, which encodes to %x", b, got, got.encode())
		}
	})
}

// FuzzRowsFields decodes header fields of rows; what it takes encodes to the same bytes.
func FuzzRowsFields(f *testing.F) {
	for _, dtype := range []string{F32, F16, BF16, I32, U8} {
		m, err := NewRowsMeta("features", "features/features.rows", dtype, 602)
		if err != nil {
			f.Fatal(err)
		}
		s, err := newRowsShape(m, 1000)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(s.fields())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := decodeRowsFields(b)
		if err != nil {
			return
		}
		if !bytes.Equal(s.fields(), b) {
			t.Fatalf("%x decodes to %+v, which encodes to %x", b, s, s.fields())
		}
		if last := s.nodes; last > 0 {
			end := s.at(last-1) + int64(s.RowBytes)
			if end > s.dataBytes() || s.dataBytes()%int64(s.SumBytes) != 0 {
				t.Fatalf("%+v: the last row ends at %d of %d", s, end, s.dataBytes())
			}
		}
	})
}

// FuzzIndexEnd decodes the last page of an index.
func FuzzIndexEnd(f *testing.F) {
	page := make([]byte, pageBytes)
	copy(page[4:], indexEnd)
	page[16] = 3
	f.Add(page)
	f.Fuzz(func(t *testing.T, b []byte) {
		edges, blocks, err := decodeIndexEnd(b)
		if err == nil && (blocks > 1<<32-1 || edges > blocks<<20) {
			t.Fatalf("%d edges in %d blocks", edges, blocks)
		}
	})
}

// FuzzConvert encodes floats and decodes them again: nothing moves twice.
func FuzzConvert(f *testing.F) {
	f.Add(uint32(0x477fefff))
	f.Add(uint32(0x33000001))
	f.Fuzz(func(t *testing.T, u uint32) {
		var b [4]byte
		binary.LittleEndian.PutUint32(b[:], u)
		in := mem.View[float32](b[:])
		for _, dtype := range []string{F32, F16, BF16} {
			row, err := encodeRow(nil, dtype, in)
			if err != nil {
				continue
			}
			out := make([]float32, 1)
			decoder(dtype)(out, row)
			again, err := encodeRow(nil, dtype, out)
			if err != nil || !bytes.Equal(row, again) {
				t.Fatalf("%g as %s is %x, and then %x: %v", in[0], dtype, row, again, err)
			}
		}
	})
}

// TestNumberedSum holds that the fast way to a block's checksum is codec.BlockSum.
func TestNumberedSum(t *testing.T) {
	uuid := kv.UUID{1, 2, 3}
	b := make([]byte, 4096)
	b[9], b[100] = 7, 8
	want := codec.BlockSum(KindTopologyOut, uuid, 7<<8, b[4:])
	if got := numberedSum(sumSeed(KindTopologyOut, uuid), b[8:16], b[4:]); got != want {
		t.Errorf("sum is %08x, want %08x", got, want)
	}
}

func TestUpper(t *testing.T) {
	a := []uint32{0, 3, 3, 3, 9, 10, 11, 12, 20, 21, 22, 23, 24, 25, 26}
	for n := range len(a) + 1 {
		for v := uint32(0); v < 30; v++ {
			want := 0
			for _, x := range a[:n] {
				if x <= v {
					want++
				}
			}
			if got := upper(a[:n], v); got != want {
				t.Fatalf("upper(%v, %d) is %d, want %d", a[:n], v, got, want)
			}
		}
	}
}

// TestWideOffsets loads with the offsets of graphs of 2^32 edges and more.
func TestWideOffsets(t *testing.T) {
	fs, ctx := vfs.NewMem(), context.Background()
	if err := fs.MkdirAll("topology", 0o755); err != nil {
		t.Fatal(err)
	}
	w, err := NewTopologyWriter(fs, "topology/in", TopologySpec{Nodes: 3000})
	if err != nil {
		t.Fatal(err)
	}
	for v := range 5000 {
		if err := w.AddEdge(NodeID(v/2), Edge{Nbr: NodeID(v / 2)}); err != nil {
			t.Fatal(err)
		}
	}
	files, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	dev, err := blockdev.Open(blockdev.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := NewStore(fs, "", &kv.Meta{Nodes: 3000, Edges: 5000, BlockBytes: 4096, Files: files,
		Directions: []string{"in"}})
	wide, err := loadResident[uint64](ctx, s, dev, In, TopologyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	narrow, err := s.Topology(ctx, dev, In, TopologyOptions{Resident: true})
	if err != nil {
		t.Fatal(err)
	}
	a, isNarrow := narrow.(*resident[uint32])
	b, isWide := wide.(*resident[uint64])
	if !isNarrow || !isWide {
		t.Fatalf("%T and %T", narrow, wide)
	}
	off32, off64 := a.ptr, b.ptr
	if !slices.Equal(a.nbrs, b.nbrs) || len(off32) != 3001 || len(off64) != 3001 {
		t.Fatalf("%d and %d offsets, %d and %d neighbors", len(off32), len(off64), len(a.nbrs),
			len(b.nbrs))
	}
	for i := range off32 {
		if uint64(off32[i]) != off64[i] {
			t.Fatalf("offset %d is %d and %d", i, off32[i], off64[i])
		}
	}
	for _, close := range []func() error{wide.Close, narrow.Close, dev.Close} {
		if err := close(); err != nil {
			t.Error(err)
		}
	}
}

// FuzzDump prints any bytes as any kind of block.
func FuzzDump(f *testing.F) {
	h := codec.Header{Kind: KindRows, Fields: []byte{1, 0, 0, 0}}
	f.Add(uint8(4), uint8(0), h.Encode())
	f.Add(uint8(0), uint8(1), []byte("....GTBK"))
	kinds := []string{KindTopologyIn, KindIndexOut, KindSums, ids.ForwardKind, KindRows}
	f.Fuzz(func(t *testing.T, kind, block uint8, b []byte) {
		b = append(make([]byte, 0, 4096), b[:min(len(b), 4096)]...)
		d := dumper{ctx: context.Background(), b: b[:cap(b)], kind: kinds[int(kind)%len(kinds)],
			s: NewStore(vfs.NewMem(), "", &kv.Meta{BlockBytes: 4096}), f: &source{path: "x"}}
		d.Dump = binfmt.New(d.b)
		if d.kind == KindRows {
			block = 0 // pages of rows need their checksums
		}
		if err := d.block(int64(block)); err != nil {
			t.Fatal(err)
		}
		if d.Rest() != 0 {
			t.Fatalf("%d bytes were not printed", d.Rest())
		}
	})
}
