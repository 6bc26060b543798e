package paged

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/layout/partition"
	"gdb/train/link/entities"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"pgregory.net/rapid"
)

const testNodes, testColumns = 500, 3

func mustDir(t testing.TB, fs vfs.FS, parts int) *entities.Files {
	t.Helper()
	m, err := partition.New(partition.Spec{Nodes: testNodes, Parts: parts, Random: true, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	d, err := entities.CreateFiles(fs, "rows", layouttest.Device(t), entities.FileSpec{Map: m,
		Columns: testColumns, State: 1, Init: initRow})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// initRow is what nodes begin with.
func initRow(row []float32, node uint64) {
	for i := range row {
		row[i] = float32(node) + float32(i)/8
	}
}

// row returns the row of a node in the arrays, which is valid until the next Advance; ok is false
// if the node is not resident.
func (f *frames) row(v layout.NodeID) (row uint32, ok bool) {
	part, at := f.spec.Map.Place(v)
	if !f.Resident().Contains(uint32(part)) {
		return 0, false
	}
	return f.first(part) + uint32(at), true
}

// model is what the rows should be: vectors, and the sum of all changes as state.
type model struct{ rows, state [][]float32 }

func newModel() *model {
	m := &model{}
	for v := range uint64(testNodes) {
		row := make([]float32, testColumns)
		initRow(row, v)
		m.rows, m.state = append(m.rows, row), append(m.state, make([]float32, testColumns))
	}
	return m
}

// step changes nodes that are resident, here and there, and compares them before.
func (m *model) step(r *rand.Rand, b *frames) string {
	for range 40 {
		v := layout.NodeID(r.IntN(testNodes))
		row, ok := b.row(v)
		part, _ := b.spec.Map.Place(v)
		if ok != b.Resident().Contains(uint32(part)) {
			return "a node is resident, and its partition is not"
		}
		if !ok {
			continue
		}
		for k := range testColumns {
			x, s := &b.arrays[0][int(row)*testColumns+k], &b.arrays[1][int(row)*testColumns+k]
			if *x != m.rows[v][k] || *s != m.state[v][k] {
				return "a row is not what it was"
			}
			d := r.Float32()
			*x, *s = *x+d, *s+1
			b.Touch()
			m.rows[v][k], m.state[v][k] = *x, *s
		}
	}
	return ""
}

// TestEpochs goes through epochs of any order, with room to read ahead or without, and changes rows
// as it goes: each row is what it was changed to, in the buffer and in the end on disk.
func TestEpochs(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		parts := rapid.IntRange(3, 12).Draw(rt, "parts")
		capacity := rapid.IntRange(2, parts).Draw(rt, "capacity")
		group := rapid.IntRange(1, capacity/2).Draw(rt, "group")
		o, err := partition.NewOrder(partition.OrderSpec{Policy: partition.TwoLevel, Parts: parts,
			Capacity: capacity,
			Logical:  (parts + group - 1) / group, Seed: rapid.Uint64().Draw(rt, "seed")})
		if err != nil {
			rt.Fatal(err)
		}
		dir, budget := mustDir(t, vfs.NewMem(), parts), mem.NewBudget(1<<30)
		count := capacity + rapid.IntRange(0, group).Draw(rt, "ahead")
		b, err := newFrames(dir, count, budget)
		if err != nil {
			rt.Fatal(err)
		}
		spec := dir.Spec()
		if budget.Used() != framesBytes(&spec, count) {
			rt.Fatalf("%d bytes, want %d", budget.Used(), framesBytes(&spec, count))
		}
		m, r := newModel(), rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "steps"), 1))
		for epoch := range 2 {
			e := o.Epoch(epoch)
			for i := range e.Sets() {
				var next *roaring.Bitmap
				if i+1 < e.Sets() {
					next = e.Set(i + 1)
				}
				if err := b.Advance(t.Context(), e.Set(i), next); err != nil {
					rt.Fatal(err)
				}
				if !b.Resident().Equals(e.Set(i)) {
					rt.Fatalf("%v is resident, want %v", b.Resident(), e.Set(i))
				}
				if what := m.step(r, b); what != "" {
					rt.Fatal(what)
				}
			}
		}
		if err := b.Flush(t.Context()); err != nil {
			rt.Fatal(err)
		}
		if err := errors.Join(b.Close(), checkAll(t.Context(), m, dir, parts)); err != nil ||
			budget.Used() != 0 {
			rt.Fatal(err, budget.Used())
		}
	})
}

// checkAll reads all partitions, two at a time, and compares them.
func checkAll(ctx context.Context, m *model, dir *entities.Files, parts int) (err error) {
	b, err := newFrames(dir, 2, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	for part := range parts {
		set := roaring.BitmapOf(uint32(part))
		if err := b.Advance(ctx, set, roaring.BitmapOf(uint32((part+1)%parts))); err != nil {
			return err
		}
		for at := range b.spec.Map.Size(part) {
			v := b.spec.Map.Node(part, at)
			row, ok := b.row(v)
			for k := range testColumns {
				if !ok || b.arrays[0][int(row)*testColumns+k] != m.rows[v][k] ||
					b.arrays[1][int(row)*testColumns+k] != m.state[v][k] {
					return errors.New("a row on disk is not what it was in the buffer")
				}
			}
		}
	}
	return nil
}

// TestReadAhead: where there is room, the partitions of the next set are read before it is asked
// for, and each once an epoch's swap.
func TestReadAhead(t *testing.T) {
	dir := mustDir(t, vfs.NewMem(), 6)
	b, err := newFrames(dir, 3, nil)
	if err != nil {
		t.Fatal(err)
	}
	first, second := roaring.BitmapOf(0, 1), roaring.BitmapOf(0, 2)
	if err := b.Advance(t.Context(), first, second); err != nil {
		t.Fatal(err)
	}
	if s, err := b.Stats(); err != nil || s.Reads != 3 || s.Writes != 0 {
		t.Errorf("%+v, %v", s, err)
	}
	b.Touch()
	// Another set comes than was said: what was read ahead is dropped.
	if err := b.Advance(t.Context(), roaring.BitmapOf(3, 4, 5), nil); err != nil {
		t.Fatal(err)
	}
	if s, err := b.Stats(); err != nil || s.Reads != 6 || s.Writes != 2 || s.ReadBytes != 0 {
		t.Errorf("%+v, %v", s, err)
	}
	if err := b.Advance(t.Context(), roaring.BitmapOf(0, 1, 2, 3), nil); err == nil {
		t.Error("four partitions in three frames")
	}
	if err := b.Advance(t.Context(), first, nil); err != nil {
		t.Fatal(err)
	}
	if s, err := b.Stats(); err != nil || s.ReadBytes == 0 || s.WriteBytes == 0 {
		t.Errorf("%+v, %v", s, err)
	}
	// What is as it was on disk is not written again.
	if err := errors.Join(b.Advance(t.Context(), second, nil), b.Empty(t.Context())); err != nil {
		t.Fatal(err)
	}
	if s, err := b.Stats(); err != nil || s.Writes != 2 {
		t.Errorf("%+v, %v", s, err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if _, err := newFrames(dir, 3, mem.NewBudget(1<<14)); err == nil {
		t.Error("a buffer in less memory than it takes")
	}
}

// TestFullDisk: an error of writing ends the buffer, with every later call, and the vectors of the
// checkpoint are whole.
func TestFullDisk(t *testing.T) {
	mem := vfs.NewMem()
	full := false
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if full && op.Kind.ReadOrWrite() == errorfs.OpIsWrite &&
			strings.Contains(op.Path, "rows/") {
			return syscall.ENOSPC
		}
		return nil
	}))
	dir := mustDir(t, fs, 4)
	b, err := newFrames(dir, 3, nil)
	if err != nil {
		t.Fatal(err)
	}
	m, r := newModel(), rand.New(rand.NewPCG(1, 1))
	for _, set := range []*roaring.Bitmap{roaring.BitmapOf(0, 1), roaring.BitmapOf(2, 3)} {
		if err := b.Advance(t.Context(), set, nil); err != nil {
			t.Fatal(err)
		}
		if what := m.step(r, b); what != "" {
			t.Fatal(what)
		}
	}
	if err := b.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	record, _, err := dir.Prepare()
	if err == nil {
		err = dir.Committed()
	}
	if err != nil {
		t.Fatal(err)
	}
	full = true
	b.arrays[0][0]++
	b.Touch()
	if err := b.Advance(t.Context(), roaring.BitmapOf(0, 1), nil); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a full disk: %v", err)
	}
	if err := b.Flush(t.Context()); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("after a full disk: %v", err)
	}
	if err := b.Close(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("closed after a full disk: %v", err)
	}
	again, err := entities.OpenFiles(mem, "rows", layouttest.Device(t), dir.Spec(), record, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := checkAll(t.Context(), m, again, 4); err != nil {
		t.Error(err)
	}
}

// TestCanceled: a read that is canceled ends the buffer.
func TestCanceled(t *testing.T) {
	b, err := newFrames(mustDir(t, vfs.NewMem(), 4), 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Advance(t.Context(), roaring.BitmapOf(0, 1), nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Advance(ctx, roaring.BitmapOf(2, 3), nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := b.Close(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
