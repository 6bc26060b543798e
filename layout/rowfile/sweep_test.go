package rowfile_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"

	"gdb/blockdev"
	"gdb/blockdev/devtest"
	"gdb/internal/pace"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/layout/rowfile"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"
)

// sweepKeys draws lists of nodes, each without repeats, and their keys.
func sweepKeys(rnd *rand.Rand, nodes, lists int) (of [][]layout.NodeID, keys []uint64) {
	of = make([][]layout.NodeID, lists)
	for l := range of {
		for _, v := range rnd.Perm(nodes)[:rnd.IntN(nodes+1)] {
			of[l] = append(of[l], layout.NodeID(v))
		}
		slices.Sort(of[l])
		for _, v := range of[l] {
			keys = append(keys, uint64(v)<<32|uint64(l))
		}
	}
	pace.RadixSort(keys)
	return of, keys
}

// TestSweepAgrees: a sweep gives each list the rows that it would gather, in the order of nodes,
// reads nothing twice, and costs what it was said to.
func TestSweepAgrees(t *testing.T) {
	ctx := context.Background()
	rapid.Check(t, func(rt *rapid.T) {
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		g := layouttest.Graph{Nodes: rapid.IntRange(1, 400).Draw(rt, "nodes"), NoCatalog: true,
			Dim: rapid.SampledFrom([]int{1, 3, 100, 128, 300, 1024, 1100}).Draw(rt, "dim")}
		g.Features = layouttest.Features(g.Nodes, g.Dim)
		if rapid.Bool().Draw(rt, "typed") {
			typed(rnd, &g)
		}
		s := layouttest.Build(t, vfs.NewMem(), "s", g)
		rows := mustRowsWith(t, s, rapid.Bool().Draw(rt, "sums on disk"), nil)
		of, keys := sweepKeys(rnd, g.Nodes, rapid.IntRange(1, 5).Draw(rt, "lists"))
		got := make([][]byte, len(of))
		buf := blockdev.AlignedBuffer(rapid.SampledFrom([]int{0, 3 << 20}).Draw(rt, "buffer"))
		before := rows.BytesRead()
		err := rows.Sweep(ctx, keys, buf, func(l uint32, row []byte) error {
			got[l] = append(got[l], row...)
			return nil
		})
		if err != nil {
			rt.Fatal(err)
		}
		read := int64(rows.BytesRead() - before)
		once, apart := rows.SweepCost(slices.Chunk(keys, 7), len(of))
		if !near(read, once.Bytes) {
			rt.Fatalf("%d bytes read, %+v expected", read, once)
		}
		fewer := len(of) / 2
		some, each := rows.SweepCost(slices.Chunk(keys, 7), fewer)
		left := slices.DeleteFunc(slices.Clone(keys), func(k uint64) bool {
			return int(uint32(k)) >= fewer
		})
		want, alone := rows.SweepCost(slices.Chunk(left, 100), fewer)
		if some != want || !slices.Equal(each, alone) {
			rt.Fatalf("%d lists cost %+v, alone %+v", fewer, some, want)
		}
		for l, nodes := range of {
			row := make([]byte, len(nodes)*rows.Meta().RowBytes)
			if err := rows.GatherRaw(ctx, nodes, nil, row); err != nil {
				rt.Fatal(err)
			}
			if !bytes.Equal(got[l], row) {
				rt.Fatalf("the %d rows of list %d differ", len(nodes), l)
			}
			reads, n, err := rows.Cost(ctx, nodes)
			if err != nil {
				rt.Fatal(err)
			}
			if !near(n, apart[l].Bytes) || apart[l].Reads > uint64(reads) {
				rt.Fatalf("list %d costs %d reads of %d bytes, not %+v", l, reads, n, apart[l])
			}
		}
		if err := rows.Close(); err != nil {
			rt.Fatal(err)
		}
	})
}

// near says whether reads take as much as was said: where the buffer is full, a gap of up to 16 KiB
// may be left out or a unit be read again.
func near(got, said int64) bool {
	room := (got>>19 + said>>19) * 20 << 10 // a part of the buffer is 512 KiB
	return got >= said-room && got <= said+room
}

// TestSweepStops: keys in disorder and out of range, a read that fails, and a receiver that fails
// end a sweep with their error.
func TestSweepStops(t *testing.T) {
	ctx := context.Background()
	g := layouttest.Graph{Nodes: 9000, Dim: 300}
	g.Features = layouttest.Features(g.Nodes, g.Dim)
	s, broken := layouttest.Build(t, vfs.NewMem(), "s", g), false
	dev := devtest.Inject(layouttest.Device(t), func(_ string, off int64, _ uint64) devtest.Fault {
		if broken && off > 6<<20 {
			return devtest.Fault{Err: syscall.EIO}
		}
		return devtest.Fault{}
	})
	rows, err := rowfile.Open(ctx, s, dev, s.Meta().Features[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	var keys []uint64
	for v := range g.Nodes {
		keys = append(keys, uint64(v)<<32)
	}
	none := func(uint32, []byte) error { return nil }
	if err := rows.Sweep(ctx, []uint64{9000 << 32}, nil, none); err == nil {
		t.Error("a row that is not there")
	}
	if err := rows.Sweep(ctx, []uint64{2 << 32, 1 << 32}, nil, none); err == nil {
		t.Error("keys in disorder")
	}
	full, n := errors.New("full"), 0
	err = rows.Sweep(ctx, keys, nil, func(uint32, []byte) error {
		if n++; n == 5000 {
			return full
		}
		return nil
	})
	if !errors.Is(err, full) || n != 5000 {
		t.Errorf("the receiver failed: %v after %d rows", err, n)
	}
	broken = true
	err = rows.Sweep(ctx, keys, nil, none)
	var failed *blockdev.ReadError
	if !errors.Is(err, syscall.EIO) || !errors.As(err, &failed) || failed.Off <= 6<<20 {
		t.Errorf("a read failed: %v", err)
	}
	if err := rows.Close(); err != nil {
		t.Error(err)
	}
}
