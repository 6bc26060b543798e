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
	file, err := edgefile.OpenFile(c.ctx, c.s, c.dev, f.Path, edgefile.SpecOf(c.s.Meta(), kind))
	if err != nil {
		return c.note(err)
	}
	for _, m := range c.s.Meta().EdgeSplits {
		if m.Name == edgefile.SplitOf(kind) && m.Count != file.Count() {
			c.find(-1, -1, "it has %d edges, the catalog %d", file.Count(), m.Count)
		}
	}
	spec := edgefile.SpecOf(c.s.Meta(), kind)
	var e edgefile.Edges
	err = f.Stream(c.ctx, layout.PageBytes, f.Size(), layout.PageBytes,
		func(off int64, data []byte) error {
			c.advance(data)
			for ; len(data) > 0; data = data[layout.PageBytes:] {
				n := off / layout.PageBytes
				e.Src, e.Dst, e.Rel = e.Src[:0], e.Dst[:0], e.Rel[:0]
				if err := spec.DecodeBlock(data[:layout.PageBytes], uint64(n), &e); err != nil {
					c.find(n, off, "%v", err)
				}
				off += layout.PageBytes
			}
			return nil
		})
	return errors.Join(err, file.Close())
}
