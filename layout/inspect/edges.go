package inspect

import (
	"errors"

	"gdb/layout"
	"gdb/layout/edgefile"
)

// edges checks a file of edges: its blocks in order, and the number of edges. Every check, also one
// without Full, finds ends and types that the graph does not have, because decoding looks at them.
func (c *checker) edges(f *layout.File, kind string) error {
	if _, blocks, err := c.header(f, kind); err != nil || !blocks {
		return err
	}
	spec := edgefile.SpecOf(c.s.Meta(), kind)
	file, err := edgefile.OpenFile(c.ctx, c.s, c.dev, f.Path, spec)
	if err != nil {
		return c.note(err)
	}
	for _, m := range c.s.Meta().EdgeSplits {
		if m.Name == edgefile.SplitOf(kind) && m.Count != file.Count() {
			c.find(-1, -1, "it has %d edges, the catalog %d", file.Count(), m.Count)
		}
	}
	var e edgefile.Edges
	err = c.blocks(f, f.Size(), layout.PageBytes, func(n, off int64, b []byte) error {
		e.Clear()
		if err := spec.DecodeBlock(b, uint64(n), &e); err != nil {
			c.find(n, off, "%v", err)
		}
		return nil
	})
	return errors.Join(err, file.Close())
}
