//go:build cuda && cgo && linux

package cuda

import (
	"fmt"
	"testing"

	"gdb/internal/mem"
	"gdb/train/backend"
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
			sent := o.be.Host(o.values(s.sent*s.cols), s.sent, s.cols)
			o.be.PickRows(out, kept, sent, o.words(s.rows, s.kept+s.sent))
			o.gives(out)
			places := make([]uint32, s.rows) // every other row goes somewhere
			for i := range places {
				places[i] = uint32(s.rows + 3)
				if i%2 == 0 {
					places[i] = uint32(s.rows - 1 - i)
				}
			}
			into := o.draw(s.rows, s.cols)
			o.be.PutRows(into, out, o.be.Host(mem.View[float32](mem.BytesOf(places)), s.rows, 1))
			o.gives(into)
		})
	}
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
	g.ColumnSum(g.Scratch(1, 10), h)
	if err := g.Err(); err != nil || g.Sent() != 400 {
		t.Errorf("%d bytes were sent, %v", g.Sent(), err)
	}
	var _ backend.Separate = g
}
