package link

import (
	"context"
	"errors"
	"fmt"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/edgefile"
	"gdb/train/link/entities"
	"gdb/train/link/triples"
	"gdb/train/setting"
)

// data is the graph that a run trains and evaluates on.
type data struct {
	entities, relations int
	edges               int // in the train split
	train, val, test    []triples.Triple
	// known indexes the edges of all splits, and trainIndex those of train; nil if nobody
	// asks for them.
	known, trainIndex *triples.Index
}

// checkDecoder returns an error if the decoder needs something that the graph lacks, or cannot
// use what it has.
func checkDecoder(c *Config, m *kv.Meta) error {
	switch types := len(m.EdgeTypes); {
	case c.Decoder == "dot" && types > 1:
		return fmt.Errorf("train: decoder dot knows no relations, and the edges have %d types: "+
			"take distmult, complex, transe or rotate", types)
	case c.Decoder == "dot" && c.Reciprocal:
		return errors.New("train: --reciprocal is for decoders with relations: dot has none")
	}
	return edgefile.Check(m)
}

// newData returns data with the counts of a store; edges is how many there are in all splits.
func newData(m *kv.Meta, c *Config) (d *data, edges int64, err error) {
	if err := checkDecoder(c, m); err != nil {
		return nil, 0, err
	}
	d = &data{entities: int(m.Nodes), relations: max(1, len(m.EdgeTypes)),
		edges: int(m.SplitEdges("train"))}
	if d.edges == 0 {
		return nil, 0, errors.New("train: the train split has no edges")
	}
	return d, int64(m.SplitEdges()), nil
}

// readEvaluated reads only the val and test splits, for vectors on disk.
func readEvaluated(ctx context.Context, s *layout.Store, dev blockdev.Device, c *Config,
	budget *mem.Budget) (*data, error) {
	d, edges, err := newData(s.Meta(), c)
	if err != nil {
		return nil, err
	}
	edges -= int64(d.edges)
	if err := budget.Reserve("edges to evaluate", evaluatedBytes*edges); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	if d.val, err = readSplit(ctx, s, dev, "val"); err != nil {
		return nil, err
	}
	d.test, err = readSplit(ctx, s, dev, "test")
	return d, err
}

// evaluatedBytes is what an edge takes that is evaluated with vectors on disk: the edge, and its
// place in the index of queries.
const evaluatedBytes = 12 + 64

// readData reads the edges of all splits and indexes them.
func readData(ctx context.Context, s *layout.Store, dev blockdev.Device, c *Config,
	budget *mem.Budget) (*data, error) {
	d, edges, err := newData(s.Meta(), c)
	if err != nil {
		return nil, err
	}
	indexed := 2 * edges // all edges, and the edges of a split while it is ranked
	if c.Negatives == setting.NegativesAll || c.FilterNegatives {
		indexed += edges
	}
	if err := budget.Reserve("edges and their index", 12*edges+triples.Bytes(indexed)); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	for _, split := range []struct {
		name string
		to   *[]triples.Triple
	}{{"train", &d.train}, {"val", &d.val}, {"test", &d.test}} {
		if *split.to, err = readSplit(ctx, s, dev, split.name); err != nil {
			return nil, err
		}
	}
	d.known = triples.NewIndex(d.train, d.val, d.test)
	if c.Negatives == setting.NegativesAll || c.FilterNegatives {
		d.trainIndex = triples.NewIndex(d.train)
	}
	return d, nil
}

// readSplit reads the edges of a split; nil if the store does not have the split.
func readSplit(ctx context.Context, s *layout.Store, dev blockdev.Device,
	split string) (out []triples.Triple, err error) {
	if edgefile.Bytes(s.Meta(), split) == 0 {
		return nil, nil
	}
	out = make([]triples.Triple, 0, s.Meta().SplitEdges(split))
	return out, entities.Split(ctx, s, dev, split, func(t triples.Triple) { out = append(out, t) })
}
