// Package encode computes the vectors that a decoder scores from learned ones, by a graph neural
// network over the neighbors of nodes (Waleffe, Mohoney, Rekatsinas and Venkataraman, "Marius++",
// section 2): the models of package model, whose input are embeddings.
//
// Neighbors are drawn for the nodes of a batch, ends of edges and negatives. What is drawn between
// the ends of an edge of the batch is left out: in the graph to be completed the edge in question
// is missing, so a model that reads it learns nothing that helps there.
package encode

import (
	"context"
	"errors"
	"fmt"

	"gdb/blockdev"
	"gdb/compute/backend"
	"gdb/compute/kernel"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/openfiles"
	"gdb/layout/topology"
	"gdb/sample"
	"gdb/train/link/triples"
	"gdb/train/model"
	"gdb/train/runs"
	"gdb/train/setting"
)

// Constants of Adam, as its authors set them.
const (
	beta1 = 0.9
	beta2 = 0.999
	eps   = 1e-8
)

// Encoder is a model with its optimizer, over the embeddings of all nodes, which it reads. It is
// for one goroutine.
type Encoder struct {
	cfg        *setting.Link
	embeddings []float32 // (nodes, Dim)
	nodes      int
	files      *openfiles.Set
	be         backend.Backend
	model      *model.Model
	moments    backend.Moments
	pool       *kernel.Pool
	drawn      *sample.Sampler // for steps
	whole      *sample.Sampler // for all nodes: whole lists
	near       *near           // nil if all vectors are in memory
	features   *features       // nil if none are read
	dense      sample.Dense
	rows       kernel.Rows
	x, y       []float32   // what is read of a sample, and what comes out
	held       mem.Account // of these
	pairs      map[uint64]struct{}
	both       bool // lists of outgoing edges are drawn from too
}

// Inputs are what an encoder is made of: embeddings are the vectors of all nodes that it reads.
type Inputs struct {
	Settings   *setting.Link
	Embeddings []float32
	Budget     *mem.Budget
	Pool       *kernel.Pool
}

// Open makes the encoder of a run over the lists of a store, which are held in memory: those of
// both directions, where the store has them and the model tells no types of edges apart.
func Open(ctx context.Context, store *layout.Store, dev blockdev.Device,
	in Inputs) (e *Encoder, err error) {
	m, c, embeddings, budget, pool := store.Meta(), in.Settings, in.Embeddings, in.Budget, in.Pool
	e = &Encoder{cfg: c, embeddings: embeddings, nodes: int(m.Nodes), pool: pool,
		files: openfiles.New(store, dev, budget), pairs: map[uint64]struct{}{},
		held: mem.NewAccount(budget, "vectors of a batch")}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.Close())
		}
	}()
	spec, err := SpecOf(c, m)
	if err != nil {
		return e, err
	}
	e.be, err = backend.OpenCPU(backend.Options{Workers: c.Threads, Budget: budget})
	if err != nil {
		return e, err
	}
	if e.model, err = model.New(e.be, spec, true, budget); err != nil {
		return e, err
	}
	if err := e.makeMoments(); err != nil {
		return e, err
	}
	if c.EncodesFeatures() {
		if e.features, err = e.readFeatures(ctx, m, budget); err != nil {
			return e, err
		}
	}
	return e, e.openLists(ctx, spec, len(m.Directions) > 1, budget)
}

// makeMoments takes the memory of the optimizer's state, and draws the weights.
func (e *Encoder) makeMoments() (err error) {
	p := e.model.Params()
	if e.moments.M, err = e.be.Params("first moments", p.Total); err != nil {
		return fmt.Errorf("train: encoder: %w", err)
	}
	if e.moments.V, err = e.be.Params("second moments", p.Total); err != nil {
		return fmt.Errorf("train: encoder: %w", err)
	}
	p.Init(e.be, e.cfg.Seed)
	return nil
}

// openLists opens the lists and the samplers.
func (e *Encoder) openLists(ctx context.Context, spec *model.Spec, both bool,
	budget *mem.Budget) error {
	extras := spec.Extras()
	directions := []layout.Direction{layout.In}
	if e.both = both && extras == (sample.Extras{}); e.both {
		directions = append(directions, layout.Out)
	}
	var lists []topology.Reader
	for _, d := range directions {
		t, err := e.files.Topology(ctx, d, topology.Options{Resident: true,
			Types: extras.EdgeTypes, Budget: budget})
		if err != nil {
			return fmt.Errorf("train: encoder: %w", err)
		}
		lists = append(lists, t)
	}
	fanout, err := sample.ParseFanout(e.cfg.Fanout)
	if err != nil {
		return err
	}
	c := sample.Config{Fanout: fanout, Extras: extras, Seed: e.cfg.Seed, Budget: budget}
	if e.drawn, err = sample.NewSampler(lists, c); err != nil {
		return err
	}
	c.Fanout = make([]int, len(fanout))
	for i := range c.Fanout {
		c.Fanout[i] = sample.All
	}
	e.whole, err = sample.NewSampler(lists, c)
	return err
}

// Close frees the memory.
func (e *Encoder) Close() (err error) {
	for _, s := range []*sample.Sampler{e.drawn, e.whole} {
		if s != nil {
			s.Close()
		}
	}
	if e.be != nil {
		err = e.be.Close()
	}
	if e.features != nil {
		err = errors.Join(err, e.features.arena.Free())
	}
	e.held.Release()
	return errors.Join(err, e.files.Close())
}

// Batch encodes nodes, each once, for a step on some edges: (len(nodes), Dim), valid until the next
// call. key is that of the batch.
func (e *Encoder) Batch(ctx context.Context, key uint64, nodes []uint32,
	edges []triples.Triple) ([]float32, error) {
	err := e.drawn.Sample(ctx, key, 0, mem.View[sample.NodeID](mem.BytesOf(nodes)), &e.dense)
	if err != nil {
		return nil, err
	}
	e.leaveOut(edges)
	return e.forward(key, true)
}

// forward computes the model over the sample at hand.
func (e *Encoder) forward(key uint64, train bool) ([]float32, error) {
	if err := e.be.Begin(); err != nil {
		return nil, err
	}
	if err := e.gather(train && e.near != nil); err != nil {
		return nil, err
	}
	out, err := e.model.Forward(&e.dense.Lists, e.x, model.Step{Seed: e.cfg.Seed, Epoch: key,
		Train: train})
	if err != nil {
		return nil, err
	}
	e.y = mem.Resized(e.y, out.Rows*out.Cols)
	e.be.Read(e.y, out)
	return e.y, e.be.Err()
}

// Step takes a step of the model's weights from the gradient of a loss in what Batch returned, and
// returns the gradient in the embeddings of the nodes that it read: rows of a table.
func (e *Encoder) Step(grad []float32, steps int) (*kernel.Rows, error) {
	e.be.Write(e.model.GradLogits(), grad)
	e.model.Backward()
	if e.cfg.EncodesVectors() {
		e.be.Read(e.x, e.model.GradInput())
	} else {
		e.rows = kernel.Rows{Cols: e.cfg.Dim} // nothing of a node is learned
	}
	p := e.model.Params()
	backend.Adam(e.be, p.Learned(p.W), p.Learned(p.G), backend.Moments{M: p.Learned(e.moments.M),
		V: p.Learned(e.moments.V)}, backend.AdamStep{Step: steps, Rate: float32(e.cfg.EncoderLR),
		Beta1: beta1, Beta2: beta2, Eps: eps})
	return &e.rows, e.be.Err()
}

// allOnce are encoded at a time, or so many that they and their neighbors are not more than
// allRows, if those of one node are not.
const allOnce, allRows = 4096, 1 << 17

// All writes the vectors of all nodes, computed over whole lists, to out: (nodes, Dim).
func (e *Encoder) All(ctx context.Context, out []float32) error {
	return e.all(ctx, out, allRows)
}

// all is All with another allRows.
func (e *Encoder) all(ctx context.Context, out []float32, rowsMost int) error {
	var seeds []sample.NodeID
	once := min(allOnce, e.nodes)
	for first := 0; first < e.nodes; {
		seeds = seeds[:0]
		for v := first; v < min(first+once, e.nodes); v++ {
			seeds = append(seeds, sample.NodeID(v))
		}
		if err := e.whole.Sample(ctx, 0, 0, seeds, &e.dense); err != nil {
			return err
		}
		if len(e.dense.NodeIDs) > rowsMost && once > 1 {
			once /= 2
			continue
		}
		rows, err := e.forward(0, false)
		if err != nil {
			return err
		}
		copy(out[first*e.cfg.Dim:], rows)
		first += len(seeds)
		once = min(2*once, allOnce)
	}
	return nil
}

// BatchBytes is about what a batch takes, of which so many rows are scored: what is read and what
// comes out.
func BatchBytes(c *setting.Link, m *kv.Meta, scored int64) int64 {
	rows := scored
	fanout, err := sample.ParseFanout(c.Fanout)
	for _, f := range fanout {
		if f == sample.All || err != nil || rows >= int64(m.Nodes) {
			rows = int64(m.Nodes)
			break
		}
		rows += rows * int64(f) * int64(len(m.Directions))
	}
	width := c.Dim
	if c.EncodesFeatures() {
		width += setting.FeatureDim(m)
	}
	return 4 * int64(width+c.Dim) * min(int64(m.Nodes), max(rows, allRows))
}

// leaveOut takes what lies between the ends of edges out of the lists of the sample.
func (e *Encoder) leaveOut(edges []triples.Triple) {
	clear(e.pairs)
	for _, t := range edges {
		e.pairs[pairOf(t.Head, t.Tail)] = struct{}{}
	}
	d, kept := &e.dense, uint32(0)
	if len(d.NodeIDOffsets) < 2 {
		return
	}
	nodes := d.NodeIDs[d.NodeIDOffsets[1]:]
	for i, v := range nodes {
		from, to := d.NbrOffsets[i], d.NbrOffsets[i+1]
		d.NbrOffsets[i] = kept
		for k := from; k < to; k++ {
			if _, out := e.pairs[pairOf(uint32(v), uint32(d.Nbrs[k]))]; out {
				continue
			}
			d.Nbrs[kept], d.ReprMap[kept] = d.Nbrs[k], d.ReprMap[k]
			if len(d.Types) > 0 {
				d.Types[kept] = d.Types[k]
			}
			kept++
		}
	}
	d.NbrOffsets[len(nodes)] = kept
	d.Nbrs, d.ReprMap = d.Nbrs[:kept], d.ReprMap[:kept]
	if len(d.Types) > 0 {
		d.Types = d.Types[:kept]
	}
}

// pairOf is one number for two nodes, in either order.
func pairOf(a, b uint32) uint64 { return uint64(min(a, b))<<32 | uint64(max(a, b)) }

// The names of what a checkpoint has of an encoder.
var arrayNames = []string{"encoder weights", "encoder first moments", "encoder second moments"}

// Arrays are copies of what a checkpoint has of it.
func (e *Encoder) Arrays() (all []runs.Array) {
	for i, t := range e.tensors() {
		values := make([]float32, e.model.Params().Total)
		e.be.Read(values, t)
		all = append(all, runs.Array{Name: arrayNames[i], Values: values})
	}
	return all
}

// tensors are those of arrayNames.
func (e *Encoder) tensors() []backend.Tensor {
	return []backend.Tensor{e.model.Params().W, e.moments.M, e.moments.V}
}

// Restore goes on from a checkpoint, of which load reads an array.
func (e *Encoder) Restore(load func(name string, to []float32) error) error {
	values := make([]float32, e.model.Params().Total)
	for i, t := range e.tensors() {
		if err := load(arrayNames[i], values); err != nil {
			return err
		}
		e.be.Write(t, values)
	}
	return nil
}
