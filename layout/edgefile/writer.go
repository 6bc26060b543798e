package edgefile

import (
	"gdb/layout"
)

// Output is what a Writer appends to, such as a layout.FileWriter.
type Output interface {
	// Write appends p, which the caller may change afterwards.
	Write(p []byte) error
}

// Writer writes edges in the order in which they come. It takes two blocks of memory, and what its
// output takes.
type Writer struct {
	out    Output
	spec   Spec
	per    int
	edges  Edges // edges of the block being filled
	block  []byte
	blocks uint64
	count  uint64
}

// NewWriter starts a file of edges. own are header fields of the user of the file, nil for none.
func NewWriter(out Output, spec Spec, own []byte) (*Writer, error) {
	w := &Writer{out: out, spec: spec, per: spec.PerBlock(), block: make([]byte, layout.PageBytes)}
	return w, out.Write(spec.header(own))
}

// Add appends an edge. rel is ignored if edges have no type.
func (w *Writer) Add(src, dst uint32, rel uint16) error {
	w.edges.Src = append(w.edges.Src, src)
	w.edges.Dst = append(w.edges.Dst, dst)
	if w.spec.Types > 0 {
		w.edges.Rel = append(w.edges.Rel, rel)
	}
	w.count++
	if w.edges.Len() == w.per {
		return w.flush()
	}
	return nil
}

// Count returns the number of edges so far.
func (w *Writer) Count() uint64 { return w.count }

// Finish writes the last block. The caller finishes the output.
func (w *Writer) Finish() error {
	if w.edges.Len() == 0 {
		return nil
	}
	return w.flush()
}

func (w *Writer) flush() error {
	w.blocks++
	w.spec.encodeBlock(w.block, w.blocks, &w.edges)
	w.edges.Src, w.edges.Dst, w.edges.Rel = w.edges.Src[:0], w.edges.Dst[:0], w.edges.Rel[:0]
	return w.out.Write(w.block)
}
