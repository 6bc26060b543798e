package query

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gdb/internal/mem"
	"gdb/internal/pace"
	"gdb/internal/trace"
	"gdb/layout"
	"gdb/layout/topology"
	"gdb/sample"
	"gdb/shell/exec"
	"gdb/shell/lang"
	"gdb/shell/words"

	"github.com/RoaringBitmap/roaring/v2"
)

// sampling runs SAMPLE: it draws one batch with the sampler that training uses. It takes the memory
// of the batch.
type sampling struct {
	x      *exec.Execution
	dirs   []layout.Direction
	fanout []int

	seeds    *exec.Find
	draws    []*exec.Operator // one for each hop
	names    exec.Names       // for SHOW dense and edges
	features exec.Features    // for SHOW io, if the store has features
	root     *exec.Operator
}

func planSample(x *exec.Execution) (*exec.Plan, error) {
	s := &sampling{x: x, dirs: x.Directions(layout.In), fanout: x.Args["FANOUT"].List}
	if s.weighted() && !x.Graph.Meta().Weighted {
		return nil, errors.New("STRATEGY weighted: the edges of this store have no weights: " +
			"ingest them with --weight-col NAME, or from weights.npy beside edges.npy")
	}
	if s.latest() && !x.Graph.Meta().Timestamped {
		return nil, errors.New("STRATEGY latest: the edges of this store have no times: " +
			"ingest them with --time-col NAME, or from times.npy beside edges.npy")
	}
	if x.Args["STRATEGY"].Text == "full" {
		s.fanout = slices.Repeat([]int{sample.All}, len(s.fanout))
	}
	var err error
	if s.seeds, err = x.Find("seeds", x.Operand.Nodes); err != nil {
		return nil, err
	}
	if x.Has("SIZE") {
		s.seeds.Rows = min(s.seeds.Rows, float64(x.Args["SIZE"].N))
	}
	if err := x.Graph.CheckDirections(s.dirs); err != nil {
		return nil, err
	}
	s.planShown(s.planDraws())
	return &exec.Plan{Root: s.root, Run: s.run}, nil
}

// planDraws plans the hops, and returns an estimate of the nodes of the batch.
func (s *sampling) planDraws() (nodes float64) {
	all := float64(s.x.Graph.Meta().Nodes)
	in := s.seeds.Operator
	nodes, frontier := in.Rows, in.Rows
	for i, fanout := range s.fanout {
		in = s.draw(i+1, fanout, frontier, in)
		s.draws = append(s.draws, in)
		frontier = exec.Distinct(in.Rows, all)
		nodes += frontier
	}
	return nodes
}

// planShown plans what is shown of a batch that has about nodes nodes.
func (s *sampling) planShown(nodes float64) {
	x, in := s.x, s.draws[len(s.draws)-1]
	switch show := x.Args["SHOW"].Text; {
	case show == "dense" || show == "edges":
		s.names = x.Names(in)
		s.root = s.names.Operator
		s.root.Rows = nodes
	case show == "io" && len(x.Graph.Meta().Features) > 0:
		s.features = x.Features(in)
		s.root = s.features.Operator
		s.root.Rows = min(nodes, float64(x.Graph.Meta().Nodes))
	default:
		s.root = x.Operator("layers", "", float64(len(s.fanout)), 0, in)
	}
}

// draw returns the operator of a hop. Uniform draws read only the entries that they take; draws by
// weight or by time, and draws of all neighbors, read whole lists.
func (s *sampling) draw(hop, fanout int, frontier float64, in *exec.Operator) *exec.Operator {
	e, edges, blocks, most := s.x.Estimates(), 0.0, 0.0, "all"
	for _, dir := range s.dirs {
		mean, met := e.Degree(dir)
		if hop > 1 {
			mean = met
		}
		entries := 0.0
		if s.weighted() || s.latest() {
			entries = frontier * mean
		}
		blocks += e.ListBlocks(dir, frontier, entries)
		edges += frontier * mean
	}
	if fanout > 0 {
		edges, most = min(edges, frontier*float64(fanout)), fmt.Sprintf("at most %d", fanout)
	}
	switch {
	case s.weighted():
		most += " by weight"
	case s.latest():
		most += ", the latest"
	}
	return s.x.Operator(hopName(hop), s.x.ListsDetail(s.dirs, -1)+", "+most, edges, blocks, in)
}

// weighted reports whether neighbors are drawn by weight.
func (s *sampling) weighted() bool { return s.x.Args["STRATEGY"].Text == "weighted" }

// latest reports whether the neighbors of the latest edges are drawn.
func (s *sampling) latest() bool { return s.x.Args["STRATEGY"].Text == "latest" }

// drawn returns how the sampler draws.
func (s *sampling) drawn() sample.Draw {
	switch {
	case s.weighted():
		return sample.DrawWeighted
	case s.latest():
		return sample.DrawLatest
	}
	return sample.DrawUniform
}

func (s *sampling) run(ctx context.Context) error {
	seeds, err := s.seeds.Nodes(ctx)
	if err != nil {
		return err
	}
	epoch, batch := s.place()
	if s.x.Has("SIZE") {
		seeds, err = s.batchSeeds(ctx, seeds, epoch, batch)
	} else {
		err = checkTwice(s.x.Operand.Nodes.IDs, seeds)
	}
	if err != nil {
		return err
	}
	var d sample.Dense
	if err := s.sample(ctx, seeds, epoch, batch, &d); err != nil {
		return err
	}
	switch s.x.Args["SHOW"].Text {
	case "dense":
		return s.showDense(ctx, &d)
	case "edges":
		return s.showEdges(ctx, &d)
	case "io":
		return s.showIO(ctx, &d)
	}
	return s.showLayers(&d)
}

// sample draws the batch, and counts what each hop does.
func (s *sampling) sample(ctx context.Context, seeds []layout.NodeID, epoch, batch uint64,
	d *sample.Dense) error {
	x := s.x
	var topos []topology.Reader
	for _, dir := range s.dirs {
		t, err := x.Graph.Topology(ctx, dir)
		if err != nil {
			return err
		}
		topos = append(topos, hopTopology{t, s})
	}
	sampler, err := sample.NewSampler(topos, sample.Config{Fanout: s.fanout, Seed: x.Seed(),
		Draw: s.drawn(), Budget: x.Graph.Budget})
	if err != nil {
		return err
	}
	err = s.root.Run(ctx, func(ctx context.Context) error {
		return sampler.Sample(ctx, epoch, batch, seeds, d)
	})
	sampler.Close()
	if err == nil {
		err = x.Hold("the batch", (&sample.Batch{Dense: *d}).HeapBytes())
	}
	if err != nil {
		return err
	}
	first := d.NodeIDOffsets[1]
	for hop := d.Layers(); hop > 0; hop-- {
		lo, hi := d.NodeIDOffsets[hop], d.NodeIDOffsets[hop+1]
		edges := int(d.NbrOffsets[hi-first] - d.NbrOffsets[lo-first])
		bytes := 4 * edges
		if s.weighted() {
			bytes *= 2 // the neighbor, and the weight of the edge
		}
		draw := s.draws[d.Layers()-hop]
		draw.Emit(edges, bytes)
		draw.In = words.Count(hi - lo)
	}
	return nil
}

// hopTopology counts for each hop the lists that a sampler reads. It knows the hop because a
// session asks for the degrees of a frontier once in each hop.
type hopTopology struct {
	topology.Reader
	s *sampling
}

// NewSession returns a session that knows its hop.
func (t hopTopology) NewSession() topology.Session {
	return &hopSession{Session: t.Reader.NewSession(), draws: t.s.draws}
}

type hopSession struct {
	topology.Session
	draws []*exec.Operator
	hop   int
}

// Degrees begins the next hop.
func (s *hopSession) Degrees(ctx context.Context, nodes []layout.NodeID, deg []uint32) error {
	s.hop++
	return s.Session.Degrees(s.enter(ctx), nodes, deg)
}

// Gather goes on with the current hop.
func (s *hopSession) Gather(ctx context.Context, off, pos []uint32, out []layout.NodeID) error {
	return s.Session.Gather(s.enter(ctx), off, pos, out)
}

// Columns goes on with the current hop.
func (s *hopSession) Columns(ctx context.Context, want topology.Columns,
	fn func(p topology.Part) error) error {
	r, ok := s.Session.(topology.ColumnReader)
	if !ok {
		return topology.Unread("weights and times")
	}
	return r.Columns(s.enter(ctx), want, fn)
}

// enter lets the operator of the current hop run until another operator begins.
func (s *hopSession) enter(ctx context.Context) context.Context {
	return s.draws[s.hop-1].Begin(ctx)
}

// place returns the epoch and the batch to draw, counted from 0 as the sampler does. Users, and the
// progress of a training, count from 1.
func (s *sampling) place() (epoch, batch uint64) {
	return uint64(s.x.IntOr("EPOCH", 1) - 1), uint64(s.x.IntOr("BATCH", 1) - 1)
}

// batchSeeds returns the seeds of a batch of a training on nodes in batches of SIZE. For
// multi-labels it trains on the nodes that have labels.
func (s *sampling) batchSeeds(ctx context.Context, nodes []layout.NodeID,
	epoch, batch uint64) ([]layout.NodeID, error) {
	nodes, err := s.x.Graph.Labeled(ctx, nodes)
	if err != nil {
		return nil, err
	}
	order, err := sample.EpochOrder(nodes, s.x.Seed(), epoch, int(s.x.Args["SIZE"].N))
	if err != nil {
		return nil, err
	}
	if batch >= order.Batches() {
		return nil, fmt.Errorf("BATCH %d: an epoch has %d batches of %d", batch+1,
			order.Batches(), s.x.Args["SIZE"].N)
	}
	return order.Seeds(batch, nil), nil
}

// checkTwice returns an error if a seed was written twice. The error uses the name that the user
// wrote.
func checkTwice(refs lang.NodeList, seeds []layout.NodeID) error {
	seen := roaring.New()
	for i, ref := range refs.All() {
		if !seen.CheckedAdd(uint32(seeds[i])) {
			return fmt.Errorf("node %s stands twice: a seed is in a batch once", ref)
		}
	}
	return nil
}

// deltaName returns the name of delta i of a sample of k hops: the last delta holds the seeds.
func deltaName(i, k int) string {
	if i == k {
		return "seeds"
	}
	return fmt.Sprint(k - i)
}

func (s *sampling) showLayers(d *sample.Dense) error {
	s.x.Header("layer", "inputs", "outputs", "edges", "first output")
	var off, idx []uint32
	if d.Layers() > 1 { // the deeper layers are counted again
		edges := len(d.Nbrs) - int(d.NbrOffsets[d.NodeIDOffsets[2]-d.NodeIDOffsets[1]])
		if err := s.x.Hold("a layer", 4*int64(edges+len(d.NodeIDs)+1)); err != nil {
			return err
		}
		off, idx = make([]uint32, 0, len(d.NodeIDs)+1), make([]uint32, 0, edges)
	}
	for l := range d.Layers() {
		v := d.LayerView(l, off[:0], idx[:0])
		if l > 0 {
			off, idx = v.Off, v.Idx
		}
		s.x.Row(l+1, words.Count(v.In), words.Count(v.Out), words.Count(len(v.Idx)), v.Base+v.Skip)
	}
	return nil
}

// formatted is the work that is counted for formatting one neighbor in a cell.
const formatted = 8

// showDense shows a row for each node, the outermost hop first, with its list as local numbers.
func (s *sampling) showDense(ctx context.Context, d *sample.Dense) error {
	s.x.Header("local", "hop", "node", "nbr_offset", "nbrs (local)", "nbrs (node)")
	names, err := s.names.All(ctx, d.NodeIDs)
	if err != nil {
		return err
	}
	s.x.Note("%s", denseText(d))
	cells := mem.NewAccount(s.x.Graph.Budget, "the neighbors of one node")
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
				if err := cells.AtLeast(n >> 16 << 16); err != nil { // reserved in whole 64 KiB
					return err
				}
			}
		}
		s.x.Row(local, deltaName(hop, d.Layers()), name, offset, trimmed(loc), trimmed(nbr))
		if s.x.Err() != nil {
			break
		}
	}
	return nil
}

// denseText returns a summary of a batch in one line.
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

func (s *sampling) showEdges(ctx context.Context, d *sample.Dense) error {
	columns := []string{"hop", "node", "neighbor"}
	if s.weighted() {
		columns = append(columns, "weight")
	}
	s.x.Header(columns...)
	names, err := s.names.All(ctx, d.NodeIDs)
	if err != nil {
		return err
	}
	first := d.NodeIDOffsets[1]
	for hop := d.Layers(); hop > 0; hop-- {
		for v := d.NodeIDOffsets[hop]; v < d.NodeIDOffsets[hop+1]; v++ {
			for k := d.NbrOffsets[v-first]; k < d.NbrOffsets[v-first+1]; k++ {
				row := []any{d.Layers() - hop + 1, names[v], names[d.ReprMap[k]]}
				if s.weighted() {
					row = append(row, d.Weights[k])
				}
				s.x.Row(row...)
			}
		}
	}
	return nil
}

// showIO shows what the batch has read: lists, and features, which are gathered and dropped.
func (s *sampling) showIO(ctx context.Context, d *sample.Dense) error {
	var lists trace.Counts
	for _, draw := range s.draws {
		lists = lists.Add(draw.Counts())
	}
	s.x.Header("what", "count")
	var features trace.Counts
	if s.features.Operator != nil {
		err := s.features.Each(ctx, d.NodeIDs,
			func([]layout.NodeID, []float32) error { return nil })
		if err != nil {
			return err
		}
		features = s.features.Counts()
	}
	s.x.Row("nodes", words.Count(len(d.NodeIDs)))
	s.x.Row("edges", words.Count(len(d.Nbrs)))
	s.x.Row("blocks", words.Count(lists.Cached+lists.Read))
	s.x.Row("cached", words.Count(lists.Cached))
	s.x.Row("read", words.Count(lists.Read))
	s.x.Row("bytes read", words.Size(lists.Bytes))
	if s.features.Operator != nil {
		s.x.Row("feature reads", words.Count(features.Read))
		s.x.Row("feature bytes read", words.Size(features.Bytes))
		s.x.Row("feature bytes used", words.Size(features.Used))
	}
	return nil
}
