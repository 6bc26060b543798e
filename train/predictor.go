package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/sample"
	"gdb/sample/loader"
	"gdb/train/calibrate"
	"gdb/train/exact"
	"gdb/train/task"

	"github.com/RoaringBitmap/roaring/v2"
)

// Predictor answers what a run predicts, again and again: of nodes of the graph from their outputs,
// which are computed once, and of nodes that the graph does not have from hidden states that are
// kept of all nodes. It may be used from any goroutine.
type Predictor struct {
	run     string
	nodes   uint64
	set     *roaring.Bitmap // the nodes that it predicts; nil for all
	outputs *exact.Table    // a row for each of these
	labels  []string        // what probabilities are of; nil where there are none

	mu struct {
		sync.Mutex
		write task.Predictions
		// calibrated writes probabilities by the run's temperature; nil if it has none.
		calibrated task.Predictions
	}
	unseen *unseenNodes // nodes that the graph does not have
	// whyNot says why the run does not predict these; nil if it does.
	whyNot error
	dir    func() error // removes the files
}

// PredictorConfig says what to open.
type PredictorConfig struct {
	// Limits bound the process while outputs are computed. Memory must be set.
	Limits
	Run string
	// Computing counts what is held only while outputs are computed; Memory bounds it with the
	// program. Kept counts outputs and hidden states: what it has no room for is in files of the
	// run's directory. Unseen counts what predicting nodes takes that the graph does not have.
	Computing, Kept, Unseen *mem.Budget
	// OnDisk keeps all in files. Tests set it.
	OnDisk bool
}

// Prediction is what a run predicts of a node.
type Prediction struct {
	// Value is the name of a class, or several with ";" between, or a number.
	Value any
	// Probabilities has one for each of Predictor.Labels, by the run's temperature if that was
	// asked for; nil where there are none.
	Probabilities []float32
}

// Probability returns that of the label that is predicted, by the labels of the predictor; NaN if
// there is none.
func (p Prediction) Probability(labels []string) float64 {
	name, _ := p.Value.(string)
	i := slices.Index(labels, name)
	if i < 0 || i >= len(p.Probabilities) {
		return math.NaN()
	}
	return float64(p.Probabilities[i])
}

// OpenPredictor computes the outputs of all nodes, as Predict does, and keeps them.
func OpenPredictor(ctx context.Context, store *layout.Store, dev blockdev.Device,
	c PredictorConfig) (p *Predictor, err error) {
	light, err := openLight(ctx, store, dev, &c)
	if err != nil {
		return nil, fmt.Errorf("train: open run %s: %w", c.Run, err)
	}
	p = &Predictor{run: c.Run, nodes: store.Meta().Nodes}
	p.unseen = &unseenNodes{trained: light}
	scratch := newScratch(light.in, light.dir, predictJob)
	p.dir = func() error { return store.FS().RemoveAll(store.Path(scratch.dir)) }
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("train: open run %s: %w", c.Run, err), p.Close())
		}
	}()
	if light.in.edges != nil {
		return p, errors.New("it predicts edges, and only runs that predict nodes are served")
	}
	if p.whyNot = light.whyNoUnseen(); p.whyNot == nil {
		p.whyNot = unseenRoom(light)
	}
	if err := p.describe(light); err != nil {
		return p, err
	}
	in := light.in.Source
	place := exact.Place{Dir: scratch.dir, OnDisk: c.OnDisk, Claim: scratch.claim,
		Source: &loader.Source{Store: in.Store, Device: in.Device, Meta: in.Meta, Budget: c.Kept}}
	return p, p.compute(ctx, store, dev, &c, place)
}

// openLight opens a run with the graph and the features on disk.
func openLight(ctx context.Context, store *layout.Store, dev blockdev.Device,
	c *PredictorConfig) (*trained, error) {
	limits := c.Limits
	limits.Notes = nil // compute passes them
	return openTrained(ctx, store, dev, opening{run: c.Run, labeledType: true, limits: limits,
		budget: c.Unseen, light: true})
}

// describe finds out how predictions are written.
func (p *Predictor) describe(t *trained) (err error) {
	if p.mu.write, err = t.in.task.Predictions(true, false); err != nil {
		if p.mu.write, err = t.in.task.Predictions(false, false); err != nil {
			return err
		}
	}
	if err := t.useTemperature(true); err != nil {
		return err
	}
	if t.checkCalibrated(true) == nil {
		calibrated := *t.in.task.(*task.Classes)
		t.in.task.(*task.Classes).Temperature = 0
		p.mu.calibrated, err = calibrated.Predictions(true, false)
	}
	for _, c := range p.mu.write.Columns()[1:] {
		p.labels = append(p.labels, strings.TrimPrefix(c.Name, "p:"))
	}
	return err
}

// compute computes and keeps the outputs, and the hidden states if new nodes need them.
func (p *Predictor) compute(ctx context.Context, store *layout.Store, dev blockdev.Device,
	c *PredictorConfig, place exact.Place) (err error) {
	t, err := openTrained(ctx, store, dev, opening{run: c.Run, labeledType: true, limits: c.Limits,
		budget: c.Computing})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	k := &keeping{ctx: ctx, place: place, dims: t.model.Dims(), rows: int(store.Meta().Nodes)}
	defer func() { err = errors.Join(err, k.abort()) }()
	rows := k.rows
	if p.set = t.set; p.set != nil {
		rows = int(p.set.GetCardinality())
	}
	if err := t.in.Budget.Reserve("evaluation", exact.HeapBytes); err != nil {
		return err
	}
	defer t.in.Budget.Release(exact.HeapBytes)
	out, err := place.Begin("outputs", rows, t.in.task.Outputs())
	if err != nil {
		return err
	}
	if p.whyNot == nil {
		t.hidden = k.add
	}
	err = t.each(ctx, func(nodes []sample.NodeID, logits []float32) error {
		if err := task.CheckOutput(nodes, logits); err != nil {
			return err
		}
		return out.Add(logits)
	})
	if err != nil {
		return errors.Join(err, out.Abort())
	}
	if p.outputs, err = out.Finish(ctx); err != nil {
		return errors.Join(err, out.Abort())
	}
	p.unseen.states, err = k.finish()
	return err
}

// keeping keeps hidden states as they are computed, layer by layer.
type keeping struct {
	ctx    context.Context
	place  exact.Place
	dims   []int
	rows   int
	now    *exact.TableWriter // of the layer that is computed; nil before the first
	layer  int
	states []*exact.Table // of the layers before
}

// add appends states of a layer.
func (k *keeping) add(layer int, rows []float32) (err error) {
	if k.now != nil && layer != k.layer {
		if err := k.end(); err != nil {
			return err
		}
	}
	if k.now == nil {
		k.layer = layer
		k.now, err = k.place.Begin(fmt.Sprintf("kept%d", layer+1), k.rows, k.dims[layer+1])
		if err != nil {
			k.now = nil
			return err
		}
	}
	return k.now.Add(rows)
}

// end finishes the table of a layer.
func (k *keeping) end() error {
	t, err := k.now.Finish(k.ctx)
	if err != nil {
		return err
	}
	k.now, k.states = nil, append(k.states, t)
	return nil
}

// finish returns the states of all layers, which the caller closes.
func (k *keeping) finish() (states []*exact.Table, err error) {
	if k.now != nil {
		err = k.end()
	}
	if err == nil {
		states, k.states = k.states, nil
	}
	return states, err
}

// abort frees what finish has not returned.
func (k *keeping) abort() (err error) {
	if k.now != nil {
		err = k.now.Abort()
	}
	for _, t := range k.states {
		err = errors.Join(err, t.Close())
	}
	return err
}

// Run returns the name of the run.
func (p *Predictor) Run() string { return p.run }

// Labels returns what probabilities are of; nil where predictions have none.
func (p *Predictor) Labels() []string { return p.labels }

// Width returns how many values an output has, to count what predictions take.
func (p *Predictor) Width() int { return p.outputs.Width() }

// CheckCalibrated returns an error if the run has no temperature for its weights.
func (p *Predictor) CheckCalibrated() error {
	if p.mu.calibrated == nil {
		return calibrate.None(p.run)
	}
	return nil
}

// Predict returns what the run predicts of nodes, in their order, with probabilities by its
// temperature if calibrated asks for it.
func (p *Predictor) Predict(ctx context.Context, nodes []layout.NodeID, calibrated bool) (
	[]Prediction, error) {
	if calibrated && p.mu.calibrated == nil {
		return nil, p.CheckCalibrated()
	}
	places := make([]sample.NodeID, len(nodes))
	for i, v := range nodes {
		if uint64(v) >= p.nodes || p.set != nil && !p.set.Contains(uint32(v)) {
			return nil, fmt.Errorf("run %s does not predict node #%d: it is of another type", p.run,
				v)
		}
		places[i] = v
		if p.set != nil {
			places[i] = sample.NodeID(p.set.Rank(uint32(v)) - 1)
		}
	}
	once := slices.Clone(places)
	slices.Sort(once)
	once = slices.Compact(once)
	width := p.outputs.Width()
	rows := make([]float32, len(once)*width)
	if err := p.outputs.Read(ctx, once, rows); err != nil {
		return nil, err
	}
	out := make([]Prediction, len(nodes))
	for i, v := range places {
		at, _ := slices.BinarySearch(once, v)
		out[i] = p.predictionOf(rows[at*width:(at+1)*width], calibrated)
	}
	return out, nil
}

// predictionOf returns what the outputs of a node mean.
func (p *Predictor) predictionOf(outputs []float32, calibrated bool) Prediction {
	p.mu.Lock()
	defer p.mu.Unlock()
	var row predictedRow
	write := p.mu.write
	if calibrated {
		write = p.mu.calibrated
	}
	write.Write(&row, outputs)
	return Prediction{Value: row.prediction, Probabilities: row.rest}
}

// Close frees all memory and removes the files. No method may be running.
func (p *Predictor) Close() error {
	var err error
	if p.outputs != nil {
		err = p.outputs.Close()
	}
	for _, t := range p.unseen.states {
		err = errors.Join(err, t.Close())
	}
	return errors.Join(err, p.dir(), p.unseen.trained.Close())
}
