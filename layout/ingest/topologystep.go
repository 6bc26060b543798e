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
	"gdb/layout/ingest/tables"
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
	Places  []extsort.Run // of edges in lists, for the tables of edges: see tables.Places
	// Tables are the tables of edges that carry their rows.
	Tables  *tables.EdgeTables
	Degrees []extsort.Run     // the degree of each node that has one, if features are made of it
	Pairs   stream.PairCounts // of edges that come sorted
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
		t.placer.ranked = s.Mode == idRanked && !m.dense && m.perm == nil
		t.dedup.drops = p.dropsDuplicates()
		if t.dedup.drops && p.codec.Weighted {
			t.dedup.merge = stream.NewWeightMerge(p.opt.Merge)
		}
		out.Types = make([]uint64, len(s.EdgeTypes))
		for i := range m.parts() {
			out.Partitions = append(out.Partitions, m.part(i))
		}
		p.DropRuns(runs)
		return t.write(ctx, runs)
	})
	if err == nil && p.sorted() != nil {
		s.Pairs = r.Pairs
	}
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

// parts returns the number of partitions, at least 1.
func (m *nodeMap) parts() int {
	if m.p.again != nil && m.p.again.Parts() != nil {
		return len(m.p.again.Parts())
	}
	return int(max(1, min(uint64(m.p.opt.Partitions), m.nodes)))
}

// part returns the range of partition i: the first partitions may have one node more than the
// others.
func (m *nodeMap) part(i int) kv.Partition {
	if m.p.again != nil && m.p.again.Parts() != nil {
		return m.p.again.Parts()[i]
	}
	n := uint64(m.parts())
	first := m.nodes / n * uint64(i)
	first += min(uint64(i), m.nodes%n)
	size := m.nodes / n
	if uint64(i) < m.nodes%n {
		size++
	}
	return kv.Partition{First: kv.NodeID(first), Nodes: size}
}

// listPass writes the lists of one direction from sorted records, which go through a chain:
//
//	dedup    drops parallel edges, or merges their weights into one
//	placer   finds the nodes of the ends, and takes edges of other splits than train out
//	lists    writes the lists and counts their degrees
//	tally    counts in-edges, and hands them on by source
//
// Memory: the merge's buffers, for directed graphs an out-degree counter a node if that fits, and
// for out-lists another sorter.
type listPass struct {
	p           *pipeline
	m           *nodeMap
	out         *topologyResult
	dir         layout.Direction
	width       int // words of a record
	dedup       dedup
	placer      placer
	lists       lists
	tally       tally
	total, done uint64 // records
}

func (p *pipeline) newListPass(dir layout.Direction, m *nodeMap, out *topologyResult) *listPass {
	codec := p.codec
	if dir == layout.Out { // where edges do not need their numbers and rows any more
		codec = codec.Values()
	}
	t := &listPass{p: p, m: m, out: out, dir: dir, width: 1 + codec.Payload()}
	t.dedup = dedup{codec: codec, symmetric: p.addsReverse(), next: &t.placer}
	t.placer = placer{codec: codec, m: m, lists: &t.lists}
	return t
}

func (t *listPass) write(ctx context.Context, runs []extsort.Run) (err error) {
	if err := t.open(); err != nil {
		return errors.Join(err, t.close())
	}
	for _, r := range runs {
		t.total += r.Records
	}
	if sorted := t.p.sorted(); sorted != nil {
		err = t.stream(ctx, sorted)
	} else {
		err = extsort.Merge(ctx, t.p.Sorter(t.dir.String(), t.width, t.p.Memory.Merge), runs, t.add)
	}
	if err == nil {
		err = t.dedup.flush()
	}
	if err == nil {
		err = t.finish()
	}
	return errors.Join(err, t.close())
}

func (t *listPass) open() (err error) {
	c := t.p.codec
	if t.placer.numbers, err = t.p.listsOf(t.p.firsts, t.m.nodes, t.dir); err != nil {
		return err
	}
	t.lists.writer, err = listfile.NewWriter(t.p.FS, t.p.Path("topology/"+t.dir.String()),
		listfile.Spec{UUID: t.p.Journal.UUID, Direction: t.dir, Nodes: t.m.nodes,
			Lists: t.placer.numbers, BlockBytes: t.p.opt.BlockBytes,
			Types: c.Typed && t.placer.numbers == nil, Weights: c.Weighted, Times: c.Timed})
	if err != nil || t.dir == layout.Out {
		return err
	}
	if t.placer.divider, err = t.p.newDivider(t.m.nodes, len(t.out.Types)); err != nil {
		return err
	}
	t.dedup.divider = t.placer.divider
	if source.IsMade(t.p.opt.Features) {
		if t.lists.degrees, err = t.p.NewRun("degrees"); err != nil {
			return err
		}
	}
	t.placer.tally = &t.tally
	if t.placer.carries = c.RowBytes > 0; t.placer.carries {
		err = t.placer.carried.Open(t.p.edgesOf(t.m))
	} else {
		err = t.placer.places.Open(t.p.Work, t.p.info)
	}
	if err != nil {
		return err
	}
	return t.openTally()
}

// openTally chooses what becomes of edges by source.
func (t *listPass) openTally() (err error) {
	t.tally.out, t.tally.typed = t.out, t.p.codec.Typed
	t.tally.batch = make([]uint64, 0, scanBatchWords)
	switch {
	case t.p.opt.Both && t.p.sorted() != nil: // out-lists come sorted too
	case t.p.opt.Both:
		if t.tally.numbers, err = t.p.listsOf(t.p.firsts, t.m.nodes, layout.Out); err != nil {
			return err
		}
		t.tally.turns, t.tally.sortWidth = true, 1+t.p.codec.Values().Payload()
		t.tally.sorter, err = extsort.NewWords(t.p.Sorter("turned", t.tally.sortWidth,
			t.p.Memory.Sort))
	case t.p.addsReverse():
	case stream.DegreeCounterBytes(t.m.nodes) <= t.p.Memory.Counts:
		t.tally.counts, err = stream.NewDegreeCounters(t.p.Budget, t.m.nodes)
	default:
		t.tally.sortWidth = 1
		t.tally.sorter, err = extsort.NewWords(t.p.Sorter("sources", 1, t.p.Memory.Sort))
	}
	return err
}

// add takes a batch of sorted records.
func (t *listPass) add(words []uint64) error {
	for i := 0; i < len(words); i += t.width {
		if err := t.dedup.add(words[i : i+t.width]); err != nil {
			return err
		}
	}
	t.done += uint64(len(words) / t.width)
	t.p.Progress("write "+t.dir.String()+"-lists", t.done, t.total, "edges")
	return nil
}

func (t *listPass) finish() (err error) {
	if err := t.lists.endList(); err != nil {
		return err
	}
	if t.lists.degrees != nil {
		run, err := t.lists.degrees.Finish()
		if err != nil {
			return err
		}
		t.lists.degrees, t.out.Degrees = nil, []extsort.Run{run}
		t.p.KeepRuns(t.out.Degrees)
	}
	t.lists.hist.SetRest(t.m.nodes)
	t.out.Hist, t.out.Max = t.lists.hist.Nodes, t.lists.hist.Max
	t.out.Edges, t.out.Duplicates = t.lists.edges, t.dedup.dropped
	if t.out.Files, err = t.lists.writer.Finish(); err != nil {
		return err
	}
	t.lists.writer = nil
	t.p.KeepFiles(t.out.Files...)
	if t.placer.divider != nil {
		if t.out.Divided, err = t.placer.divider.Finish(); err != nil {
			return err
		}
		t.p.KeepFiles(t.out.Divided.Files...)
	}
	if t.out.Places, err = t.placer.places.Finish(); err != nil {
		return err
	}
	t.p.KeepRuns(t.out.Places)
	if t.placer.carries {
		if t.out.Tables, err = t.placer.carried.Finish(); err != nil {
			return err
		}
	}
	return t.finishTally()
}

func (t *listPass) finishTally() (err error) {
	switch {
	case t.tally.counts != nil:
		t.tally.counts.Add(t.tally.batch)
		h := t.tally.counts.Hist()
		t.out.OutHist, t.out.OutMax = h.Nodes, h.Max
	case t.tally.sorter != nil:
		if err := t.tally.sorter.Add(t.tally.batch); err != nil {
			return err
		}
		runs, err := t.tally.sorter.Finish()
		t.p.KeepRuns(runs)
		if t.tally.turns {
			t.out.Out = runs
		} else {
			t.out.Sources = runs
		}
		return err
	case t.dir == layout.In:
		t.out.OutHist, t.out.OutMax = t.out.Hist, t.out.Max
	}
	return nil
}

// close frees what finish did not.
func (t *listPass) close() error {
	var errs []error
	if t.lists.degrees != nil {
		_, err := t.lists.degrees.Finish()
		errs = append(errs, err)
	}
	if t.placer.divider != nil {
		errs = append(errs, t.placer.divider.Abort())
	}
	if t.lists.writer != nil {
		errs = append(errs, t.lists.writer.Abort())
	}
	errs = append(errs, t.placer.places.Close(), t.placer.carried.Close())
	if t.tally.counts != nil {
		errs = append(errs, t.tally.counts.Free())
	}
	if t.tally.sorter != nil {
		errs = append(errs, t.tally.sorter.Abort())
	}
	return errors.Join(errs...)
}

// dedup drops records of parallel edges, which follow each other, or merges their weights.
type dedup struct {
	codec     stream.EdgeCodec
	symmetric bool                // the reverse of every edge is stored
	drops     bool                // parallel edges
	merge     *stream.WeightMerge // of those that are dropped; nil if they have no weights
	divider   *splits.EdgeDivider // nil where edges have no splits
	last      [extsort.WordsMax]uint64
	held      bool   // last is a record
	dropped   uint64 // rows of the source
	next      *placer
}

func (d *dedup) add(rec []uint64) error {
	if d.drops && d.held && d.codec.Same(rec, d.last[:]) {
		// Both directions of a row are dropped: count the one that points down, or a loop.
		if !d.symmetric || rec[0]>>32 >= rec[0]&math.MaxUint32 {
			d.dropped++
		}
		if d.merge != nil {
			d.merge.Add(d.codec.WeightOf(rec), d.codec.NumberOf(rec))
		}
		if d.divider != nil {
			d.divider.Again(d.codec.SplitOf(rec))
		}
		return nil
	}
	if err := d.flush(); err != nil {
		return err
	}
	if d.divider != nil {
		if err := d.beginGroup(rec); err != nil {
			return err
		}
	}
	copy(d.last[:], rec)
	d.held = true
	if d.merge != nil {
		d.merge.Begin(d.codec.WeightOf(rec), d.codec.NumberOf(rec))
		return nil
	}
	return d.next.add(rec)
}

// beginGroup begins a group of the divider.
func (d *dedup) beginGroup(rec []uint64) error {
	number, reversed := d.codec.SplitOf(rec)
	if d.held && d.codec.Same(rec, d.last[:]) {
		before, _ := d.codec.SplitOf(d.last[:len(rec)])
		d.divider.Repeat(before, number, reversed)
	}
	return d.divider.Begin(number, reversed)
}

// flush hands the edge on into which weights are merged, if there is one.
func (d *dedup) flush() error {
	if d.merge == nil || !d.held {
		return nil
	}
	w, ok := d.merge.Weight()
	switch {
	case !ok:
		return d.next.errWeights(d.last[0], "have different weights")
	case math.IsInf(float64(w), 0):
		return d.next.errWeights(d.last[0], "have weights whose sum is not a finite number of "+
			"float32")
	}
	rec := d.last
	d.codec.SetWeight(rec[:1+d.codec.Payload()], w)
	return d.next.add(rec[:1+d.codec.Payload()])
}

// placer finds the nodes of the ends of an edge. Edges of other splits than train are in no list.
type placer struct {
	codec   stream.EdgeCodec
	m       *nodeMap
	numbers *layout.NodeLists // nil if the first end is a node, and not a list
	ranked  bool              // ends are ids, and their nodes are their ranks in the set of m
	divider *splits.EdgeDivider
	edge    listfile.Edge
	any     bool   // an id was ranked, or a list
	id      uint64 // the last that was
	rank    uint64 // and its node
	lists   *lists
	tally   *tally // nil for out-lists
	// Of in-lists: edges carry the rows of their tables, or their places are noted for these.
	carries bool
	carried tables.Carried
	row     stream.RowBuffer
	places  tables.Places
}

func (t *placer) add(rec []uint64) error {
	node, nbr, err := t.ends(rec[0])
	if err != nil {
		return err
	}
	if len(rec) > 1 {
		t.codec.Unpack(rec[1:], &t.edge)
	}
	t.edge.Nbr = layout.NodeID(nbr)
	if t.divider != nil && !t.divider.Place(uint32(nbr), uint32(node), t.edge.Type) {
		return nil
	}
	if err := t.lists.add(node, t.edge); err != nil || t.tally == nil {
		return err
	}
	if t.carries {
		err = t.carried.Add(node, t.edge.Type, t.codec.RowOf(rec, &t.row))
	} else {
		err = t.places.Add(node, t.edge.Type, t.codec.NumberOf(rec))
	}
	if err != nil {
		return err
	}
	return t.tally.add(node, nbr, t.edge.Type, rec[1:])
}

// ends returns the ends of an edge as nodes.
func (t *placer) ends(pair uint64) (node, nbr uint64, err error) {
	id, nbr := pair>>32, pair&math.MaxUint32
	if t.numbers != nil {
		if id != t.id || !t.any {
			v, _ := t.numbers.Node(layout.NodeID(id))
			t.any, t.id, t.rank = true, id, uint64(v)
		}
		return t.rank, nbr, nil
	}
	if !t.ranked {
		return id, nbr, nil
	}
	if id != t.id || !t.any {
		r, ok := t.m.set.Rank(id)
		if !ok {
			return 0, 0, errNoID(id)
		}
		t.any, t.id, t.rank = true, id, uint64(r)
	}
	r, ok := t.m.set.Rank(nbr)
	if !ok {
		return 0, 0, errNoID(nbr)
	}
	return t.rank, uint64(r), nil
}

func errNoID(id uint64) error {
	return fmt.Errorf("ingest: id %d of an edge is not in the set of ids: %w", id,
		extsort.ErrDamaged)
}

// errWeights returns the error of parallel edges whose weights are not merged.
func (t *placer) errWeights(pair uint64, what string) error {
	node, nbr, err := t.ends(pair)
	if err != nil {
		return err
	}
	ctx := context.Background()
	from, to := t.m.external(ctx, uint32(nbr)), t.m.external(ctx, uint32(node))
	return input.Wrong("edges", "say with --merge what becomes of them: sum, mean, min, max or "+
		"last", "several edges from %s to %s %s", from, to, what)
}

// lists writes the lists of the nodes, which come in order.
type lists struct {
	writer  *listfile.Writer
	degrees *extsort.RunWriter // gets the degrees of nodes; nil where they are not asked for
	node    uint64             // of the list under way
	degree  uint64
	hist    stream.DegreeHist
	edges   uint64
}

func (l *lists) add(node uint64, e listfile.Edge) error {
	if node != l.node || l.degree == 0 {
		if err := l.endList(); err != nil {
			return err
		}
		l.node = node
	}
	l.degree++
	return l.writer.AddEdge(layout.NodeID(node), e)
}

// endList counts the list that ends.
func (l *lists) endList() error {
	if l.degree == 0 {
		return nil
	}
	if l.degrees != nil {
		if err := l.degrees.Add(extsort.Entry{Key: l.node, Aux: l.degree}); err != nil {
			return err
		}
	}
	l.hist.Add(l.degree, 1)
	l.edges += l.degree
	l.degree = 0
	return nil
}

// tally counts in-edges in the statistics, and hands them on to what needs them by source.
type tally struct {
	out       *topologyResult
	typed     bool
	part      int                    // of the node
	counts    *stream.DegreeCounters // of out-degrees, if they fit
	sorter    *extsort.Words         // of turned edges, or of sources
	turns     bool                   // sorter gets edges, for out-lists
	numbers   *layout.NodeLists      // of out-lists; nil if nodes have one each
	sortWidth int                    // words of its records
	batch     []uint64               // on its way to counts or sorter
}

func (t *tally) add(node, nbr uint64, typ uint16, payload []uint64) error {
	if node == nbr {
		t.out.Loops++
	}
	if t.typed {
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
		return nil
	case t.sorter == nil:
		return nil
	case t.turns:
		pair, err := pairOf(t.numbers, nbr, node, typ)
		if err != nil {
			return err
		}
		t.batch = append(t.batch, pair)
		t.batch = append(t.batch, payload[:t.sortWidth-1]...)
	default:
		t.batch = append(t.batch, nbr)
	}
	if len(t.batch)+t.sortWidth <= cap(t.batch) {
		return nil
	}
	err := t.sorter.Add(t.batch)
	t.batch = t.batch[:0]
	return err
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
