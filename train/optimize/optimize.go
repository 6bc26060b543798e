// Package optimize changes the weights of a model by their gradients.
package optimize

import (
	"fmt"

	"gdb/compute/backend"
	"gdb/compute/program"
	"gdb/train/embedding"
	"gdb/train/setting"
)

// These are the constants of the optimizers, as their authors set them: Kingma and Ba, "Adam: A
// Method for Stochastic Optimization"; Duchi, Hazan and Singer, "Adaptive Subgradient Methods".
const (
	adamBeta1  = 0.9
	adamBeta2  = 0.999
	adamEps    = 1e-8
	adagradEps = 1e-10
)

// Optimizer changes the parameters of a model by their gradients.
type Optimizer struct {
	be     backend.Backend
	kind   string
	warmup int     // steps in which the rate grows to its full value
	clip   float32 // bound of the norm of the gradients; 0 for none
	decay  float32
	// Base is the learning rate before schedule and warmup, and Factor what the schedule makes of
	// it in the current epoch.
	Base, Factor float64
	// Steps counts those that were taken.
	Steps int
	// State holds the vectors of StateNames: of adam both moments, of adagrad the sums of squares.
	State      []backend.Tensor
	StateNames []string
}

// New returns an optimizer whose state is zeros.
func New(be backend.Backend, c *setting.Node, p *program.Params) (*Optimizer, error) {
	o := &Optimizer{be: be, kind: c.Optimizer, Base: c.LR, Factor: 1, warmup: c.Warmup,
		clip: float32(c.Clip), decay: float32(c.WeightDecay)}
	o.StateNames = StateNames(c.Optimizer)
	for _, name := range o.StateNames {
		t, err := be.Params(name, p.Total)
		if err != nil {
			return nil, fmt.Errorf("train: optimizer: %w", err)
		}
		o.State = append(o.State, t)
	}
	return o, nil
}

// Rate returns the learning rate of the last step.
func (o *Optimizer) Rate() float64 {
	rate := o.Base * o.Factor
	if o.Steps < o.warmup {
		rate *= float64(o.Steps) / float64(o.warmup)
	}
	return rate
}

// Reset sets the optimizer back to before the first step.
func (o *Optimizer) Reset() {
	o.Steps = 0
	for _, s := range o.State {
		backend.Zero(o.be, s)
	}
}

// StateNames returns the names of the vectors that an optimizer keeps. Each has a value for
// each parameter.
func StateNames(kind string) []string {
	switch kind {
	case "adam", "adamw":
		return []string{"first moments", "second moments"}
	case "adagrad":
		return []string{"sums of squares"}
	}
	return nil
}

// Step changes the parameters p by their gradients and, if vectors of nodes are learned, those of
// the batch's nodes.
func (o *Optimizer) Step(p *program.Params, vectors *embedding.Table) {
	o.Steps++
	rate := float32(o.Rate())
	w, g := p.Learned(p.W), p.Learned(p.G)
	if o.clip > 0 {
		o.clipAll(p, vectors)
	}
	switch o.kind {
	case "sgd":
		backend.SGD(o.be, w, g, rate, o.decay)
	case "adagrad":
		backend.Adagrad(o.be, w, g, p.Learned(o.State[0]),
			backend.AdamStep{Rate: rate, Eps: adagradEps, WeightDecay: o.decay})
	default:
		backend.Adam(o.be, w, g, backend.Moments{M: p.Learned(o.State[0]),
			V: p.Learned(o.State[1])}, o.adam(rate))
	}
	if vectors == nil {
		return
	}
	switch o.kind {
	case "sgd":
		vectors.SGD(rate)
	case "adagrad":
		vectors.Adagrad(rate, adagradEps)
	default:
		vectors.Adam(o.adam(rate))
	}
}

// adam returns the constants of the current Adam step.
func (o *Optimizer) adam(rate float32) backend.AdamStep {
	return backend.AdamStep{Step: o.Steps, Rate: rate, Beta1: adamBeta1, Beta2: adamBeta2,
		Eps: adamEps, WeightDecay: o.decay, Decoupled: o.kind == "adamw"}
}

// clipAll scales all gradients down if their norm exceeds the bound.
func (o *Optimizer) clipAll(p *program.Params, vectors *embedding.Table) {
	if vectors == nil {
		o.be.ClipNorm(p.Learned(p.G), o.clip, 0)
		return
	}
	vectors.Scale(o.be.ClipNorm(p.Learned(p.G), o.clip, vectors.Squares()))
}
