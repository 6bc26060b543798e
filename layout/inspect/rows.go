package inspect

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"

	"gdb/internal/mem"
	"gdb/internal/sparse"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/columnfile"
	"gdb/layout/edgefile"
	"gdb/layout/nodeids"
	"gdb/layout/rowfile"
)

// rowsOrSums checks a file of rows, or a file of checksums of rows.
func (c *checker) rowsOrSums(m kv.FileMeta, f *layout.File) error {
	meta, labels, ok := rowfile.MetaOf(c.s.Meta(), m.Path)
	if !ok {
		c.find(-1, -1, "the catalog does not say whose rows these are")
		return nil
	}
	shape, err := rowfile.NewShape(meta, c.s.Meta().Nodes)
	if err != nil {
		c.find(-1, -1, "the catalog says: %v", err)
		return nil
	}
	fields, blocks, err := c.header(f, m.Kind)
	if err == nil && fields != nil {
		err = c.note(shape.CheckFields(f, fields))
	}
	if err != nil || !blocks {
		return err
	}
	if m.Kind == layout.KindSums {
		return c.pages(f, layout.KindSums)
	}
	r := rowsCheck{c: c, f: f, shape: &shape, seed: layout.SumSeed(layout.KindRows,
		c.s.Meta().UUID)}
	if labels != nil && labels.Kind != "multi" && shape.RowBytes != 4 {
		c.find(-1, -1, "labels of kind %q take 4 bytes, not %d", labels.Kind, shape.RowBytes)
		labels = nil
	}
	if labels != nil && c.opt.Full && !c.apart {
		r.labels = &labelMeaning{c: c, meta: labels, counts: make([]uint64, len(labels.Classes))}
	}
	return r.run()
}

// rowsCheck checks the units of a file of rows.
type rowsCheck struct {
	c      *checker
	f      *layout.File
	shape  *rowfile.Shape
	seed   uint32
	sums   *pageWindow   // nil if they cannot be read, which their own check reports
	labels *labelMeaning // nil if no labels are to be checked
}

func (r *rowsCheck) run() (err error) {
	if err := r.openSums(); err != nil {
		return err
	}
	if r.sums != nil {
		defer func() { err = errors.Join(err, r.sums.close()) }()
	}
	end := min(r.f.Size(), layout.PageBytes+r.shape.DataBytes())
	err = r.c.blocks(r.f, end, r.shape.PageBytes, r.page)
	if err == nil && r.labels != nil && r.c.found == 0 {
		r.labels.end()
	}
	return err
}

// openSums opens the checksums if they are intact.
func (r *rowsCheck) openSums() error {
	f, err := r.c.s.OpenFile(r.c.dev, layout.SumsPath(r.shape.Path))
	if err != nil {
		return r.c.ctx.Err()
	}
	if f.Size() == r.shape.SumsBytes() {
		if r.sums, err = newPageWindow(f, layout.KindSums, r.c.s.Meta().UUID); err == nil {
			return nil
		}
	}
	return errors.Join(err, f.Close())
}

// page checks the units of page n, which is at offset off of the file, and the labels in it.
func (r *rowsCheck) page(n, off int64, b []byte) error {
	unit, wrong, at := int64(r.shape.SumBytes), 0, int64(0)
	for i := int64(0); i < int64(len(b)) && r.sums != nil; i += unit {
		u := (off - layout.PageBytes + i) / unit
		sums, err := r.sums.page(r.c.ctx, u/rowfile.SumsPerPage+1)
		if err != nil {
			return err
		}
		if sums != nil && rowfile.UnitSum(r.seed, b[i:i+unit]) != rowfile.SumAt(sums,
			int(u%rowfile.SumsPerPage)) {
			if wrong++; wrong == 1 {
				at = off + i
			}
		}
	}
	if wrong > 0 {
		r.c.find(n, at, "checksums of %d of its %d units of %d bytes do not match", wrong,
			int64(len(b))/unit, unit)
	}
	if r.labels != nil && r.c.found == 0 {
		r.pageLabels(n, off, b)
	}
	if r.shape.DType == rowfile.Sparse && wrong == 0 {
		r.pageSparse(n, off, b)
	}
	return nil
}

// pageSparse checks the columns of the sparse rows of a page.
func (r *rowsCheck) pageSparse(n, off int64, b []byte) {
	first, rows, of := r.shape.Page(n)
	for i := range rows {
		if err := sparseRow(b[int(i)*of.RowBytes:][:of.RowBytes]).Check(of.Dim); err != nil {
			r.c.find(n, off, "row %d: %v", first+i, err)
			return
		}
	}
}

// sparseRow returns a copy of a row, which may begin anywhere.
func sparseRow(b []byte) sparse.Row {
	row := make(sparse.Row, len(b)/4)
	copy(mem.BytesOf(row), b)
	return row
}

// pageLabels checks the labels of a page.
func (r *rowsCheck) pageLabels(n, off int64, b []byte) {
	first := uint64(n-1) * uint64(r.shape.PerPage)
	rows := min(uint64(r.shape.PerPage), r.shape.Nodes-first)
	for i := range rows {
		row := b[int(i)*r.shape.RowBytes:][:r.shape.RowBytes]
		if what := r.labels.row(row); what != "" {
			r.c.find(n, off, "label of node %d: %s", first+i, what)
			return
		}
	}
}

// labelMeaning checks what labels mean, and counts them.
type labelMeaning struct {
	c       *checker
	meta    *kv.LabelsMeta
	counts  []uint64
	labeled uint64
	unknown uint64 // for multi-labels: unknown labels of the nodes in labeled
}

// row checks the label of one node, and returns what is wrong; "" if nothing is.
func (l *labelMeaning) row(row []byte) string {
	switch l.meta.Kind {
	case "class":
		class := int32(binary.LittleEndian.Uint32(row))
		if class < -1 || int(class) >= len(l.counts) {
			return "class is out of range"
		}
		if class >= 0 {
			l.counts[class]++
			l.labeled++
		}
	case "multi":
		return l.multi(row)
	case "target":
		if v := math.Float32frombits(binary.LittleEndian.Uint32(row)); !math.IsNaN(float64(v)) {
			l.labeled++
		}
	default:
		return "kind of the labels is unknown"
	}
	return ""
}

// multi checks the classes of one node, and which of them are known.
func (l *labelMeaning) multi(row []byte) string {
	var known []byte
	if at := l.meta.KnownAt(); at > 0 {
		row, known = row[:at], row[at:]
	}
	for i, b := range row {
		if known != nil && b&^known[i] != 0 {
			return "a class is set and said to be unknown"
		}
		for ; b != 0; b &= b - 1 {
			class := 8*i + bits.TrailingZeros8(b)
			if class >= len(l.counts) {
				return "class is out of range"
			}
			l.counts[class]++
		}
	}
	count := 0
	for i, b := range known {
		if b != 0 && 8*i+bits.Len8(b) > len(l.counts) {
			return "a class that is said to be known is out of range"
		}
		count += bits.OnesCount8(b)
	}
	if count > 0 {
		l.labeled++
		l.unknown += uint64(len(l.counts) - count)
	}
	return ""
}

// endUnknown compares the count of unknown labels with the catalog. Labeled nodes that are not
// counted here have no known label.
func (l *labelMeaning) endUnknown() {
	if l.meta.KnownAt() == 0 {
		return
	}
	unknown := l.unknown + (l.meta.Labeled-l.labeled)*uint64(len(l.counts))
	if l.labeled > l.meta.Labeled || unknown != l.meta.Unknown {
		l.c.find(-1, -1, "%d labels of %d nodes are unknown, the catalog says %d of %d", l.unknown,
			l.labeled, l.meta.Unknown, l.meta.Labeled)
	}
}

// end compares the counts with the catalog. A stored set holds the nodes that have multi-labels; it
// is checked with the splits.
func (l *labelMeaning) end() {
	if l.meta.Kind != "multi" && l.labeled != l.meta.Labeled {
		l.c.find(-1, -1, "%d nodes have a label, the catalog says %d", l.labeled, l.meta.Labeled)
	}
	l.endUnknown()
	for i, n := range l.counts {
		if i >= len(l.meta.ClassCounts) || n != l.meta.ClassCounts[i] {
			l.c.find(-1, -1, "%d nodes of class %q, the catalog has another count", n,
				l.meta.Classes[i])
		}
	}
}

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

// column checks a column: its blocks, and then its bytes once more, as a whole.
func (c *checker) column(f *layout.File) error {
	r, err := columnfile.OpenPath(c.ctx, c.s, c.dev, f.Path, nil)
	if err == nil {
		err = r.Check(c.ctx, func(block, off int64, what string) {
			c.find(block, off, "%s", what)
		})
		if err == nil && c.found == 0 && c.opt.Full {
			err = c.backRows(r)
		}
		err = errors.Join(err, r.Close())
	}
	if err := c.note(err); err != nil {
		return err
	}
	if c.opt.Full && c.found == 0 {
		what, err := nodeids.Check(c.ctx, c.s, c.dev, f.Path)
		if what != "" {
			c.find(-1, -1, "%s", what)
		}
		if err := c.note(err); err != nil {
			return err
		}
	}
	return c.whole(f)
}
