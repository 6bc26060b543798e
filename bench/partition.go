package bench

import (
	"context"
	"errors"
	"fmt"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/openfiles"
	"gdb/layout/partitioner"
)

// PartitionOptions say what is partitioned, and how.
type PartitionOptions struct {
	Store   *layout.Store
	Device  blockdev.Device
	Split   string // of the training nodes whose labels are balanced
	Parts   []int
	Methods []string
	// Restream is how often the lists are read again after the first time.
	Restream int
	Cluster  bool  // nodes are clustered before they are dealt
	Memory   int64 // bounds the process, in bytes; 0 for no bound
	// Progress gets the nodes that were dealt, of all; nil for none.
	Progress func(phase string, done, total int64, unit string)
}

// Partition deals the nodes of a store by each method into each number of parts, and says how good
// the parts are, how long that took, and what memory. Rates are of the entries of lists that were
// read.
func Partition(ctx context.Context, opt PartitionOptions) (r *Report, err error) {
	budget := (&Workload{Memory: opt.Memory}).budget()
	files := openfiles.New(opt.Store, opt.Device, budget)
	defer func() { err = errors.Join(err, files.Close()) }()
	g, err := partitioner.OfStore(ctx, files, opt.Split)
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	r = newReport("partition", "method", "parts", "passes", "edge_cut", "node_balance",
		"edge_balance", "label_balance", "seconds", "edges_per_s", "peak_rss_bytes")
	for _, parts := range opt.Parts {
		for _, method := range opt.Methods {
			row, err := partitionRow(ctx, g, &opt, budget, method, parts)
			if err != nil {
				return nil, fmt.Errorf("bench: %w", err)
			}
			r.Rows = append(r.Rows, row)
		}
	}
	return r, nil
}

// partitionRow measures one method.
func partitionRow(ctx context.Context, g *partitioner.Graph, opt *PartitionOptions,
	budget *mem.Budget, method string, parts int) (row Row, err error) {
	o := partitioner.Options{Method: partitioner.Method(method), Parts: parts,
		Passes: opt.Restream + 1, Budget: budget, Cluster: opt.Cluster}
	if opt.Progress != nil {
		o.Progress = func(done, total uint64) {
			opt.Progress(method, int64(done), int64(total), "nodes")
		}
	}
	p, q, err := partitioner.Measure(ctx, g, o)
	if err != nil {
		return nil, err
	}
	row = Row{"method": method, "parts": parts, "passes": o.Passes, "edge_cut": q.Cut,
		"node_balance": q.Nodes, "edge_balance": q.Edges, "label_balance": q.Labels,
		"seconds": q.Seconds, "edges_per_s": q.Rate, "peak_rss_bytes": q.PeakRSS}
	if !q.HasLabel {
		row["label_balance"], row["why"] = nil, "no split train, whose labels would be balanced"
	}
	return row, p.Close()
}
