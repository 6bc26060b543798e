package rowcache

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/layout/rowfile"
	"gdb/sample/sampletest"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"
)

const count, dim = 3000, 5

// lists are nodes of some batches; they repeat over batches, and within one.
func lists(t *rapid.T) [][]layout.NodeID {
	node := rapid.Uint32Range(0, count-1)
	return rapid.SliceOfN(rapid.SliceOfN(rapid.Map(node, func(v uint32) layout.NodeID {
		return layout.NodeID(v)
	}), 0, 60), 0, 5).Draw(t, "lists")
}

// checkGather compares the rows of some nodes with those of the file, in places out of order.
func checkGather(t interface{ Fatal(...any) }, r *Staged, nodes []layout.NodeID) {
	for _, at := range [][]uint32{nil, reversed(len(nodes))} {
		want, got := make([]float32, len(nodes)*dim), make([]float32, len(nodes)*dim)
		if err := errors.Join(r.file.Gather(context.Background(), nodes, at, want),
			r.GatherParts(context.Background(), nodes, at, got, nil)); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(want, got) {
			t.Fatal("other rows", nodes, at)
		}
	}
}

func reversed(n int) []uint32 {
	at := make([]uint32, n)
	for i := range at {
		at[i] = uint32(n - 1 - i)
	}
	return at
}

// TestRowsAreTheSame checks that rows equal the rows of the file, whatever is staged, and that only
// rows that are not staged are read.
func TestRowsAreTheSame(t *testing.T) {
	budget := mem.NewBudget(0)
	file := layouttest.FloatFile(t, nil, dim, count, sampletest.Value)
	rapid.Check(t, func(t *rapid.T) {
		r := NewStaged(file, budget)
		for range 2 {
			staged := lists(t)
			if err := r.Stage(context.Background(), staged); err != nil {
				t.Fatal(err)
			}
			for _, l := range append(lists(t), staged...) {
				checkGather(t, r, l)
			}
			before := r.BytesRead()
			all := slices.Concat(staged...)
			err := r.GatherParts(context.Background(), all, nil, make([]float32, len(all)*dim),
				nil)
			if read := r.BytesRead() - before; err != nil || read != 0 {
				t.Fatal(err, read)
			}
		}
		if err := r.Drop(); err != nil {
			t.Fatal(err)
		}
		if used := budget.Used(); used != 0 {
			t.Fatalf("%d bytes left", used)
		}
	})
}

// Rows may be gathered while others are staged in their place.
func TestGatherWhileStaging(t *testing.T) {
	r := NewStaged(layouttest.FloatFile(t, nil, dim, count, sampletest.Value), mem.NewBudget(0))
	var work sync.WaitGroup
	for g := range 3 {
		work.Go(func() {
			for i := range 200 {
				v := layout.NodeID((g*1000 + 7*i) % (count - 3))
				checkGather(t, r, []layout.NodeID{v, v + 2, v + 1})
			}
		})
	}
	for i := range 200 {
		l := []layout.NodeID{layout.NodeID(i), layout.NodeID(7 * i), layout.NodeID(9 * i)}
		if err := r.Stage(t.Context(), [][]layout.NodeID{l, l[:1]}); err != nil {
			t.Error(err)
		}
	}
	work.Wait()
	if err := r.Drop(); err != nil {
		t.Fatal(err)
	}
}

// What Fit says fits has room in that memory, and with less nothing is staged or left behind.
func TestMemory(t *testing.T) {
	const memory = 40 << 20
	rows := StagedFit(memory, 64)
	l := make([]layout.NodeID, rows)
	for i := range l {
		l[i] = layout.NodeID(i)
	}
	file := layouttest.FloatFile(t, nil, 64, rows, sampletest.Value)
	budget := mem.NewBudget(memory)
	r := NewStaged(file, budget)
	if err := r.Stage(t.Context(), [][]layout.NodeID{l}); err != nil || rows == 0 {
		t.Fatal(rows, err)
	}
	if n := r.Stats().Staged; n != uint64(rows) {
		t.Errorf("%d of %d rows", n, rows)
	}
	var full *mem.LimitError
	small := NewStaged(file, mem.NewBudget(memory/2))
	if err := small.Stage(t.Context(), [][]layout.NodeID{l}); !errors.As(err, &full) {
		t.Errorf("error %v", err)
	}
	if used := small.budget.Used(); used != 0 {
		t.Errorf("%d bytes left", used)
	}
	if err := r.Drop(); err != nil || budget.Used() != 0 {
		t.Error(err, budget.Used())
	}
	if n := StagedFit(fixedBytes, 64); n != 0 {
		t.Errorf("%d rows fit in nothing", n)
	}
}

// broken is a device whose reads fail.
type broken struct{ blockdev.Device }

func (broken) ReadBatch(_ context.Context, reqs []blockdev.Request) error {
	return &blockdev.ReadError{Path: reqs[0].File.Path(), Off: reqs[0].Off, Len: len(reqs[0].Buf),
		Err: syscall.EIO}
}

// An error of a read has the file; nothing is staged, and no memory stays behind.
func TestReadErrors(t *testing.T) {
	g := layouttest.Random(3, count, 10)
	g.Dim, g.Features = dim, layouttest.Features(count, dim)
	store := layouttest.Build(t, vfs.NewMem(), "s", g)
	dev, err := blockdev.Open(blockdev.Options{Backend: blockdev.Memory})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	for name, last := range map[string]layout.NodeID{"a read fails": 9, "no such node": count} {
		budget := mem.NewBudget(0)
		r := NewStaged(openRows(t, store, dev, budget), budget)
		before := budget.Used()
		if name == "a read fails" {
			r.file = openRows(t, store, broken{dev}, nil)
		}
		err = r.Stage(t.Context(), [][]layout.NodeID{{4, last}, {4, 2}})
		if err == nil || !strings.HasPrefix(err.Error(), "staging: ") {
			t.Errorf("%s: error %v", name, err)
		}
		if name == "a read fails" && (!errors.Is(err, syscall.EIO) ||
			!strings.Contains(err.Error(), "features/")) {
			t.Errorf("%s: error %v", name, err)
		}
		if used := budget.Used(); used != before || r.nodes != nil {
			t.Errorf("%s: %d bytes left, staged %v", name, used-before, r.nodes)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := NewStaged(openRows(t, store, dev, nil), nil)
	if err := r.Stage(ctx, [][]layout.NodeID{{1, 2}}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: error %v", err)
	}
}

// openRows opens the features of a store through a device, which works while they are opened.
func openRows(t *testing.T, s *layout.Store, dev blockdev.Device,
	budget *mem.Budget) *rowfile.Reader {
	t.Helper()
	gate := &gated{Device: dev}
	if b, ok := dev.(broken); ok {
		gate.Device = b.Device
	}
	r, err := rowfile.Open(t.Context(), s, gate, s.Meta().Features[0], budget)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	gate.Device = dev
	return r
}

type gated struct{ blockdev.Device }
