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
	"gdb/train/model"
	"gdb/train/setting"
	"gdb/train/task"
)

// stepper trains a model on batches, whoever makes them. It may be used by one goroutine.
type stepper struct {
	cfg   *Config
	be    backend.Backend
	task  task.Task
	dims  []int
	model *model.Model
	opt   *optimizer
	read  []backend.Loss
	large *sample.Dense // the largest of the batches sampled for planning

	nodes    uint64            // of the graph
	features int               // values in a feature row of a batch
	learned  *embedding.Config // learned vectors of nodes; nil for none
	vectors  *embedding.Table
	rows     *devicecache.Cache  // feature rows on the device; nil for none
	shared   *devicecache.Shared // in front of rows, for macro-batches

	deviceStep, deviceGiven int64 // see DeviceBytes

	budget *mem.Budget
}

// newStepper opens the backend. openModel takes the memory of the model later.
func newStepper(cfg *Config, m *kv.Meta, t task.Task, budget *mem.Budget) (*stepper, error) {
	s := &stepper{cfg: cfg, task: t, budget: budget, dims: model.Of(cfg).Dims(cfg.Inputs(m),
		t.Outputs()),
		features: cfg.RowDim(m), learned: learnedVectors(cfg, m, true), nodes: m.Nodes}
	var err error
	on := cfg.Backend
	if cfg.DeviceMemory > 0 { // it may not be here
		on = backend.CPU
	}
	s.be, err = cuda.OpenNamed(on, backend.Options{Workers: cfg.Threads, Budget: budget,
		Device: cfg.Device, Plain: cfg.PlainLaunches, TF32: cfg.Precision == setting.TF32})
	return s, err
}

// openModel takes the memory of the model and of its optimizer.
func (s *stepper) openModel() (err error) {
	if s.model, err = model.New(s.be, model.Of(s.cfg).Spec(s.dims), true, s.budget); err != nil {
		return err
	}
	if s.opt, err = newOptimizer(s.be, s.cfg, s.model.Params()); err != nil {
		return err
	}
	if s.learned != nil {
		if s.vectors, err = embedding.New(*s.learned, s.budget); err != nil {
			return err
		}
	}
	return s.openWeights()
}

// begin draws the initial values of all that is learned.
func (s *stepper) begin() {
	s.model.Params().Init(s.be, s.cfg.Seed)
	if s.vectors != nil {
		s.vectors.Init(s.cfg.Seed)
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

// Close frees the backend and all its memory.
func (s *stepper) Close() error { return errors.Join(closeVectors(s.vectors), s.be.Close()) }

// step trains on one batch. A batch without a label changes nothing. losses returns its loss later.
func (s *stepper) step(b *sample.Batch) error {
	if s.task.Labeled(b) == 0 {
		return nil
	}
	if err := s.be.Begin(); err != nil {
		return err
	}
	pass := model.Step{Seed: s.cfg.Seed, Epoch: b.Epoch, Batch: b.Index, Train: true,
		Table: tableOf(s.be, b), Rows: b.TableRows}
	x, err := inputOf(s.vectors, b)
	if err != nil {
		return err
	}
	if s.shared != nil {
		if pass.Input, err = s.shared.Input(b); err != nil {
			return err
		}
	}
	logits, err := s.model.Forward(&b.Dense.Lists, x, pass)
	if err != nil {
		return err
	}
	s.task.Loss(s.be, s.model.GradLogits(), logits, b)
	s.model.Backward()
	if s.vectors != nil {
		s.vectors.TakeGradient(s.be, s.model.GradInput())
	}
	s.opt.step(s.model.Params(), s.vectors)
	return s.be.Err()
}

// tableOf returns the table of a batch whose rows are read in place, as a tensor.
func tableOf(be backend.Backend, b *sample.Batch) backend.Tensor {
	if b.Table == nil {
		return backend.Tensor{}
	}
	return be.Table(b.Table, len(b.Table)/b.Dim, b.Dim)
}

// losses returns the losses of the steps since the last call, valid until the next.
func (s *stepper) losses() ([]backend.Loss, error) {
	s.read = s.be.Losses(s.read[:0])
	if err := s.be.Err(); err != nil {
		return nil, err
	}
	for _, o := range s.read {
		if math.IsNaN(o.Mean) || math.IsInf(o.Mean, 0) {
			return nil, fmt.Errorf("the loss is %g: the training diverged: lower --lr, give "+
				"--clip 1, or %s", o.Mean, s.task.Remedy())
		}
	}
	return s.read, nil
}

// stepAlone trains on one batch, and drops its loss.
func (s *stepper) stepAlone(b *sample.Batch) error {
	err := s.step(b)
	if err == nil {
		_, err = s.losses()
	}
	return err
}

// lossOf trains on one batch, and returns its mean loss; 0 if the batch has no label.
func (s *stepper) lossOf(b *sample.Batch) (float64, error) {
	if err := s.step(b); err != nil {
		return 0, err
	}
	all, err := s.losses()
	if err != nil || len(all) == 0 {
		return 0, err
	}
	return all[len(all)-1].Mean, nil
}

// growth, in sixteenths, is the capacity of a list that grows by appending, as a share of its
// length: a quarter more than it needs.
const growth = 20

// modelBytes returns the memory of parameters. Weights, gradients and the optimizer's state are
// outside the heap; the best weights and the copies for a checkpoint are on it.
func modelBytes(c *Config, dims []int) int64 {
	params, states := 4*int64(model.Of(c).Spec(dims).Params()), int64(len(stateNames(c.Optimizer)))
	weights := int64(0)
	if c.ClassWeights == setting.WeightsBalanced {
		weights = mem.ArenaBytes(4 * int64(dims[len(dims)-1]))
	}
	return (2+states)*mem.ArenaBytes(params) + mem.HeapCost((3+states)*params) + weights
}

// StepBytes returns the memory of a step on the largest batch: see probe.Model. It also sets what
// DeviceBytes returns.
func (s *stepper) StepBytes(d *sample.Dense, inner, scale int64, inPlace bool) int64 {
	c, have := s.cfg, int64(d.Inner())
	s.large = d
	cost := model.Of(c).Spec(s.dims).StepCost(&d.Lists, inPlace,
		model.Growth{Num: inner, Den: have, Parts: scale}, c.Threads, c.LongestList())
	if !inPlace {
		rows := int64(s.dims[0]) * int64(len(d.NodeIDs)) * inner / max(1, have) * scale
		if c.MacroBatch > 1 { // new rows are assembled first
			rows *= 2
		}
		s.sizeDevice(cost.Floats+cost.Widened, cost.Copied, rows)
	}
	input := int64(0)
	if s.learned != nil {
		input = s.learned.InputBytes(int64(len(d.NodeIDs)) * inner / max(1, have) * 9 / 8)
	}
	lists := cost.Lists
	if c.Backend == backend.CUDA && !c.PlainLaunches {
		lists += cost.Padded
	}
	input += bulk.MacroBytes(c.MacroBatch, d, inner, s.nodes)
	return input + s.arenaBytes(&cost) + mem.HeapCost(4*lists*growth/16+cost.KernelBytes)
}

// arenaBytes returns the memory outside the heap: the backend's scratch or, if a device has that,
// what is sent to the device.
func (s *stepper) arenaBytes(cost *model.StepCost) int64 {
	if s.cfg.Backend == backend.CUDA {
		return cuda.StepsStaged * mem.ArenaBytes(4*cost.Copied*9/8)
	}
	return mem.ArenaBytes(4 * cost.Floats * 9 / 8)
}
