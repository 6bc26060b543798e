package ingest

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gdb/kv"
	"gdb/layout"
	"gdb/layout/ingest/extsort"
	"gdb/layout/ingest/input"
	"gdb/layout/ingest/source"
	"gdb/layout/ingest/steps"
	"gdb/layout/ingest/stream"
	"gdb/layout/listfile"
	"gdb/layout/splits"
)

// topologyResult is what writing the lists of one direction gives.
type topologyResult struct {
	Files      []kv.FileMeta
	Edges      uint64 // as stored
	Loops      uint64
	Duplicates uint64 // rows of the source that were dropped
	Hist       []uint64
	Max        uint64
	OutHist    []uint64 // if they can be counted in this pass
	OutMax     uint64
	Partitions []kv.Partition
	Types      []uint64
	// Divided are the splits of the edges, where they have any; of in-lists.
	Divided splits.EdgeResult
	Out     []extsort.Run // the edges, turned around, if out-lists are wanted
	Sources []extsort.Run // the sources of all edges, if their counters do not fit
	Degrees []extsort.Run // the degree of each node that has one, if features are made of it
}

// topology sorts the edges by destination and writes the in-lists.
func (p *pipeline) topology(ctx context.Context, s *scanResult, m *nodeMap) (*topologyResult,
	error) {
	runs, err := p.numberedEdges(ctx, s, m)
	if err != nil {
		return nil, err
	}
	r, err := steps.Do(ctx, p.Work, "in-lists", func(ctx context.Context,
		out *topologyResult) error {
		t := p.newListPass(layout.In, m, out)
		t.types = len(s.EdgeTypes)
		t.ranked = s.Mode == idRanked && !m.dense && m.perm == nil
		t.dedup = p.dropsDuplicates()
		if t.dedup && p.codec.Weighted {
			t.merge = stream.NewWeightMerge(p.opt.Merge)
		}
		out.Types = make([]uint64, len(s.EdgeTypes))
		for i := range m.parts() {
			out.Partitions = append(out.Partitions, m.part(i))
		}
		p.DropRuns(runs)
		return t.write(ctx, runs)
	})
	if err != nil || len(r.Sources) == 0 {
		return r, err
	}
	counted, err := steps.Do(ctx, p.Work, "out-degrees",
		func(ctx context.Context, out *topologyResult) error {
			p.DropRuns(r.Sources)
			return p.countSources(ctx, r.Sources, m.nodes, out)
		})
	if err != nil {
		return nil, err
	}
	r.OutHist, r.OutMax = counted.OutHist, counted.OutMax
	return r, nil
}

// outTopology writes the out-lists, if they are wanted.
func (p *pipeline) outTopology(ctx context.Context, in *topologyResult, m *nodeMap) (
	*topologyResult, error) {
	if !p.opt.Both {
		return nil, nil
	}
	return steps.Do(ctx, p.Work, "out-lists", func(ctx context.Context, out *topologyResult) error {
		p.DropRuns(in.Out)
		return p.newListPass(layout.Out, m, out).write(ctx, in.Out)
	})
}

// parts is the number of partitions, at least 1.
func (m *nodeMap) parts() int {
	return int(max(1, min(uint64(m.p.opt.Partitions), m.nodes)))
}

// part is the range of partition i: all have as many nodes, but for one.
func (m *nodeMap) part(i int) kv.Partition {
	n := uint64(m.parts())
	first := m.nodes / n * uint64(i)
	first += min(uint64(i), m.nodes%n)
	size := m.nodes / n
	if uint64(i) < m.nodes%n {
		size++
	}
	return kv.Partition{First: kv.NodeID(first), Nodes: size}
}

// listPass turns sorted edges into lists and counts them. Memory: the merge's buffers, for
// directed graphs an out-degree counter a node if that fits, and for out-lists another sorter.
type listPass struct {
	p      *pipeline
	m      *nodeMap
	out    *topologyResult
	dir    layout.Direction
	ranked bool // ids are still to be replaced by their rank
	dedup  bool
	width  int

	writer  *listfile.Writer
	turned  *extsort.Words         // for out-lists
	sources *extsort.Words         // for out-degrees that are not counted here
	counts  *stream.DegreeCounters // of out-degrees

	last   [extsort.WordsMax]uint64 // the record before, as it came
	held   bool                     // there is one
	merge  *stream.WeightMerge      // of parallel edges; nil if they have no weights, or are kept
	edge   listfile.Edge            // the one before
	node   uint64                   // of the list under way
	any    bool                     // an id was ranked
	id     uint64                   // the last that was
	rank   uint64                   // and its node
	degree uint64
	hist   stream.DegreeHist // of the lists
	part   int
	total  uint64
	done   uint64
	batch  []uint64 // records on their way to turned or sources
	// listed gets the degrees of the nodes; nil where they are not asked for.
	listed  *extsort.RunWriter
	divider *splits.EdgeDivider // nil where edges have no splits
	types   int                 // of edges
}

func (p *pipeline) newListPass(dir layout.Direction, m *nodeMap, out *topologyResult) *listPass {
	return &listPass{p: p, m: m, out: out, dir: dir, width: 1 + p.codec.Payload(),
		batch: make([]uint64, 0, scanBatchWords)}
}

// symmetric says that every edge's reverse is stored, so that out-degrees are in-degrees.
func (p *pipeline) symmetric() bool { return p.addsReverse() }

func (t *listPass) write(ctx context.Context, runs []extsort.Run) (err error) {
	if err := t.open(); err != nil {
		return errors.Join(err, t.close())
	}
	for _, r := range runs {
		t.total += r.Records
	}
	err = extsort.Merge(ctx, t.p.Sorter(t.dir.String(), t.width, t.p.Memory.Merge), runs, t.add)
	if err == nil {
		err = t.emitMerged()
	}
	if err == nil {
		err = t.finish()
	}
	return errors.Join(err, t.close())
}

func (t *listPass) open() (err error) {
	c := t.p.codec
	t.writer, err = listfile.NewWriter(t.p.FS, t.p.Path("topology/"+t.dir.String()),
		listfile.Spec{UUID: t.p.Journal.UUID, Direction: t.dir, Nodes: t.m.nodes,
			BlockBytes: t.p.opt.BlockBytes, Types: c.Typed, Weights: c.Weighted, Times: c.Timed})
	if err != nil || t.dir == layout.Out {
		return err
	}
	if t.divider, err = t.p.newDivider(t.m.nodes, t.types); err != nil {
		return err
	}
	if source.IsMade(t.p.opt.Features) {
		if t.listed, err = t.p.NewRun("degrees"); err != nil {
			return err
		}
	}
	switch {
	case t.p.opt.Both:
		t.turned, err = extsort.NewWords(t.p.Sorter("turned", t.width, t.p.Memory.Sort))
	case t.p.symmetric():
	case stream.DegreeCounterBytes(t.m.nodes) <= t.p.Memory.Counts:
		t.counts, err = stream.NewDegreeCounters(t.p.Budget, t.m.nodes)
	default:
		t.sources, err = extsort.NewWords(t.p.Sorter("sources", 1, t.p.Memory.Sort))
	}
	return err
}

// add takes a batch of sorted records.
func (t *listPass) add(words []uint64) error {
	for i := 0; i < len(words); i += t.width {
		rec := words[i : i+t.width]
		if t.dedup && t.held && t.p.codec.Same(rec, t.last[:]) {
			// Both directions of a row are dropped: count the one that points down, or a loop.
			if !t.p.symmetric() || rec[0]>>32 >= rec[0]&math.MaxUint32 {
				t.out.Duplicates++
			}
			if t.merge != nil {
				t.merge.Add(t.p.codec.WeightOf(rec), t.p.codec.NumberOf(rec))
			}
			if t.divider != nil {
				t.divider.Again(t.p.codec.SplitOf(rec))
			}
			continue
		}
		if err := t.emitMerged(); err != nil {
			return err
		}
		if err := t.beginDivided(rec); err != nil {
			return err
		}
		copy(t.last[:], rec)
		t.held = true
		if t.merge != nil {
			t.merge.Begin(t.p.codec.WeightOf(rec), t.p.codec.NumberOf(rec))
			continue
		}
		if err := t.emit(rec); err != nil {
			return err
		}
	}
	t.done += uint64(len(words) / t.width)
	t.p.Progress("write "+t.dir.String()+"-lists", t.done, t.total, "edges")
	return nil
}

// beginDivided begins a group of the divider.
func (t *listPass) beginDivided(rec []uint64) error {
	if t.divider == nil {
		return nil
	}
	number, reversed := t.p.codec.SplitOf(rec)
	if t.held && t.p.codec.Same(rec, t.last[:]) {
		before, _ := t.p.codec.SplitOf(t.last[:t.width])
		t.divider.Repeat(before, number, reversed)
	}
	return t.divider.Begin(number, reversed)
}

// emitMerged emits the edge whose parallel ones were merged into it, where edges are.
func (t *listPass) emitMerged() error {
	if t.merge == nil || !t.held {
		return nil
	}
	w, ok := t.merge.Weight()
	switch {
	case !ok:
		return t.errWeights("have different weights")
	case math.IsInf(float64(w), 0):
		return t.errWeights("have weights whose sum is not a finite number of float32")
	}
	rec := t.last
	t.p.codec.SetWeight(rec[:t.width], w)
	return t.emit(rec[:t.width])
}

// errWeights is the error of parallel edges whose weights are not merged.
func (t *listPass) errWeights(what string) error {
	node, nbr, err := t.ends(t.last[0])
	if err != nil {
		return err
	}
	ctx := context.Background()
	return &input.Error{Where: "edges", What: fmt.Sprintf("several edges from "+
		"%s to %s %s", t.m.external(ctx, uint32(nbr)), t.m.external(ctx, uint32(node)), what),
		Do: "say with --merge what becomes of them: sum, mean, min, max or last"}
}

// emit writes an edge.
func (t *listPass) emit(rec []uint64) error {
	node, nbr, err := t.ends(rec[0])
	if err != nil {
		return err
	}
	t.p.codec.Unpack(rec[1:], &t.edge)
	t.edge.Nbr = layout.NodeID(nbr)
	if t.divider != nil && !t.divider.Place(uint32(nbr), uint32(node), t.edge.Type) {
		return nil
	}
	if node != t.node || t.degree == 0 {
		if err := t.endList(); err != nil {
			return err
		}
		t.node = node
	}
	t.degree++
	if err := t.writer.AddEdge(layout.NodeID(node), t.edge); err != nil {
		return err
	}
	if t.dir != layout.In {
		return nil
	}
	return t.count(node, nbr, t.edge.Type, rec)
}

// ends returns the ends of an edge as nodes.
func (t *listPass) ends(pair uint64) (node, nbr uint64, err error) {
	id, nbr := pair>>32, pair&math.MaxUint32
	if !t.ranked {
		return id, nbr, nil
	}
	if id != t.id || !t.any {
		r, ok := t.m.set.Rank(id)
		if !ok {
			return 0, 0, t.errNoID(id)
		}
		t.any, t.id, t.rank = true, id, uint64(r)
	}
	r, ok := t.m.set.Rank(nbr)
	if !ok {
		return 0, 0, t.errNoID(nbr)
	}
	return t.rank, uint64(r), nil
}

func (t *listPass) errNoID(id uint64) error {
	return fmt.Errorf("ingest: id %d of an edge is not in the set of ids: %w", id,
		extsort.ErrDamaged)
}

// count counts an in-edge in the statistics, and hands it on to what needs it by source.
func (t *listPass) count(node, nbr uint64, typ uint16, rec []uint64) error {
	if node == nbr {
		t.out.Loops++
	}
	if t.p.codec.Typed {
		t.out.Types[typ]++
	}
	parts := t.out.Partitions
	for node >= uint64(parts[t.part].First)+parts[t.part].Nodes {
		t.part++
	}
	parts[t.part].Edges++
	switch {
	case t.counts != nil:
		t.batch = append(t.batch, nbr)
		if len(t.batch) == cap(t.batch) {
			t.counts.Add(t.batch)
			t.batch = t.batch[:0]
		}
	case t.turned != nil:
		t.batch = append(t.batch, nbr<<32|node)
		t.batch = append(t.batch, rec[1:]...)
		return t.flush(t.turned, t.width)
	case t.sources != nil:
		t.batch = append(t.batch, nbr)
		return t.flush(t.sources, 1)
	}
	return nil
}

// flush hands the batch to a sorter when it is full; width 0 is always.
func (t *listPass) flush(s *extsort.Words, width int) error {
	if width > 0 && len(t.batch)+width <= cap(t.batch) {
		return nil
	}
	err := s.Add(t.batch)
	t.batch = t.batch[:0]
	return err
}

// endList counts the list that ends.
func (t *listPass) endList() error {
	if t.degree == 0 {
		return nil
	}
	if t.listed != nil {
		if err := t.listed.Add(extsort.Entry{Key: t.node, Aux: t.degree}); err != nil {
			return err
		}
	}
	t.hist.Add(t.degree, 1)
	t.out.Edges += t.degree
	t.degree = 0
	return nil
}

func (t *listPass) finish() (err error) {
	if err := t.endList(); err != nil {
		return err
	}
	if t.listed != nil {
		run, err := t.listed.Finish()
		if err != nil {
			return err
		}
		t.listed, t.out.Degrees = nil, []extsort.Run{run}
		t.p.KeepRuns(t.out.Degrees)
	}
	t.hist.SetRest(t.m.nodes)
	t.out.Hist, t.out.Max = t.hist.Nodes, t.hist.Max
	if t.out.Files, err = t.writer.Finish(); err != nil {
		return err
	}
	t.writer = nil
	t.p.KeepFiles(t.out.Files...)
	if t.divider != nil {
		if t.out.Divided, err = t.divider.Finish(); err != nil {
			return err
		}
		t.p.KeepFiles(t.out.Divided.Files...)
	}
	switch {
	case t.counts != nil:
		t.counts.Add(t.batch)
		h := t.counts.Hist()
		t.out.OutHist, t.out.OutMax = h.Nodes, h.Max
	case t.turned != nil:
		t.out.Out, err = t.finishSorter(t.turned)
	case t.sources != nil:
		t.out.Sources, err = t.finishSorter(t.sources)
	case t.dir == layout.In:
		t.out.OutHist, t.out.OutMax = t.out.Hist, t.out.Max
	}
	return err
}

func (t *listPass) finishSorter(s *extsort.Words) ([]extsort.Run, error) {
	if err := t.flush(s, 0); err != nil {
		return nil, err
	}
	runs, err := s.Finish()
	t.p.KeepRuns(runs)
	return runs, err
}

// close frees what finish did not.
func (t *listPass) close() error {
	var errs []error
	if t.listed != nil {
		_, err := t.listed.Finish()
		errs = append(errs, err)
	}
	if t.divider != nil {
		errs = append(errs, t.divider.Abort())
	}
	if t.writer != nil {
		errs = append(errs, t.writer.Abort())
	}
	if t.counts != nil {
		errs = append(errs, t.counts.Free())
	}
	for _, s := range []*extsort.Words{t.turned, t.sources} {
		if s != nil {
			errs = append(errs, s.Abort())
		}
	}
	return errors.Join(errs...)
}

// countSources counts out-degrees from the sorted sources of all edges.
func (p *pipeline) countSources(ctx context.Context, runs []extsort.Run, nodes uint64,
	out *topologyResult) error {
	var counts stream.SortedDegrees
	err := extsort.Merge(ctx, p.Sorter("sources", 1, p.Memory.Merge), runs,
		func(words []uint64) error {
			counts.Add(words)
			return nil
		})
	h := counts.Hist(nodes)
	out.OutHist, out.OutMax = h.Nodes, h.Max
	return err
}
