package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"gdb/blockdev"
	"gdb/compute/program"
	"gdb/layout"
	"gdb/train"
)

// stepsMeasured is how many steps are measured; the first is left out, whose memory is new.
const stepsMeasured = 5

// StepOperation is one operation of a step, on the batches that were measured.
type StepOperation struct {
	// Text is the operation as a program prints it, and Backward whether it is of that pass.
	Text     string `json:"text"`
	Backward bool   `json:"backward"`
	// Rows and Cols are the shape of its result in the last batch.
	Rows int `json:"rows"`
	Cols int `json:"cols"`
	// EstimatedMS is what the choice of an order takes it to cost, in milliseconds at the speed of
	// this machine's products: 0 for what no order depends on. MeasuredMS is the mean of the steps.
	EstimatedMS float64 `json:"estimated_ms"`
	MeasuredMS  float64 `json:"measured_ms"`
}

// MeasureStep trains some steps of a run and returns the operations of the program that the last of
// them used. No run is made.
func MeasureStep(ctx context.Context, store *layout.Store, dev blockdev.Device,
	cfg train.Config) (ops []StepOperation, err error) {
	t, err := train.Open(ctx, store, dev, cfg)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	gflops := 0.0
	if f := t.Plan().Forecast; f != nil {
		gflops = f.Device.GFLOPS
	}
	m := stepMeasurer{t: t, took: map[string]time.Duration{}, times: map[string]int{}}
	for m.steps < stepsMeasured {
		if err := m.epoch(ctx); err != nil {
			return nil, fmt.Errorf("measure a step: %w", err)
		}
	}
	return m.operations(gflops), nil
}

// stepMeasurer sums up what operations took.
type stepMeasurer struct {
	t       *train.Training
	machine *program.Machine
	program *program.Program
	steps   int
	took    map[string]time.Duration
	times   map[string]int
}

// epoch trains the steps of an epoch, or as many as are wanted.
func (m *stepMeasurer) epoch(ctx context.Context) (err error) {
	e, err := m.t.Epoch(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	for m.steps < stepsMeasured {
		b, err := e.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		_, err = m.t.Step(b)
		b.Release()
		if err != nil {
			return err
		}
		if m.steps++; m.machine == nil {
			m.begin()
		}
	}
	return nil
}

// begin measures the steps from now on.
func (m *stepMeasurer) begin() {
	m.machine = m.t.Machine()
	m.machine.Times = func(p *program.Program, op int, took time.Duration) {
		text := p.Op(op)
		m.program = p
		m.took[text] += took
		m.times[text]++
	}
}

// operations returns the operations of the last step's program.
func (m *stepMeasurer) operations(gflops float64) (ops []StepOperation) {
	p, sizes := m.program, m.machine.Sizes()
	for i := range p.Len() {
		o := StepOperation{Text: p.Op(i), Backward: p.Backward(i)}
		o.Rows, o.Cols = p.Shape(i, sizes)
		if gflops > 0 {
			o.EstimatedMS = p.OpCost(i, sizes) / gflops / 1e6
		}
		if n := m.times[o.Text]; n > 0 {
			o.MeasuredMS = m.took[o.Text].Seconds() * 1000 / float64(n)
		}
		ops = append(ops, o)
	}
	return ops
}
