//go:build cuda && cgo && linux

package cuda

import (
	"errors"

	"gdb/internal/cuda"
	"gdb/internal/mem"
)

// arenaAlign is the alignment of a piece of memory in bytes: more than any load asks for.
const arenaAlign = 256

// aligned is n, or as much more as makes it a multiple of the alignment.
func aligned(n int) int { return (n + arenaAlign - 1) / arenaAlign * arenaAlign }

// arena hands out memory of the device that is all taken back at once. It grows by whole
// allocations; when a round needed several, the next begins with one that holds them all.
type arena struct {
	what   string // it is for, for errors
	chunks []uint64
	room   int // of the last
	used   int // of the last
	total  int // handed out in this round
}

// reset takes all memory back.
func (a *arena) reset(d *driver) error {
	need := a.total
	if a.used, a.total = 0, 0; len(a.chunks) <= 1 {
		return nil
	}
	if err := a.free(d); err != nil {
		return err
	}
	return a.grow(d, need+need/8)
}

// take is the address of n bytes.
func (a *arena) take(d *driver, n int) (uint64, error) {
	size := aligned(n)
	if len(a.chunks) == 0 || a.used+size > a.room {
		err := a.grow(d, size+size/8)
		if errors.Is(err, cuda.ErrOutOfMemory) { // without room for larger batches then
			err = a.grow(d, size)
		}
		if err != nil {
			return 0, err
		}
	}
	at := a.chunks[len(a.chunks)-1] + uint64(a.used)
	a.used += size
	a.total += size
	return at, nil
}

// grow adds an allocation of at least n bytes.
func (a *arena) grow(d *driver, n int) error {
	n = aligned(n)
	what := a.what
	if a.total > 0 {
		what += ", beside " + mem.FormatSize(int64(a.total)) + " that they have,"
	}
	p, err := d.alloc(what, n)
	if err != nil {
		return err
	}
	a.chunks, a.room, a.used = append(a.chunks, p), n, 0
	return nil
}

// free gives all memory back, after what uses it.
func (a *arena) free(d *driver) (err error) {
	if len(a.chunks) > 0 {
		err = d.sync()
	}
	for _, p := range a.chunks {
		err = errors.Join(err, d.free(p))
	}
	*a = arena{what: a.what}
	return err
}
