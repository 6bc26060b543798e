package superbatch

import (
	"slices"

	"gdb/sample"
	"gdb/sample/superbatch/runtimefile"
)

// order sorts the rows that a batch misses by node, which is the order in which a sweep packed
// them.
func (t *assembly) order(f *frame) error {
	if t.packed == nil {
		return nil
	}
	before := cap(t.keys)
	t.keys = t.keys[:0]
	for k, v := range f.missed {
		t.keys = append(t.keys, uint64(v)<<32|uint64(f.at[k]))
	}
	slices.Sort(t.keys)
	for k, key := range t.keys {
		f.missed[k], f.at[k] = sample.NodeID(key>>32), uint32(key)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mu.held.Add(8 * int64(cap(t.keys)-before))
}

// fetch reads the missed rows first … end-1 of a batch to out: the k-th of them to row at[k], or to
// row k if at is nil. They come from the file of features or, if they were swept, from the packed
// rows; then at must not be nil.
func (t *assembly) fetch(f *frame, first, end int, at []uint32, out []float32,
	buf *runtimefile.Buffer) error {
	c, dim := &t.l.cfg, t.l.dim
	if t.packed == nil {
		return c.Rows.GatherParts(t.stages.Context(), f.missed[first:end], at, out, nil)
	}
	width := t.packed.rowBytes
	return t.packed.read(t.stages.Context(), t.batchOf(f), first, end, buf, func(k int,
		rows []byte) error {
		k -= first
		for ; len(rows) > 0; k, rows = k+1, rows[width:] {
			to := int(at[k]) * dim
			if err := c.Rows.Decode(out[to:to+dim], rows[:width]); err != nil {
				return err
			}
		}
		return nil
	})
}
