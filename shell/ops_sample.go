package shell

import (
	"context"
	"errors"
	"fmt"

	"gdb/layout/topology"
	"gdb/shell/lang"
	"gdb/shell/result"

	"github.com/RoaringBitmap/roaring/v2"

	"gdb/internal/mem"
	"gdb/internal/pace"
	"gdb/internal/trace"
	"gdb/layout"
	"gdb/sample"
)

// seed is that of the statement, of SET, or of the session.
func (x *execution) seed() uint64 {
	if v, ok := x.Args["SEED"]; ok {
		return uint64(v.N)
	}
	if seed, ok := x.engine.Seed(); ok {
		return seed
	}
	return x.defaultSeed
}

func planSample(x *execution) (*operator, error) {
	switch {
	case x.weighted() && !x.engine.Meta().Weighted:
		return nil, errors.New("STRATEGY weighted: the edges of this store have no weights: " +
			"ingest them with --weight-col NAME, or from weights.npy beside edges.npy")
	case x.Args["STRATEGY"].Text == "full":
		for i := range x.Args["FANOUT"].List {
			x.Args["FANOUT"].List[i] = sample.All
		}
	}
	in, err := x.opNodes("seeds", x.Operand.Nodes)
	if err != nil {
		return nil, err
	}
	if x.Has("SIZE") {
		in.rows = min(in.rows, float64(x.Args["SIZE"].N))
	}
	dirs, e := x.directions(layout.In), estimator{x.engine.Meta()}
	if err := x.engine.CheckDirections(dirs); err != nil {
		return nil, err
	}
	nodes, frontier := in.rows, in.rows
	for i, fanout := range x.Args["FANOUT"].List {
		in = x.opDraw(i+1, fanout, frontier, dirs, in)
		frontier = distinct(in.rows, float64(e.meta.Nodes))
		nodes += frontier
	}
	switch show := x.Args["SHOW"].Text; {
	case show == "dense" || show == "edges":
		in = x.opNames(in)
		in.rows = nodes
		return in, nil
	case show == "io" && len(e.meta.Features) > 0:
		in = x.opFeatures(in)
		in.rows = min(nodes, float64(e.meta.Nodes))
		return in, nil
	}
	return newOperator("layers", "", float64(len(x.Args["FANOUT"].List)), 0, in), nil
}

// opDraw is the operator of a hop. Uniform draws read the few entries they take; draws by weight,
// and of all neighbors, whole lists.
func (x *execution) opDraw(hop, fanout int, frontier float64, dirs []layout.Direction,
	in *operator) *operator {
	e, edges, blocks, most := estimator{x.engine.Meta()}, 0.0, 0.0, "all"
	for _, dir := range dirs {
		mean, met := e.degree(dir)
		if hop > 1 {
			mean = met
		}
		entries := 0.0
		if x.weighted() {
			entries = frontier * mean
		}
		blocks += e.listBlocks(dir, frontier, entries)
		edges += frontier * mean
	}
	if fanout > 0 {
		edges, most = min(edges, frontier*float64(fanout)), fmt.Sprintf("at most %d", fanout)
	}
	if x.weighted() {
		most += " by weight"
	}
	return newOperator(hopOperator(hop), x.listsDetail(dirs, -1)+", "+most, edges, blocks, in)
}

// weighted says that neighbors are drawn by weight.
func (x *execution) weighted() bool { return x.Args["STRATEGY"].Text == "weighted" }

// runSample draws one batch with the sampler that training uses. Memory: the batch.
func runSample(ctx context.Context, x *execution) error {
	seeds, err := x.resolve(ctx, "seeds", x.Operand.Nodes)
	if err != nil {
		return err
	}
	epoch, batch := x.place()
	if x.Has("SIZE") {
		seeds, err = x.batchSeeds(ctx, seeds, epoch, batch)
	} else {
		err = checkTwice(x.Operand.Nodes.IDs, seeds)
	}
	if err != nil {
		return err
	}
	var d sample.Dense
	if err := x.sample(ctx, seeds, epoch, batch, &d); err != nil {
		return err
	}
	switch x.Args["SHOW"].Text {
	case "dense":
		return x.showDense(ctx, &d)
	case "edges":
		return x.showEdges(ctx, &d)
	case "io":
		return x.showIO(ctx, &d)
	}
	return x.showLayers(&d)
}

// sample draws, and counts what each hop does.
func (x *execution) sample(ctx context.Context, seeds []layout.NodeID, epoch, batch uint64,
	d *sample.Dense) error {
	var topos []topology.Reader
	for _, dir := range x.directions(layout.In) {
		t, err := x.engine.Topology(ctx, dir)
		if err != nil {
			return err
		}
		topos = append(topos, hopTopology{t, x})
	}
	s, err := sample.NewSampler(topos, sample.Config{Fanout: x.Args["FANOUT"].List,
		Seed: x.seed(), Weighted: x.weighted(), Budget: x.engine.Budget})
	if err != nil {
		return err
	}
	before := x.watch.Switch(&x.root.span)
	err = s.Sample(ctx, epoch, batch, seeds, d)
	x.watch.Switch(before)
	s.Close()
	if err == nil {
		err = x.hold("the batch", (&sample.Batch{Dense: *d}).HeapBytes())
	}
	if err != nil {
		return err
	}
	first := d.NodeIDOffsets[1]
	for hop := d.Layers(); hop > 0; hop-- {
		lo, hi := d.NodeIDOffsets[hop], d.NodeIDOffsets[hop+1]
		edges := int(d.NbrOffsets[hi-first] - d.NbrOffsets[lo-first])
		name := hopOperator(d.Layers() - hop + 1)
		bytes := 4 * edges
		if x.weighted() {
			bytes *= 2 // the neighbor, and what the edge weighs
		}
		x.emit(name, edges, bytes)
		x.ops[name].in = result.Count(hi - lo)
	}
	return nil
}

// hopTopology counts the lists that a sampler reads: its sessions ask for the degrees of a frontier
// once a hop.
type hopTopology struct {
	topology.Reader
	x *execution
}

// NewSession returns a session that knows its hop.
func (t hopTopology) NewSession() topology.Session {
	return &hopSession{Session: t.Reader.NewSession(), x: t.x}
}

type hopSession struct {
	topology.Session
	x   *execution
	hop int
}

// Degrees begins a hop.
func (s *hopSession) Degrees(ctx context.Context, nodes []layout.NodeID, deg []uint32) error {
	s.hop++
	return s.Session.Degrees(s.enter(ctx), nodes, deg)
}

// Gather goes on with it.
func (s *hopSession) Gather(ctx context.Context, off, pos []uint32, out []layout.NodeID) error {
	return s.Session.Gather(s.enter(ctx), off, pos, out)
}

// Weights is a part of the hop too.
func (s *hopSession) Weights(ctx context.Context,
	fn func(i int, from uint32, w []float32) error) error {
	w, ok := s.Session.(topology.WeightReader)
	if !ok {
		return topology.ErrNoWeights
	}
	return w.Weights(s.enter(ctx), fn)
}

// enter lets the operator of the hop run until another begins.
func (s *hopSession) enter(ctx context.Context) context.Context {
	ctx, _ = s.x.enter(ctx, hopOperator(s.hop))
	return ctx
}

// place returns the epoch and batch to draw for, counted from 0 as the sampler does; users and the
// progress of a training count from 1.
func (x *execution) place() (epoch, batch uint64) {
	return uint64(x.IntOr("EPOCH", 1) - 1), uint64(x.IntOr("BATCH", 1) - 1)
}

// batchSeeds returns the seeds that a training on nodes, in batches of SIZE, has in a batch. Of
// multi-labels it trains on the nodes that have labels.
func (x *execution) batchSeeds(ctx context.Context, nodes []layout.NodeID,
	epoch, batch uint64) ([]layout.NodeID, error) {
	nodes, err := x.engine.Labeled(ctx, nodes)
	if err != nil {
		return nil, err
	}
	order, err := sample.EpochOrder(nodes, x.seed(), epoch, int(x.Args["SIZE"].N))
	if err != nil {
		return nil, err
	}
	if batch >= order.Batches() {
		return nil, fmt.Errorf("BATCH %d: an epoch has %d batches of %d", batch+1,
			order.Batches(), x.Args["SIZE"].N)
	}
	return order.Seeds(batch, nil), nil
}

// checkTwice reports a seed that was written twice, by the name that the user gave it.
func checkTwice(refs lang.NodeList, seeds []layout.NodeID) error {
	seen := roaring.New()
	for i, ref := range refs.All() {
		if !seen.CheckedAdd(uint32(seeds[i])) {
			return fmt.Errorf("node %s stands twice: a seed is in a batch once", ref)
		}
	}
	return nil
}

// hopName names delta i of a sample of k hops: the last delta is the seeds.
func hopName(i, k int) string {
	if i == k {
		return "seeds"
	}
	return fmt.Sprint(k - i)
}

func (x *execution) showLayers(d *sample.Dense) error {
	x.header("layer", "inputs", "outputs", "edges", "first output")
	var off, idx []uint32
	if d.Layers() > 1 { // the deeper layers are counted anew
		edges := len(d.Nbrs) - int(d.NbrOffsets[d.NodeIDOffsets[2]-d.NodeIDOffsets[1]])
		if err := x.hold("a layer", 4*int64(edges+len(d.NodeIDs)+1)); err != nil {
			return err
		}
		off, idx = make([]uint32, 0, len(d.NodeIDs)+1), make([]uint32, 0, edges)
	}
	for l := range d.Layers() {
		v := d.LayerView(l, off[:0], idx[:0])
		if l > 0 {
			off, idx = v.Off, v.Idx
		}
		if err := x.row(l+1, result.Count(v.In), result.Count(v.Out), result.Count(len(v.Idx)),
			v.Base+v.Skip); err != nil {
			return err
		}
	}
	return nil
}

// formatted is the work of a neighbor in a cell.
const formatted = 8

// showDense shows a row for each node, outermost hop first, with its list as local numbers.
func (x *execution) showDense(ctx context.Context, d *sample.Dense) error {
	x.header("local", "hop", "node", "nbr_offset", "nbrs (local)", "nbrs (node)")
	names, err := x.allNames(ctx, d.NodeIDs)
	if err != nil {
		return err
	}
	x.note("%s", denseText(d))
	cells := mem.NewAccount(x.engine.Budget, "the neighbors of one node")
	defer cells.Release()
	const copies = 6 // of a text while its row is written
	hop, sampled := 0, int(d.NodeIDOffsets[1])
	var steps pace.Steps
	for local, name := range names {
		for uint32(local) >= d.NodeIDOffsets[hop+1] {
			hop++
		}
		var offset any
		var loc, nbr []byte
		if local >= sampled {
			lo, hi := d.NbrOffsets[local-sampled], d.NbrOffsets[local-sampled+1]
			offset = lo
			for _, r := range d.ReprMap[lo:hi] {
				if err := steps.Took(ctx, formatted); err != nil {
					return err
				}
				loc = fmt.Appendf(loc, "%d ", r)
				nbr = fmt.Appendf(nbr, "%s ", names[r])
				n := copies * int64(len(loc)+len(nbr))
				if err := cells.AtLeast(n >> 16 << 16); err != nil { // whole 64 KiB
					return err
				}
			}
		}
		err := x.row(local, hopName(hop, d.Layers()), name, offset, trimmed(loc), trimmed(nbr))
		if err != nil {
			return err
		}
	}
	return nil
}

// denseText sums a batch up in one line.
func denseText(d *sample.Dense) string {
	text := fmt.Sprintf("%d nodes, %d edges", len(d.NodeIDs), len(d.Nbrs))
	for l := 1; l <= d.Layers(); l++ {
		form := ", layer %d locals %d..%d"
		if l == 1 {
			form = "; layer %d computes locals %d..%d"
		}
		text += fmt.Sprintf(form, l, d.NodeIDOffsets[l], len(d.NodeIDs))
	}
	return text
}

func trimmed(b []byte) string { return string(b[:max(len(b)-1, 0)]) }

func (x *execution) showEdges(ctx context.Context, d *sample.Dense) error {
	columns := []string{"hop", "node", "neighbor"}
	if x.weighted() {
		columns = append(columns, "weight")
	}
	x.header(columns...)
	names, err := x.allNames(ctx, d.NodeIDs)
	if err != nil {
		return err
	}
	first := d.NodeIDOffsets[1]
	for hop := d.Layers(); hop > 0; hop-- {
		for v := d.NodeIDOffsets[hop]; v < d.NodeIDOffsets[hop+1]; v++ {
			for k := d.NbrOffsets[v-first]; k < d.NbrOffsets[v-first+1]; k++ {
				row := []any{d.Layers() - hop + 1, names[v], names[d.ReprMap[k]]}
				if x.weighted() {
					row = append(row, d.Weights[k])
				}
				if err := x.row(row...); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// showIO shows what the batch took: lists, and features, which are gathered and dropped.
func (x *execution) showIO(ctx context.Context, d *sample.Dense) error {
	var lists trace.Counts
	for hop := 1; hop <= d.Layers(); hop++ {
		lists = lists.Add(x.ops[hopOperator(hop)].span.Counts())
	}
	x.header("what", "count")
	rows := [][2]any{{"nodes", result.Count(len(d.NodeIDs))}, {"edges", result.Count(len(d.Nbrs))},
		{"blocks", result.Count(lists.Cached + lists.Read)}, {"cached", result.Count(lists.Cached)},
		{"read", result.Count(lists.Read)}, {"bytes read", result.Size(lists.Bytes)}}
	if m := x.engine.Meta(); len(m.Features) > 0 {
		file, err := x.engine.Rows(ctx, m.Features[0])
		if err != nil {
			return err
		}
		err = x.featureRows(ctx, file, d.NodeIDs,
			func([]layout.NodeID, []float32) error { return nil })
		if err != nil {
			return err
		}
		c := x.ops["features"].span.Counts()
		rows = append(rows, [2]any{"feature reads", result.Count(c.Read)},
			[2]any{"feature bytes read", result.Size(c.Bytes)}, [2]any{"feature bytes used",
				result.Size(c.Used)})
	}
	for _, r := range rows {
		if err := x.row(r[0], r[1]); err != nil {
			return err
		}
	}
	return nil
}
