package layout

import (
	"context"
	"errors"
	"fmt"

	"gdb/internal/bug"
	"gdb/internal/mem"
)

// streamChunk is how much a stream reads together, in bytes; it holds two such buffers.
const streamChunk = 4 << 20

type chunk struct {
	off int64
	buf []byte
	err error
}

// Stream calls fn with the bytes [from, to) of f in order, in chunks of whole units, and reads the
// next chunk while fn works. It does not read what remains after the last whole unit.
func (f *File) Stream(ctx context.Context, from, to int64, unit int,
	fn func(off int64, data []byte) error) (err error) {
	size := int64(max(streamChunk/unit, 1)) * int64(unit)
	to -= (to - from) % int64(unit)
	size = min(size, max(to-from, int64(unit)))
	arena, err := mem.NewArena(nil, "read buffers", 2*size)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	free, full := make(chan []byte, 2), make(chan chunk, 2)
	free <- arena.Bytes()[:size]
	free <- arena.Bytes()[size:]
	go func() {
		defer bug.Catch()
		defer close(full)
		for off := from; off < to; off += size {
			var buf []byte
			select {
			case buf = <-free:
			case <-ctx.Done():
				full <- chunk{err: ctx.Err()}
				return
			}
			c := chunk{off: off, buf: buf[:min(size, to-off)]}
			c.err = f.Read(ctx, off, c.buf)
			full <- c
			if c.err != nil {
				return
			}
		}
	}()
	defer func() {
		cancel()
		for range full { // the reader ends and closes it
			continue
		}
		err = errors.Join(err, arena.Free())
	}()
	for c := range full {
		if c.err != nil {
			return fmt.Errorf("layout: read %s: %w", f.Path, c.err)
		}
		if err := fn(c.off, c.buf); err != nil {
			return err
		}
		free <- c.buf[:size]
	}
	return nil
}
