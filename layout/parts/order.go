package parts

import (
	"context"
	"errors"
	"fmt"
	"io"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/internal/message"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/ingest"
	"gdb/layout/ingest/input"
	"gdb/layout/ingest/source"
	"gdb/layout/ingest/steps"
	"gdb/layout/ingest/stream"
	"gdb/layout/openfiles"
	"gdb/layout/partitioner"
	"gdb/layout/rowfile"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// scanBytes is what reading lists, edges and rows in the order of their files takes, in bytes.
const scanBytes = 16 << 20

// OrderOptions say how the nodes of a store are put in order.
type OrderOptions struct {
	Out      string // the directory of the new store
	Method   partitioner.Method
	Parts    int // 2 to partitioner.Most
	Restream int // how often the lists are read again, to deal nodes anew
	Cluster  bool
	Seed     uint64
	Split    string // column of the splits whose training nodes are balanced; "" is the default
	// Memory bounds the memory of the process, in bytes; 0 is half of what is available.
	Memory   int64
	Threads  int
	Resume   bool
	Version  string // of gdb, for the catalog
	Progress func(phase string, done, total int64, unit string)
	Notes    io.Writer // of ingest; nil for none
	// Lists, if it is not nil, streams the lists of a store that keeps its order, as ingest.Sorted
	// says, in ListsBytes of memory.
	Lists func(ctx context.Context, dir layout.Direction,
		fn func(*stream.ListRun) error) error
	ListsBytes int64
}

// Order writes a store anew, with its nodes numbered by partition: a partition is a range of node
// ids, in which nodes have the order that they had. All that the store holds is kept, external ids
// too, but for its runs, whose checkpoints know nodes by number. It is an ingest: killed, it leaves
// no store, and goes on with Resume. It takes 2 bytes of memory a node to deal nodes, then 4 for
// their order beside what an ingest takes.
func Order(ctx context.Context, s *layout.Store, dev blockdev.Device, fs vfs.FS,
	opt OrderOptions) (meta *kv.Meta, report *partitioner.Report, err error) {
	if opt.Memory == 0 {
		opt.Memory = mem.Available() / 2
	}
	if opt.Parts < 2 {
		return nil, nil, input.AsUsage(fmt.Errorf("order: %d partitions: want 2 or more",
			opt.Parts))
	}
	if s.Meta().Typed() {
		return nil, nil, input.AsUsage(fmt.Errorf("order: %s: nodes of a type follow each other "+
			"there, and partitions would mix them: typed stores are not put into another order "+
			"so far", s.Dir()))
	}
	if err := refuseDeleted(ctx, s); err != nil {
		return nil, nil, err
	}
	files := openfiles.New(s, dev, mem.NewBudget(max(1, opt.Memory-steps.ProcessBytes-scanBytes)))
	defer func() { err = errors.Join(err, files.Close()) }()
	w, report, err := dealWhole(ctx, files, &opt)
	if w != nil {
		defer func() { err = errors.Join(err, w.close()) }()
	}
	if errors.Is(err, partitioner.ErrOptions) {
		return nil, nil, input.AsUsage(fmt.Errorf("order: %w", err))
	}
	if err != nil {
		return nil, nil, fmt.Errorf("order: %w", err)
	}
	held := files.Budget.Used() + scanBytes
	if least := held + steps.LeastBytes; opt.Memory < least {
		return nil, nil, input.AsUsage(fmt.Errorf("order: --memory %s is too small: %s nodes "+
			"need %s", mem.FormatSize(opt.Memory), fmt.Sprint(w.was.Nodes), mem.FormatSize(least)))
	}
	meta, err = ingest.RunAgain(ctx, fs, w, w.ingestOptions(&opt, opt.Memory-held))
	return meta, report, err
}

// Rewrite writes a store anew as it is: with the same identity, and its levels as one. It is what
// Order does with nodes that keep their order, and takes the memory of that.
func Rewrite(ctx context.Context, s *layout.Store, dev blockdev.Device, fs vfs.FS,
	opt OrderOptions) (meta *kv.Meta, err error) {
	if opt.Memory == 0 {
		opt.Memory = mem.Available() / 2
	}
	files := openfiles.New(s, dev, mem.NewBudget(max(1, opt.Memory-steps.ProcessBytes-scanBytes)))
	defer func() { err = errors.Join(err, files.Close()) }()
	w, err := newWhole(ctx, files)
	if w != nil {
		defer func() { err = errors.Join(err, w.close()) }()
	}
	if err != nil {
		return nil, err
	}
	w.given = opt.Lists
	o := w.ingestOptions(&opt, opt.Memory-files.Budget.Used()-scanBytes-opt.ListsBytes)
	o.UUID = s.Meta().UUID
	return ingest.RunAgain(ctx, fs, w, o)
}

// dealWhole deals the nodes of a store, and opens it to be written in their order.
func dealWhole(ctx context.Context, files *openfiles.Set, opt *OrderOptions) (w *whole,
	report *partitioner.Report, err error) {
	g, err := partitioner.OfStore(ctx, files, opt.Split)
	if err != nil {
		return nil, nil, err
	}
	deal := partitioner.Options{Method: opt.Method, Parts: opt.Parts, Passes: opt.Restream + 1,
		Cluster: opt.Cluster, Seed: opt.Seed, Budget: files.Budget}
	if opt.Progress != nil {
		deal.Progress = func(done, total uint64) {
			opt.Progress("deal nodes", int64(done), int64(total), "nodes")
		}
	}
	dealt, report, err := partitioner.Measure(ctx, g, deal)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, dealt.Close()) }()
	if w, err = newWhole(ctx, files); err != nil {
		return nil, nil, err
	}
	w.cut = report.Cut
	w.order, err = newNodeOrder(files.Budget, dealt, opt.Parts)
	return w, report, err
}

// ingestOptions returns the options of the ingest that writes the store anew.
func (w *whole) ingestOptions(opt *OrderOptions, memory int64) ingest.Options {
	o := ingest.Options{Options: source.Options{Sources: []string{w.files.Store.Dir()},
		AllowNaN: len(w.was.Features) > 0, Memory: memory, Notes: opt.Notes}, Out: opt.Out,
		Both: len(w.was.Directions) > 1, SplitColumn: max(0, w.was.SplitColumn),
		Partitioner: string(opt.Method), Partitions: opt.Parts, Restream: opt.Restream,
		Cluster: opt.Cluster, BlockBytes: w.was.BlockBytes, Threads: opt.Threads,
		Seed: opt.Seed, Resume: opt.Resume,
		Version: opt.Version, Progress: opt.Progress}
	if len(w.was.Features) > 0 && w.was.Features[0].DType != rowfile.Sparse {
		o.FeatureDType = w.was.Features[0].DType
	}
	return o
}

// Ingest is ingest.Run, for any partitioner: with one that reads lists, it ingests and then puts
// the nodes in order. Without one, report is nil.
func Ingest(ctx context.Context, fs vfs.FS, opt ingest.Options) (meta *kv.Meta,
	report *partitioner.Report, err error) {
	if !opt.Streams() {
		meta, err = ingest.Run(ctx, fs, opt)
		return meta, nil, err
	}
	dev, err := blockdev.Open(blockdev.Options{})
	if err != nil {
		return nil, nil, fmt.Errorf("ingest: %w", err)
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	meta, err = ingest.RunOrdered(ctx, fs, opt,
		func(ctx context.Context, first string) (*kv.Meta, error) {
			s, err := layout.Open(ctx, fs, first)
			if err != nil {
				return nil, err
			}
			var m *kv.Meta
			m, report, err = Order(ctx, s, dev, fs, OrderOptions{Out: opt.Out,
				Method: partitioner.Method(opt.Partitioner), Parts: opt.Partitions,
				Restream: opt.Restream, Cluster: opt.Cluster, Seed: opt.Seed,
				Memory: opt.Memory, Threads: opt.Threads,
				Resume: opt.Resume, Version: opt.Version, Progress: opt.Progress,
				Notes: opt.Notes})
			return m, err
		})
	return meta, report, err
}

// refuseDeleted returns an error if nodes of a store were deleted: its numbers have them still, and
// a store in another order would not know that they are not there.
func refuseDeleted(ctx context.Context, s *layout.Store) error {
	deleted, err := s.Deleted(ctx)
	if err != nil {
		return fmt.Errorf("order: %w", err)
	}
	if deleted == nil || deleted.IsEmpty() {
		return nil
	}
	return input.AsUsage(fmt.Errorf("order: %s has deleted nodes (%d), and the new store would "+
		"count them as nodes again: take %s export, and ingest the tables that it writes", s.Dir(),
		deleted.GetCardinality(), message.Program))
}
