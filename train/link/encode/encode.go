// Package encode computes the vectors that a decoder scores from learned embeddings, by a graph
// neural network over the neighbors of nodes (Waleffe, Mohoney, Rekatsinas and Venkataraman,
// "Marius++", section 2). It uses the models of package model.
//
// Neighbors are drawn for the nodes of a batch, which are ends of edges and negatives. Neighbors
// that lie at the other end of an edge of the batch are left out: in the graph to be completed the
// edge in question is missing, so a model that reads it learns nothing that helps there.
package encode

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"gdb/blockdev"
	"gdb/compute/backend"
	"gdb/compute/backend/cuda"
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

// These are the constants of Adam, as its authors set them.
const (
	beta1 = 0.9
	beta2 = 0.999
	eps   = 1e-8
)

// Encoder is a model with its optimizer. It reads the embeddings of all nodes, which belong to the
// caller. It may be used by one goroutine.
type Encoder struct {
	cfg        *setting.Link
	embeddings []float32 // (nodes, Dim)
	nodes      int
	files      *openfiles.Set
	be         backend.Backend
	model      *model.Model
	moments    backend.Moments
	pool       *kernel.Pool
	drawn      *sample.Sampler // draws for steps
	whole      *sample.Sampler // reads whole lists, for all nodes
	near       *near           // nil if all vectors are in memory
	features   *features       // nil if none are read
	dense      sample.Dense
	rows       kernel.Rows
	x, y       []float32   // input and output of a sample
	held       mem.Account // memory of x and y
	pairs      map[uint64]struct{}
	both       bool // draws from lists of outgoing edges too
}

// Inputs are what an encoder is made from. Embeddings holds the vectors of all nodes, (nodes, Dim).
type Inputs struct {
	Settings   *setting.Link
	Embeddings []float32
	Budget     *mem.Budget
	Pool       *kernel.Pool
}

// Open returns the encoder of a run over the lists of a store, which are held in memory. It uses
// the lists of both directions if the store has them and the model does not read types of edges.
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
	on := cmp.Or(c.Backend, backend.CPU) // runs from before there was a choice have none
	e.be, err = cuda.OpenNamed(on, backend.Options{Workers: c.Threads, Budget: budget,
		Device: c.Device, Plain: c.PlainLaunches})
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

// Batch encodes nodes, which must differ, for a step on some edges. It returns (len(nodes), Dim),
// valid until the next call. key is the random key of the batch.
func (e *Encoder) Batch(ctx context.Context, key uint64, nodes []uint32,
	edges []triples.Triple) ([]float32, error) {
	err := e.drawn.Sample(ctx, key, 0, mem.View[sample.NodeID](mem.BytesOf(nodes)), &e.dense)
	if err != nil {
		return nil, err
	}
	e.leaveOut(edges)
	return e.forward(key, true)
}

// forward computes the model over the current sample.
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

// Step changes the model's weights, given the gradient of a loss with respect to what
// Batch returned. It returns the gradient with respect to the embeddings that Batch read,
// as rows of the table.
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

// allOnce is how many nodes All encodes at a time. They are fewer if they and their neighbors would
// be more than allRows, but at least one.
const allOnce, allRows = 4096, 1 << 17

// All writes the vectors of all nodes, computed over whole lists, to out: (nodes, Dim).
func (e *Encoder) All(ctx context.Context, out []float32) error {
	return e.all(ctx, out, allRows)
}

// all does the work of All, with rowsMost instead of allRows.
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

// BatchBytes returns about what a batch takes in which scored rows are scored: its input
// and its output.
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

// leaveOut removes entries between the ends of edges from the lists of the sample.
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

// pairOf returns one number for two nodes, in either order.
func pairOf(a, b uint32) uint64 { return uint64(min(a, b))<<32 | uint64(max(a, b)) }

// arrayNames lists the names of an encoder's arrays in a checkpoint.
var arrayNames = []string{"encoder weights", "encoder first moments", "encoder second moments"}

// Arrays returns copies of the arrays that a checkpoint holds of the encoder.
func (e *Encoder) Arrays() (all []runs.Array) {
	for i, t := range e.tensors() {
		values := make([]float32, e.model.Params().Total)
		e.be.Read(values, t)
		all = append(all, runs.Array{Name: arrayNames[i], Values: values})
	}
	return all
}

// tensors returns the tensors of arrayNames, in the same order.
func (e *Encoder) tensors() []backend.Tensor {
	return []backend.Tensor{e.model.Params().W, e.moments.M, e.moments.V}
}

// Restore takes over the state of a checkpoint; load reads one of its arrays.
func (e *Encoder) Restore(load func(name string, to []float32) error) error {
	return e.take(e.tensors(), load)
}

// Begin takes over the weights of a checkpoint, and nothing of the optimizer.
func (e *Encoder) Begin(load func(name string, to []float32) error) error {
	return e.take(e.tensors()[:1], load)
}

// take takes over the first tensors of a checkpoint.
func (e *Encoder) take(tensors []backend.Tensor, load func(name string, to []float32) error) error {
	values := make([]float32, e.model.Params().Total)
	for i, t := range tensors {
		if err := load(arrayNames[i], values); err != nil {
			return err
		}
		e.be.Write(t, values)
	}
	return nil
}
