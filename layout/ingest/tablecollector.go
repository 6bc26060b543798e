package ingest

import (
	"errors"

	"gdb/layout/ingest/extsort"
	"gdb/layout/ingest/source"
	"gdb/layout/ingest/steps"
)

// tableCollector numbers text ids as they come.
type tableCollector struct {
	p        *pipeline
	table    *steps.NumberTable
	seed     uint64
	src, dst []uint64 // hashes
}

func (t *tableCollector) nodeKeys(c *source.IDChunk, out []uint64) (err error) {
	if c.Text == nil {
		return errIntegerNodes
	}
	t.src = t.hashes(t.src, c.Text)
	near := t.table.Candidates(t.src)
	for i, id := range c.Text {
		if out[i], err = t.table.Number(id, t.src[i], near[i]); err != nil {
			return err
		}
	}
	return nil
}

func (t *tableCollector) edgeKeys(c *source.EdgeChunk, src, dst []uint64) (err error) {
	t.src, t.dst = t.hashes(t.src, c.SrcText), t.hashes(t.dst, c.DstText)
	n := len(t.src)
	t.src = append(t.src, t.dst...)
	near := t.table.Candidates(t.src)
	for i := range n {
		if src[i], err = t.table.Number(c.SrcText[i], t.src[i], near[i]); err != nil {
			return err
		}
		if dst[i], err = t.table.Number(c.DstText[i], t.dst[i], near[n+i]); err != nil {
			return err
		}
	}
	return nil
}

func (t *tableCollector) hashes(out []uint64, ids [][]byte) []uint64 {
	out = out[:0]
	for _, id := range ids {
		out = append(out, t.p.hash(t.seed, id))
	}
	return out
}

func (t *tableCollector) finish() ([]extsort.Run, error) {
	w, err := t.p.NewRun("table")
	if err != nil {
		return nil, err
	}
	err = t.table.Write(w)
	run, err2 := w.Finish()
	return []extsort.Run{run}, errors.Join(err, err2)
}

func (t *tableCollector) close() error { return t.table.Free() }
