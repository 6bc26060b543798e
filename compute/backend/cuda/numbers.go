//go:build cuda && cgo && linux

package cuda

import (
	"math"

	"gdb/internal/mem"
)

// numbersRoom is how many numbers a piece of their memory has.
const numbersRoom = 64

// numbers are values of a step that kernels read from the device's memory, and not from their
// arguments: those that differ from step to step, while the arguments of a step that is launched at
// once stay the same. They are copied before the operations that are queued.
type numbers struct {
	host   []uint64 // of the last piece
	at     uint64   // where it goes
	used   int
	unsent int // from here on
}

// begin forgets the numbers of a step.
func (n *numbers) begin() { *n = numbers{} }

// send copies what was not copied yet.
func (n *numbers) send(d *driver) error {
	from := n.unsent
	if n.unsent = n.used; from == n.used {
		return nil
	}
	return d.toDevice(n.at+uint64(from)*numberBytes, mem.BytesOf(n.host[from:n.used]))
}

// number puts values one after the other into the device's memory, and returns where: before the
// operations that are queued.
func (g *gpu) number(values ...uint64) uint64 {
	if g.err != nil {
		return 0
	}
	n := &g.numbers
	if n.used+len(values) > len(n.host) {
		g.fail("copy to the device", n.send(&g.driver))
		room, at, err := g.staged.take(numbersRoom * numberBytes)
		if err != nil {
			g.fail("take memory for what a step is given", err)
			return 0
		}
		*n = numbers{host: mem.View[uint64](room), at: at}
	}
	at := n.at + uint64(n.used)*numberBytes
	n.used += copy(n.host[n.used:], values)
	return at
}

// float is number of values.
func (g *gpu) float(values ...float64) uint64 {
	bits := make([]uint64, len(values))
	for i, v := range values {
		bits[i] = math.Float64bits(v)
	}
	return g.number(bits...)
}
