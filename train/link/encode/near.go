package encode

import (
	"gdb/internal/mem"
	"gdb/layout/topology"
	"gdb/sample"
)

// near is what batches read where embeddings are on disk by partition: the embeddings of the
// partitions in memory, and the lists between these.
type near struct {
	embeddings []float32
	row, node  func(number uint32) uint32
	at         []uint32
}

// Near makes batches draw from other lists than those of the store. The nodes of these lists have
// numbers of their own, which Batch expects from now on. embeddings is the table from which they
// are read; row returns the row of a number there, and the gradient that Step returns is by row.
// node returns the node of a number. All still encodes the nodes of the store.
func (e *Encoder) Near(lists []topology.Reader, embeddings []float32,
	row, node func(number uint32) uint32, budget *mem.Budget) error {
	fanout, err := sample.ParseFanout(e.cfg.Fanout)
	if err != nil {
		return err
	}
	drawn, err := sample.NewSampler(lists, sample.Config{Fanout: fanout, Seed: e.cfg.Seed,
		Budget: budget})
	if err != nil {
		return err
	}
	e.drawn.Close()
	e.drawn, e.near = drawn, &near{embeddings: embeddings, row: row,
		node: node}
	return nil
}

// rowsOf returns the rows of numbers, valid until the next call.
func (n *near) rowsOf(numbers []uint32) []uint32 {
	n.at = mem.Resized(n.at, len(numbers))
	for i, v := range numbers {
		n.at[i] = n.row(v)
	}
	return n.at
}

// Both reports whether the encoder draws from the lists of outgoing edges too.
func (e *Encoder) Both() bool { return e.both }
