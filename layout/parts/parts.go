// Package parts cuts a store into stores that need nothing from each other, one for each machine
// that trains: Algorithm 1 of Bai et al., "PaGraph", section 3.2. The training nodes are dealt to
// the parts; each part then gets a copy of all that batches of its training nodes reach.
//
// With L hops, a part has the whole in-neighbor lists of nodes that are less than L hops from its
// training nodes (its inner nodes); nodes at L hops have features, but no list. So a sampler with
// up to L hops finds in the part what it finds in the store.
//
// It also writes a store anew, with its nodes in the order of partitions of package partitioner.
package parts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"gdb/blockdev"
	"gdb/internal/files"
	"gdb/internal/mem"
	"gdb/internal/message"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/ingest"
	"gdb/layout/ingest/input"
	"gdb/layout/ingest/source"
	"gdb/layout/listfile"
	"gdb/layout/openfiles"
	"gdb/layout/rowfile"
	"gdb/layout/topology"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Most is the largest number of parts, and hopsMost the largest number of hops.
const Most, hopsMost = 1024, 64

// reportName is the name of the file beside the parts that holds the Report as JSON.
const reportName = "partition.json"

// partialSuffix ends the name of the directory in which parts are made, until all are complete.
const partialSuffix = ".partial"

// ingestLeast is the least memory for writing a part, and cacheLeast for the caches of reading, in
// bytes.
const ingestLeast, cacheLeast = 96 << 20, 8 << 20

// ErrUsage is returned if a store cannot be cut as the options say.
var ErrUsage = input.ErrUsage

// Options say how a store is cut.
type Options struct {
	Parts int // 1 to Most
	// Hops is how far batches reach from their seeds, which is the number of layers: 1 to 64.
	Hops int
	Out  string // a directory that does not exist yet
	// Memory bounds the memory of the process, in bytes.
	Memory  int64
	Threads int
	Version string // of gdb, for the catalogs
	// Progress is called with the phase, and the work done and in all; nil is not called.
	Progress func(phase string, done, total int64, unit string)
	Notes    io.Writer // of ingest; nil for none
}

// Report says what parts were made.
type Report struct {
	Parts []Part `json:"parts"`
	Hops  int    `json:"hops"`
	// Nodes and Train count nodes of the store that are not deleted, and Reached the nodes that are
	// in any part.
	Nodes   uint64 `json:"nodes"`
	Train   uint64 `json:"train"`
	Reached uint64 `json:"reached"`
	// Replication is the sum of the nodes of all parts divided by Reached; Balance is the training
	// nodes of the largest part divided by the mean.
	Replication float64 `json:"replication"`
	Balance     float64 `json:"balance"`
}

// Part describes one of the stores that were made.
type Part struct {
	Path  string `json:"path"`
	Nodes uint64 `json:"nodes"`
	Inner uint64 `json:"inner"` // nodes whose lists are complete
	Train uint64 `json:"train"`
	Edges uint64 `json:"edges"`
}

// Write cuts a store into parts, part0.gdb, part1.gdb, …, in opt.Out, which appears complete or not
// at all. What a killed process left is removed by the next Write to the same place.
func Write(ctx context.Context, s *layout.Store, dev blockdev.Device, fs vfs.FS, opt Options) (
	report *Report, err error) {
	if s.Meta().Typed() {
		return nil, fmt.Errorf("partition: %s: typed stores are not cut into parts so far", s.Dir())
	}
	train, err := validate(ctx, s, &opt)
	if err != nil {
		return nil, err
	}
	if _, err := fs.Stat(opt.Out); err == nil {
		return nil, fmt.Errorf("partition: %s is there already: delete it, or choose another --out",
			opt.Out)
	} else if !oserror.IsNotExist(err) {
		return nil, fmt.Errorf("partition: %w", err)
	}
	partial := strings.TrimRight(opt.Out, "/") + partialSuffix
	if len(s.Meta().EdgeTables) > 0 && opt.Notes != nil {
		// A note that cannot be written must not end the cutting.
		_, _ = fmt.Fprintln(opt.Notes, "partition: parts do not have the columns of edges")
	}
	unlock, err := begin(fs, partial)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, fs.RemoveAll(partial))
		}
		err = errors.Join(err, unlock())
	}()
	c := &cutter{store: s, dev: dev, fs: fs, opt: opt, train: train, partial: partial,
		budget: mem.NewBudget(max(cacheLeast, opt.Memory-ingestLeast))}
	if report, err = c.all(ctx); err != nil {
		return nil, err
	}
	return report, c.commit(report)
}

// validate checks that the store can be cut, and returns the training nodes.
func validate(ctx context.Context, s *layout.Store, opt *Options) (*roaring.Bitmap, error) {
	m := s.Meta()
	bad := func(format string, args ...any) (*roaring.Bitmap, error) {
		return nil, input.AsUsage(fmt.Errorf("partition: "+format, args...))
	}
	switch {
	case opt.Out == "":
		return bad("--out is missing: say where the parts go")
	case opt.Parts < 1 || opt.Parts > Most:
		return bad("--parts %d: want 1 to %d", opt.Parts, Most)
	case opt.Hops < 1 || opt.Hops > hopsMost:
		return bad("--hops %d: want 1 to %d, the layers of the model", opt.Hops, hopsMost)
	case len(m.EdgeSplits) > 0:
		return bad("the splits of this store are of its edges: parts are made of training nodes")
	}
	train, err := s.Split(ctx, m.SplitName("train", ""))
	if errors.Is(err, kv.ErrNotFound) {
		return bad("this store has no split train: %s split makes one", message.Program)
	}
	if err == nil && train.GetCardinality() < uint64(opt.Parts) {
		return bad("--parts %d of %d training nodes", opt.Parts, train.GetCardinality())
	}
	return train, err
}

// begin locks the directory in which parts are made, and empties it of what was left there.
func begin(fs vfs.FS, partial string) (unlock func() error, err error) {
	if err := fs.MkdirAll(fs.PathDir(partial), 0o755); err != nil {
		return nil, fmt.Errorf("partition: %w", err)
	}
	name := partial + ".lock"
	lock, err := files.Lock(fs, name)
	if errors.Is(err, files.ErrLockHeld) {
		return nil, fmt.Errorf("partition: another process makes these parts now: wait for it")
	}
	if err != nil {
		return nil, fmt.Errorf("partition: %w", err)
	}
	unlock = func() error { return errors.Join(fs.Remove(name), lock.Close()) }
	err = fs.RemoveAll(partial)
	if err == nil || oserror.IsNotExist(err) {
		err = fs.MkdirAll(partial, 0o755)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("partition: %w", err), unlock())
	}
	return unlock, nil
}

// cutter makes the parts.
type cutter struct {
	store   *layout.Store
	dev     blockdev.Device
	fs      vfs.FS
	opt     Options
	train   *roaring.Bitmap
	partial string
	budget  *mem.Budget
	files   *openfiles.Set
	reader  topology.Reader
}

// all deals the training nodes and writes all parts.
func (c *cutter) all(ctx context.Context) (report *Report, err error) {
	c.files = openfiles.New(c.store, c.dev, c.budget)
	defer func() { err = errors.Join(err, c.files.Close()) }()
	c.reader, err = c.files.Topology(ctx, layout.In,
		topology.Options{CacheBytes: max(cacheLeast/2, c.budget.Limit()/4)})
	if err != nil {
		return nil, err
	}
	dict, err := c.files.IDs(ctx, max(1<<20, c.budget.Limit()/16))
	if err != nil {
		return nil, err
	}
	p, err := c.newPart()
	if err != nil {
		return nil, err
	}
	p.dict = dict
	defer func() { err = errors.Join(err, p.free()) }()
	owner, release, err := c.deal(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, release()) }()
	deleted, err := c.store.Deleted(ctx)
	if err != nil {
		return nil, err
	}
	report = &Report{Hops: c.opt.Hops, Nodes: c.store.Meta().Nodes,
		Train: c.train.GetCardinality()}
	if deleted != nil {
		report.Nodes -= deleted.GetCardinality()
	}
	for i := range c.opt.Parts {
		for it := c.train.Iterator(); it.HasNext(); {
			if v := it.Next(); int(owner[v]) == i+1 {
				p.train.add(layout.NodeID(v))
			}
		}
		made, err := c.part(ctx, p, i)
		if err != nil {
			return nil, err
		}
		report.Parts = append(report.Parts, *made)
		p.reached.addAll(p.nodes)
		p.clear()
	}
	report.Reached = p.reached.count()
	report.ratios()
	return report, nil
}

// ratios computes Replication and Balance.
func (r *Report) ratios() {
	nodes, largest := uint64(0), uint64(0)
	for _, p := range r.Parts {
		nodes += p.Nodes
		largest = max(largest, p.Train)
	}
	r.Replication = float64(nodes) / float64(r.Reached)
	r.Balance = float64(largest) * float64(len(r.Parts)) / float64(r.Train)
}

// deal deals the training nodes. owner is the part of each node, from 1 on, 0 for none.
func (c *cutter) deal(ctx context.Context) (owner []uint16, release func() error, err error) {
	ses := c.reader.NewSession()
	defer ses.Release()
	d, err := newDealer(ses, c.store.Meta().Nodes, c.train.GetCardinality(), &c.opt, c.budget)
	if err != nil {
		return nil, nil, err
	}
	err = d.deal(ctx, c.train, func(done uint64) {
		c.progress("deal training nodes", done, c.train.GetCardinality(), "nodes")
	})
	if err != nil {
		return nil, nil, errors.Join(err, d.free())
	}
	arena := d.arena
	d.arena = nil
	return d.owner, arena.Free, d.free()
}

func (c *cutter) progress(phase string, done, total uint64, unit string) {
	if c.opt.Progress != nil {
		c.opt.Progress(phase, int64(done), int64(total), unit)
	}
}

// newPart makes the sets of a part. All parts use them, one after the other.
func (c *cutter) newPart() (p *part, err error) {
	p = &part{files: c.files, meta: c.store.Meta()}
	for _, set := range []**nodeSet{&p.train, &p.inner, &p.nodes, &p.level, &p.next, &p.reached} {
		if *set, err = newNodeSet(c.store.Meta().Nodes, c.budget); err != nil {
			return nil, errors.Join(err, p.free())
		}
	}
	return p, nil
}

// part writes one part, whose training nodes are in p.train.
func (c *cutter) part(ctx context.Context, p *part, i int) (*Part, error) {
	name := fmt.Sprintf("part%d", i)
	p.lists = c.reader.NewSession()
	defer p.lists.Release()
	c.progress("find nodes of "+name, uint64(i), uint64(c.opt.Parts), "parts")
	if err := p.reach(ctx, c.opt.Hops); err != nil {
		return nil, err
	}
	m := c.store.Meta()
	opt := ingest.Options{Options: source.Options{Sources: []string{c.store.Dir()},
		AllowNaN: len(m.Features) > 0, Memory: max(ingestLeast, c.opt.Memory-c.budget.Used()),
		Notes: c.opt.Notes}, Out: c.fs.PathJoin(c.partial, name+".gdb"), KeepDuplicates: true,
		BlockBytes: m.BlockBytes, Threads: c.opt.Threads, Version: c.opt.Version,
		Progress: func(phase string, done, total int64, unit string) {
			c.progress(name+": "+phase, uint64(done), uint64(total), unit)
		}}
	if len(m.Features) > 0 && m.Features[0].DType != rowfile.Sparse {
		opt.FeatureDType = m.Features[0].DType
	}
	made, err := ingest.RunSource(ctx, c.fs, p, opt)
	if err != nil {
		return nil, fmt.Errorf("partition: %s: %w", name, err)
	}
	return &Part{Path: c.fs.PathJoin(c.opt.Out, name+".gdb"), Nodes: made.Nodes,
		Inner: p.inner.count(), Train: p.train.count(), Edges: made.Edges}, nil
}

// commit moves the parts to their place, as the last step.
func (c *cutter) commit(report *Report) error {
	b, err := json.MarshalIndent(report, "", " ")
	if err != nil {
		return fmt.Errorf("partition: %w", err)
	}
	path := c.fs.PathJoin(c.partial, reportName)
	if err := files.WriteAtomic(c.fs, path, append(b, '\n')); err != nil {
		return fmt.Errorf("partition: %w", err)
	}
	if err := c.fs.Rename(c.partial, c.opt.Out); err != nil {
		return fmt.Errorf("partition: rename %s: %w", c.partial, err)
	}
	return files.SyncDir(c.fs, c.fs.PathDir(c.opt.Out))
}

// reach finds the nodes of a part, level by level: those that its training nodes draw from.
func (p *part) reach(ctx context.Context, hops int) error {
	p.nodes.addAll(p.train)
	p.level.addAll(p.train)
	for range hops {
		p.inner.addAll(p.level)
		err := eachList(ctx, p.lists, p.level, func(_ []layout.NodeID, l *listfile.Lists) error {
			for _, u := range l.Nbrs {
				if p.nodes.add(u) {
					p.next.add(u)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		p.level, p.next = p.next, p.level
		p.next.clear()
	}
	return nil
}

// clear empties the part for other training nodes.
func (p *part) clear() {
	for _, s := range []*nodeSet{p.train, p.inner, p.nodes, p.level} {
		s.clear()
	}
}

func (p *part) free() (err error) {
	for _, s := range []*nodeSet{p.train, p.inner, p.nodes, p.level, p.next, p.reached} {
		if s != nil {
			err = errors.Join(err, s.free())
		}
	}
	return err
}
