//go:build cuda && cgo && linux

package cuda

import (
	"errors"
	"slices"

	"gdb/train/backend"
)

// PickRows copies rows.
func (g *gpu) PickRows(out, kept, sent, from backend.Tensor) {
	if !g.ready(from.Len() == out.Rows && kept.Cols == out.Cols && sent.Cols == out.Cols,
		"PickRows", out, kept, sent, from) || out.Len() == 0 {
		return
	}
	four := g.fours(out.Cols, out, kept, sent)
	threads := out.Len()
	if four {
		threads /= 4
	}
	g.launch("pick_rows", threads, out, kept, sent, from, out.Rows, out.Cols, kept.Rows, four)
}

// DeviceMemory asks the driver.
func (g *gpu) DeviceMemory() (free, total int64, err error) {
	err = g.driver.on(func() (err error) {
		free, total, err = g.driver.device.MemInfo()
		return err
	})
	return free, total, err
}

// Sent counts what was copied for steps, and rows that they read where they lie.
func (g *gpu) Sent() int64 { return g.sent }

// Release frees what Params took, after what uses it.
func (g *gpu) Release(t backend.Tensor) error {
	p := g.kept[t.Memory]
	if !slices.Contains(g.params, p) { // it was given back
		return nil
	}
	g.flush()
	g.params = slices.DeleteFunc(g.params, func(q uint64) bool { return p == q })
	g.kept[t.Memory], g.spare = 0, append(g.spare, t.Memory)
	return errors.Join(g.driver.sync(), g.driver.free(p))
}
