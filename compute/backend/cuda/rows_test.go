//go:build cuda && cgo && linux

package cuda

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"gdb/compute/backend"
	"gdb/compute/kernel"
	"gdb/internal/mem"
)

// TestPickRows compares rows that are put together, and apart, with the CPU's: to the bit, since
// they are copied.
func TestPickRows(t *testing.T) {
	cpu, gpu := mustOpen(t)
	for _, s := range []struct{ kept, sent, rows, cols int }{{5, 7, 40, 33}, {300, 20, 700, 64},
		{0, 9, 30, 4}, {9, 0, 30, 8}, {4, 4, 0, 5}, {1, 1, 1, 1}} {
		name := fmt.Sprintf("PickRows %+v", s)
		compare(t, cpu, gpu, name, func(o *trial) {
			kept, out := o.draw(s.kept, s.cols), o.be.Scratch(s.rows, s.cols)
			sent := o.be.Host(o.values(s.sent*s.cols), 1, s.sent*s.cols)
			from := asFloats(o.places(s.kept, 0, s.sent, s.rows, s.cols))
			backend.PickRows(o.be, out, kept, sent, o.be.Host(from, s.rows, 1))
			o.gives(out)
			places := make([]uint32, s.rows) // every other row goes somewhere
			for i := range places {
				places[i] = uint32(s.rows + 3)
				if i%2 == 0 {
					places[i] = uint32(s.rows - 1 - i)
				}
			}
			into := o.draw(s.rows, s.cols)
			backend.PutRows(o.be, into, out, o.be.Host(asFloats(places), s.rows, 1))
			o.gives(into)
		})
	}
}

// asFloats are words as a tensor has them.
func asFloats(x []uint32) []float32 { return mem.View[float32](mem.BytesOf(x)) }

// places are as many numbers of rows: of those kept, of those held, of values that as many others
// begin with, and none.
func (o *trial) places(kept, held, read, rows, cols int) []uint32 {
	from := make([]uint32, rows)
	for i := range from {
		switch at := o.r.IntN(kept + held + read + 1); {
		case at == kept+held+read:
			from[i] = kernel.NoRow
		case at >= kept+held:
			from[i] = uint32(kept + held + (at-kept-held)*cols)
		default:
			from[i] = uint32(at)
		}
	}
	return from
}

// TestReadLocked: the device reads rows in memory of the host as they were when it was asked to,
// also where the host changes them as soon as it may; and they count as sent.
func TestReadLocked(t *testing.T) {
	g, emulator := mustOpenGPU(t, mem.NewBudget(0))
	for seed := range int64(3) {
		emulator.Set(t, "seed", seed+1)
		for _, s := range []struct{ kept, held, read, rows, cols int }{{5, 7, 9, 40, 33},
			{300, 40, 20, 700, 64}, {0, 9, 0, 30, 4}, {9, 0, 3, 30, 8}, {0, 0, 1, 1, 1}} {
			readsLocked(t, g, s.kept, s.held, s.read, s.rows, s.cols)
		}
	}
}

// readsLocked has five steps read rows.
func readsLocked(t *testing.T, g *gpu, kept, held, read, rows, cols int) {
	t.Helper()
	o := newTrial(t, g, "ReadLocked")
	all, err := g.Params("rows", max(1, kept*cols))
	sum, err2 := g.Params("sums", rows*cols)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	total := make([]float32, rows*cols)
	keptValues := o.values(kept * cols)
	g.Write(all.View(0, kept, cols), keptValues)
	rowsHeld := lockedValues(t, g, o.values(held*cols))
	memory := [2][]float32{}
	for i := range memory {
		memory[i] = lockedValues(t, g, o.values(read*cols))
	}
	for step := range 5 {
		mustBegin(t, g)
		// What the step before the last one read may change now.
		copy(memory[step%2], o.values(read*cols))
		from := o.places(kept, held, read, rows, cols)
		before, missed := g.Sent(), 0
		for _, at := range from {
			if at != kernel.NoRow && int(at) >= kept {
				missed++
			}
		}
		x := g.ReadLocked(all.View(0, kept, cols), rowsHeld, memory[step%2],
			backend.Words(g, from), cols, missed)
		want := make([]float32, rows*cols)
		sent := append(append([]float32{}, rowsHeld...), memory[step%2]...)
		for i, at := range from {
			if at != kernel.NoRow && int(at) >= kept && int(at) < kept+held {
				from[i] = uint32(kept + (int(at)-kept)*cols)
			} else if at != kernel.NoRow && int(at) >= kept {
				from[i] = at + uint32(held*(cols-1))
			}
		}
		kernel.PickRows(kernel.NewPool(1), want, keptValues, sent, from, cols)
		calls{g}.Add(sum, x.Flat())
		for i, v := range want {
			total[i] += v
		}
		if err := g.Err(); err != nil {
			t.Fatal(err)
		}
		if n := g.Sent() - before; n != int64(4*(missed*cols+rows)) {
			t.Errorf("%d bytes count as sent of %d rows of %d", n, missed, cols)
		}
	}
	got := make([]float32, rows*cols)
	if g.Read(got, sum); g.Err() != nil || !slices.Equal(got, total) {
		t.Errorf("%d rows of %d kept, %d held, %d read: other values, %v", rows, kept, held, read,
			g.Err())
	}
	if err := errors.Join(g.Release(all), g.Release(sum)); err != nil {
		t.Fatal(err)
	}
}

// lockedValues are values in locked memory, until the test ends.
func lockedValues(t *testing.T, g *gpu, x []float32) []float32 {
	t.Helper()
	a, err := mem.NewArena(nil, "values", max(4, int64(4*len(x))))
	if err == nil {
		err = g.Lock(a.Bytes())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(g.Unlock(a.Bytes()), a.Free()); err != nil {
			t.Error(err)
		}
	})
	copy(mem.View[float32](a.Bytes()), x)
	return mem.View[float32](a.Bytes())[:len(x)]
}

// TestRelease: memory that is given back is free, once, and what was sent is counted.
func TestRelease(t *testing.T) {
	g, emulator := mustOpenGPU(t, mem.NewBudget(0))
	before := emulator.Count("allocated_bytes")
	free, total, err := g.DeviceMemory()
	if err != nil || free <= 0 || total < free {
		t.Fatalf("%d of %d bytes are free, %v", free, total, err)
	}
	x, err := g.Params("rows", 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if now, _, err := g.DeviceMemory(); err != nil || now > free-4<<20 {
		t.Errorf("%d bytes are free, %d were: %v", now, free, err)
	}
	for range 2 {
		if err := g.Release(x); err != nil {
			t.Fatal(err)
		}
	}
	if now := emulator.Count("allocated_bytes"); now != before {
		t.Errorf("%d bytes are allocated, %d were", now, before)
	}
	mustBegin(t, g)
	h := g.Host(make([]float32, 100), 10, 10)
	calls{g}.ColumnSum(g.Scratch(1, 10), h)
	if err := g.Err(); err != nil || g.Sent() != 400 {
		t.Errorf("%d bytes were sent, %v", g.Sent(), err)
	}
}
