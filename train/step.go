package train

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gdb/compute/backend"
	"gdb/compute/backend/cuda"
	"gdb/compute/backend/devices"
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

// stepper trains a model on batches, whoever makes them. It is for one goroutine.
type stepper struct {
	cfg   *Config
	be    backend.Backend
	task  task.Task
	dims  []int
	model *model.Model
	opt   *optimizer
	read  []backend.Loss
	large *sample.Dense // the largest batch that was sampled to see how large they are

	nodes    uint64            // of the graph
	features int               // the width of what batches have of the input
	learned  *embedding.Config // of vectors of nodes; nil for none
	vectors  *embedding.Table
	rows     *devicecache.Cache  // of features, on the device; nil for none
	shared   *devicecache.Shared // before it, those of macro-batches

	deviceStep, deviceGiven int64 // see DeviceBytes

	budget *mem.Budget
}

// newStepper opens the backend. The model takes its memory when it is opened.
func newStepper(cfg *Config, m *kv.Meta, t task.Task, budget *mem.Budget) (*stepper, error) {
	s := &stepper{cfg: cfg, task: t, budget: budget, dims: model.Of(cfg).Dims(cfg.Inputs(m),
		t.Outputs()),
		features: cfg.RowDim(m), learned: learnedVectors(cfg, m, true), nodes: m.Nodes}
	var err error
	on := cfg.Backend
	if cfg.DeviceMemory > 0 { // it may not be here
		on = backend.CPU
	}
	s.be, err = devices.Open(on, backend.Options{Workers: cfg.Threads, Budget: budget,
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

// begin draws all that is learned.
func (s *stepper) begin() {
	s.model.Params().Init(s.be, s.cfg.Seed)
	if s.vectors != nil {
		s.vectors.Init(s.cfg.Seed)
	}
}

// openWeights takes the memory of the weights of classes, if there are any: all 1 at first.
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

// Close frees the memory of the backend, and all in it.
func (s *stepper) Close() error { return errors.Join(closeVectors(s.vectors), s.be.Close()) }

// step trains on one batch. One without a label changes nothing. Its loss is read by losses.
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

// tableOf is the table of a batch whose rows are read in place, on the device.
func tableOf(be backend.Backend, b *sample.Batch) backend.Tensor {
	if b.Table == nil {
		return backend.Tensor{}
	}
	return be.Table(b.Table, len(b.Table)/b.Dim, b.Dim)
}

// losses reads those of the steps since the last call, valid until the next.
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

// stepAlone trains on one batch, and forgets its loss.
func (s *stepper) stepAlone(b *sample.Batch) error {
	err := s.step(b)
	if err == nil {
		_, err = s.losses()
	}
	return err
}

// lossOf trains on one batch, and returns its mean loss: 0 if it has no label.
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

// growth, in sixteenths, is how much more a list that grows takes than it needs.
const growth = 20

// modelBytes is the memory of parameters: weights, gradients and optimizer state outside the heap,
// and on it the best weights, and copies for a checkpoint.
func modelBytes(c *Config, dims []int) int64 {
	params, states := 4*int64(model.Of(c).Spec(dims).Params()), int64(len(stateNames(c.Optimizer)))
	weights := int64(0)
	if c.ClassWeights == setting.WeightsBalanced {
		weights = mem.ArenaBytes(4 * int64(dims[len(dims)-1]))
	}
	return (2+states)*mem.ArenaBytes(params) + mem.HeapCost((3+states)*params) + weights
}

// StepBytes is the memory of a step on the largest batch: see probe.Model.
func (s *stepper) StepBytes(d *sample.Dense, inner, scale int64, inPlace bool) int64 {
	c, have := s.cfg, int64(d.Inner())
	s.large = d
	cost := model.Of(c).Spec(s.dims).StepCost(&d.Lists, inPlace,
		model.Growth{Num: inner, Den: have, Parts: scale}, c.Threads, c.LongestList())
	if !inPlace {
		rows := int64(s.dims[0]) * int64(len(d.NodeIDs)) * inner / max(1, have) * scale
		if c.MacroBatch > 1 { // those that are new are put together first
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

// arenaBytes is the memory outside the heap: scratch of the backend, or what it sends to a device
// that has its scratch.
func (s *stepper) arenaBytes(cost *model.StepCost) int64 {
	if s.cfg.Backend == backend.CUDA {
		return cuda.StepsStaged * mem.ArenaBytes(4*cost.Copied*9/8)
	}
	return mem.ArenaBytes(4 * cost.Floats * 9 / 8)
}
