// Package partitioner deals the nodes of a graph to partitions that keep neighbors together, while
// it reads the lists once, in the order of the file. For each node it looks at the partitions of
// its neighbors that were dealt before it, and takes the one with the best score:
//
//   - LDG (Stanton and Kliot, "Streaming Graph Partitioning for Large Distributed Graphs"; Bai et
//     al., "PaGraph", section 3.2, build on it): the neighbors there, times the share of the
//     partition that is still free.
//   - Fennel (Tsourakakis et al.): the neighbors there, less a cost that grows with the partition.
//   - GAP (Hanoi, section 4.3.2, Eq. 4.2 and Algorithm 2): as Fennel, where each label of training
//     nodes has a cost of its own, so that every partition has its share of each.
//
// A partition without any neighbor of the node can only be better by its size. The best of these is
// the smallest, which a heap keeps on top; so a graph of V nodes and E entries of lists takes
// O(E + V log k) for k partitions, where Fennel's own description takes O(E + V k). Further passes
// deal the nodes anew, with the partitions of all neighbors known (Nishimura and Ugander,
// "Restreaming Graph Partitioning").
//
// It takes 2 bytes of memory for each node, and 12 for each partition and label. Options.Cluster
// takes more.
package partitioner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gdb/internal/mem"
	"gdb/internal/rng"
	"gdb/kv"
	"gdb/layout/listfile"
)

// Method is how the partition of a node is chosen.
type Method string

// The methods.
const (
	LDG    Method = "ldg"
	Fennel Method = "fennel"
	GAP    Method = "gap"
	// Random deals by chance, and Range by the order that nodes have. They read no lists.
	Random Method = "random"
	Range  Method = "range"
)

// Methods lists those that read the lists.
var Methods = []Method{LDG, Fennel, GAP}

// Words returns the names of all methods.
func Words() (words []string) {
	for _, m := range append(slices.Clone(Methods), Random, Range) {
		words = append(words, string(m))
	}
	return words
}

// Most is the largest number of partitions.
const Most = 1<<16 - 1

// none is the partition of a node that was not dealt yet.
const none = Most

// Graph is what is partitioned.
type Graph struct {
	Nodes   uint64
	Entries uint64 // of all lists
	// Scan calls fn with consecutive ranges of lists, as listfile.Scan does.
	Scan func(ctx context.Context,
		fn func(first kv.NodeID, cont bool, l *listfile.Lists) error) error
	// Labels writes the labels of consecutive nodes to out: below Classes, or Classes where a node
	// has none that has to be balanced. GAP alone reads it. With nil, no node has a label.
	Labels  func(ctx context.Context, first kv.NodeID, out []uint32) error
	Classes int
	// Count holds the number of nodes of each label, and of those without one at the end.
	Count []uint64

	// sizes says how many nodes each node stands for, stands in all, where nodes are clusters; the
	// weights of lists then say how many entries each entry stands for.
	sizes  []uint32
	stands uint64
}

// Options say how a graph is partitioned.
type Options struct {
	Method Method
	Parts  int // 1 to Most, and no more than nodes
	// Passes is how often the lists are read; each pass but the first deals all nodes anew.
	Passes int
	// Cluster clusters nodes before they are dealt: it cuts fewer edges, and takes some 13 passes
	// over the lists and 8 bytes of memory more for each node, and 16 for each entry of a list that
	// leads out of a cluster. Clusters that are dealt have no labels; nodes then have.
	Cluster bool
	Seed    uint64 // of Random
	Budget  *mem.Budget
	// Progress is called with the number of nodes that were dealt, of all passes; nil is not.
	Progress func(done, total uint64)
}

// ErrOptions is returned for options that make no sense.
var ErrOptions = errors.New("partitioner")

// Parts says which partition each node is in.
type Parts struct {
	Of    []uint16
	arena *mem.Arena
}

// Close frees the memory.
func (p *Parts) Close() error { return p.arena.Free() }

// reads reports whether the method reads the lists.
func (o *Options) reads() bool { return slices.Contains(Methods, o.Method) }

// fill deals nodes without their lists, to partitions whose sizes differ by at most one.
func (o *Options) fill(of []uint16) {
	n := uint64(len(of))
	perm := rng.NewPermutation(n, rng.Key(o.Seed, n))
	for v := range of {
		at := uint64(v)
		if o.Method == Random {
			at = perm.At(at)
		}
		of[v] = uint16(at * uint64(o.Parts) / n)
	}
}

// Deal deals the nodes of a graph. The caller closes the result. A graph gives the same partitions
// each time.
func Deal(ctx context.Context, g *Graph, opt Options) (*Parts, error) {
	switch {
	case opt.Parts < 1 || opt.Parts > Most || uint64(opt.Parts) > g.Nodes:
		return nil, fmt.Errorf("%w: %d partitions of %d nodes: want 1 to %d", ErrOptions,
			opt.Parts, g.Nodes, min(Most, g.Nodes))
	case !slices.Contains(Words(), string(opt.Method)):
		return nil, fmt.Errorf("%w: there is no method %q: want one of %s", ErrOptions, opt.Method,
			strings.Join(Words(), ", "))
	case opt.Passes < 1:
		return nil, fmt.Errorf("%w: lists are read %d times: want 1 or more", ErrOptions,
			opt.Passes)
	case opt.Cluster && !opt.reads():
		return nil, fmt.Errorf("%w: %s reads no lists, so that it has no clusters", ErrOptions,
			opt.Method)
	case opt.Passes > 1 && !opt.reads():
		return nil, fmt.Errorf("%w: %s reads no lists, so that it cannot read them again",
			ErrOptions, opt.Method)
	}
	a, err := mem.NewArena(opt.Budget, "partitions of nodes", 2*int64(g.Nodes))
	if err != nil {
		return nil, err
	}
	parts := &Parts{mem.View[uint16](a.Bytes())[:g.Nodes], a}
	if !opt.reads() {
		opt.fill(parts.Of)
		return parts, nil
	}
	for i := range parts.Of {
		parts.Of[i] = none
	}
	if opt.Cluster {
		err = dealClusters(ctx, g, &opt, parts.Of)
	}
	var d *dealer
	if err == nil {
		d, err = newDealer(g, &opt, parts.Of)
	}
	if err == nil {
		err = d.begin(ctx)
	}
	if err == nil {
		err = d.run(ctx, opt.Passes)
		d.held.Release()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("partitioner: %w", err), parts.Close())
	}
	return parts, nil
}
