package train

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gdb/compute/backend"
	"gdb/compute/backend/cuda"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/sample"
	"gdb/sample/bulk"
	"gdb/train/devicecache"
	"gdb/train/embedding"
	"gdb/train/history"
	"gdb/train/model"
	"gdb/train/optimize"
	"gdb/train/probe"
	"gdb/train/setting"
	"gdb/train/task"
)

// shape is a model whose sizes are known, and the backend that will compute it. What it says of a
// training's memory needs no memory.
type shape struct {
	cfg      *Config
	backend  backend.Backend
	task     task.Task
	dims     []int
	number   int               // of the device
	nodes    uint64            // of the graph
	features int               // values in a feature row of a batch
	learned  *embedding.Config // learned vectors of nodes; nil for none
	budget   *mem.Budget
	shares   bool // others read the batches too
}

// spec returns the specification of the model.
func (s *shape) spec() *model.Spec {
	spec := model.Of(s.cfg).Spec(s.dims)
	spec.KeepFeatures = s.shares
	return spec
}

// newShape opens the backend. The caller closes it.
func newShape(cfg *Config, m *kv.Meta, t task.Task, budget *mem.Budget) (*shape, error) {
	s := &shape{cfg: cfg, task: t, budget: budget, number: cfg.Device, nodes: m.Nodes,
		dims:     model.Of(cfg).Dims(cfg.Inputs(m), t.Outputs()),
		features: cfg.RowDim(m), learned: learnedVectors(cfg, m, true)}
	return s, s.openBackend()
}

// openBackend opens the backend on the device of the shape's number.
func (s *shape) openBackend() (err error) {
	c, on := s.cfg, s.cfg.Backend
	if c.DeviceMemory > 0 { // it may not be here
		on = backend.CPU
	}
	s.backend, err = cuda.OpenNamed(on, backend.Options{Workers: c.Threads, Budget: s.budget,
		Device: s.number, Plain: c.PlainLaunches, TF32: c.Precision == setting.TF32})
	return err
}

// beside returns the same model on another device. The caller closes the backend.
func (s *shape) beside(number int) (*shape, error) {
	other := *s
	other.number = number
	if c, ok := s.task.(*task.Classes); ok { // the weights of classes are on the device
		own := *c
		other.task = &own
	}
	return &other, other.openBackend()
}

// growth, in sixteenths, is the capacity of a list that grows by appending, as a share of its
// length: a quarter more than it needs.
const growth = 20

// modelBytes returns the memory of parameters. Weights, gradients and the optimizer's state are
// outside the heap; the best weights and the copies for a checkpoint are on it.
func (s *shape) modelBytes() int64 {
	params := 4 * int64(s.spec().Params())
	states := int64(len(optimize.StateNames(s.cfg.Optimizer)))
	weights := int64(0)
	if s.cfg.ClassWeights == setting.WeightsBalanced {
		weights = mem.ArenaBytes(4 * int64(s.task.Outputs()))
	}
	return (2+states)*mem.ArenaBytes(params) + mem.HeapCost((3+states)*params) + weights +
		sumBytes(s.cfg, params/4)
}

// Size returns the memory of a step on the largest batch: see probe.Model. Arenas take an eighth
// more than they need.
func (s *shape) Size(d *sample.Dense, inner, scale int64, inPlace bool) (size probe.StepSize) {
	c, have := s.cfg, int64(d.Inner())
	cost := s.spec().StepCost(&d.Lists, inPlace,
		model.Growth{Num: inner, Den: have, Parts: scale}, c.Threads, c.LongestList())
	nodes := int64(len(d.NodeIDs)) * inner / max(1, have) * scale
	cost.Block += int64(s.placesPerRow())*nodes + int64(c.Batch*s.task.LabelWords())
	if !inPlace {
		rows := int64(s.dims[0]) * nodes
		if c.MacroBatch > 1 { // new rows are assembled first
			rows *= 2
		}
		size.Device = 4 * (cost.Floats + cost.Widened + rows) * 9 / 8
		size.Given = cuda.StepsStaged *
			(4*(cost.Copied+cost.Block)*9/8 + devicecache.MoreSent(4*rows))
	}
	input := int64(0)
	if s.learned != nil {
		input = s.learned.InputBytes(int64(len(d.NodeIDs)) * inner / max(1, have) * 9 / 8)
	}
	lists := cost.Computed
	if c.Backend != backend.CUDA {
		lists += cost.Lists
	}
	if c.Backend == backend.CUDA {
		size.Prepared = mem.ArenaBytes(4*cost.Block*9/8) + mem.HeapCost(4*cost.Computed*growth/16)
	}
	input += bulk.MacroBytes(c.Together(), d, inner, s.nodes)
	size.Host = input + s.arenaBytes(&cost) + mem.HeapCost(4*lists*growth/16+cost.KernelBytes)
	return size
}

// arenaBytes returns the memory outside the heap: the backend's scratch or, if a device has that,
// what is sent to each device.
func (s *shape) arenaBytes(cost *model.StepCost) int64 {
	if s.cfg.Backend == backend.CUDA {
		return int64(s.cfg.Parts()) * cuda.StepsStaged *
			(mem.ArenaBytes(4*cost.Copied*9/8) + mem.ArenaBytes(4*cost.Block*9/8))
	}
	return mem.ArenaBytes(4 * cost.Floats * 9 / 8)
}

// stepper trains a model on batches, whoever makes them. It may be used by one goroutine.
type stepper struct {
	*shape
	network
	opt     *optimize.Optimizer
	read    []backend.Loss
	history *history.History // of hidden states; nil for none
}

// newStepper takes the memory of the model and of its optimizer. Close gives that of vectors of
// nodes back; the backend has the rest.
func newStepper(s *shape) (*stepper, error) {
	t := &stepper{shape: s, network: network{be: s.backend}}
	err := t.open()
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

func (s *stepper) open() (err error) {
	if s.model, err = model.New(s.be, s.spec(), true, s.budget); err != nil {
		return err
	}
	if s.opt, err = optimize.New(s.be, s.cfg, s.model.Params()); err != nil {
		return err
	}
	if s.learned != nil {
		if s.vectors, err = embedding.New(*s.learned, s.budget); err != nil {
			return err
		}
	}
	if s.cfg.Halo() {
		if s.history, err = history.New(s.states(), s.budget); err != nil {
			return err
		}
	}
	return s.openWeights()
}

// states describes the hidden states of the model.
func (s *shape) states() history.Config {
	return history.Config{Nodes: s.nodes, Widths: s.dims[1 : len(s.dims)-1],
		Summed: s.cfg.Precompute, Threads: s.cfg.Threads}
}

// Close frees the vectors of nodes, and the history.
func (s *stepper) Close() (err error) {
	if s.vectors != nil {
		err = s.vectors.Close()
	}
	if s.history != nil {
		err = errors.Join(err, s.history.Close())
	}
	return err
}

// begin draws the initial values of all that is learned.
func (s *stepper) begin() {
	s.model.Params().Init(s.be, s.cfg.Seed)
	if s.vectors != nil {
		s.vectors.Init(s.cfg.Seed)
	}
	if s.history != nil {
		s.history.Forget()
	}
}

// openWeights takes the memory of class weights, if there are any, and sets them to 1.
func (s *stepper) openWeights() (err error) {
	c, ok := s.task.(*task.Classes)
	if !ok || s.cfg.ClassWeights != setting.WeightsBalanced {
		return nil
	}
	if c.Weights, err = s.be.Params("weights of classes", c.Outputs()); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	s.be.Write(c.Weights, slices.Repeat([]float32{1}, c.Outputs()))
	return nil
}

// step trains on one batch; rows says where a device has its feature rows, nil for nowhere. A batch
// without a label changes nothing. losses returns its loss later.
func (s *stepper) step(b *sample.Batch, rows devicecache.Input) error {
	counts, err := s.compute(b, rows)
	if err != nil || counts == 0 {
		return err
	}
	return s.update()
}

// compute computes the gradients of a batch, and returns what it counts in the loss of more: see
// task.Task.
func (s *stepper) compute(b *sample.Batch, rows devicecache.Input) (counts float64, err error) {
	if b.Refresh {
		return 0, s.refresh(b)
	}
	if counts = s.counted(b); counts == 0 {
		return 0, nil
	}
	if err := s.be.Begin(); err != nil {
		return 0, err
	}
	step := model.Step{Seed: s.cfg.Seed, Epoch: b.Epoch, Batch: b.Index, Train: true}
	if s.history != nil {
		if step.Halo, err = s.history.Halo(s.be, b); err != nil {
			return 0, err
		}
	}
	logits, err := s.forward(b, step, rows)
	if err != nil {
		return 0, err
	}
	sent := s.model.Machine().Labels()
	s.task.Loss(s.be, task.Outputs{Logits: logits, Grad: s.model.GradLogits(), Labels: sent}, b)
	s.model.Backward()
	if s.vectors != nil {
		err = s.vectors.TakeGradient(s.be, s.model.GradInput())
	}
	return counts, err
}

// refresh computes the hidden states of the seeds of a batch.
func (s *stepper) refresh(b *sample.Batch) error {
	if err := s.be.Begin(); err != nil {
		return err
	}
	halo, err := s.history.Halo(s.be, b)
	if err != nil {
		return err
	}
	y, err := s.forward(b, model.Step{Hidden: true, Halo: halo}, nil)
	if err == nil {
		halo.Computed(s.history.Layers()-1, y)
	}
	return errors.Join(err, s.be.Err())
}

// update takes the optimizer's step with the gradients that were computed.
func (s *stepper) update() error {
	s.opt.Step(s.model.Params(), s.vectors)
	return s.be.Err()
}

// losses returns the losses of the steps since the last call, valid until the next.
func (s *stepper) losses() ([]backend.Loss, error) {
	s.read = s.be.Losses(s.read[:0])
	if err := s.be.Err(); err != nil {
		return nil, err
	}
	for _, o := range s.read {
		if math.IsNaN(o.Mean) || math.IsInf(o.Mean, 0) {
			return nil, fmt.Errorf("the loss is %g: %w: lower --lr, give --clip 1, or %s",
				o.Mean, setting.ErrDiverged, s.task.Remedy())
		}
	}
	return s.read, nil
}

// stepAlone trains on one batch, and drops its loss.
func (s *stepper) stepAlone(b *sample.Batch) error {
	err := s.step(b, nil)
	if err == nil {
		_, err = s.losses()
	}
	return err
}

// lossOf trains on one batch as step does, and returns its mean loss; 0 if the batch has no label.
func (s *stepper) lossOf(b *sample.Batch, rows devicecache.Input) (float64, error) {
	if err := s.step(b, rows); err != nil {
		return 0, err
	}
	all, err := s.losses()
	if err != nil || len(all) == 0 {
		return 0, err
	}
	return all[len(all)-1].Mean, nil
}
