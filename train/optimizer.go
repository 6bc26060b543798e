package train

import (
	"fmt"

	"gdb/compute/backend"
	"gdb/compute/program"
	"gdb/train/embedding"
)

// These are the constants of the optimizers, as their authors set them: Kingma and Ba, "Adam: A
// Method for Stochastic Optimization"; Duchi, Hazan and Singer, "Adaptive Subgradient Methods".
const (
	adamBeta1  = 0.9
	adamBeta2  = 0.999
	adamEps    = 1e-8
	adagradEps = 1e-10
)

// optimizer changes the parameters of a model by their gradients.
type optimizer struct {
	be         backend.Backend
	kind       string
	base       float64 // learning rate, before schedule and warmup
	factor     float64 // of the schedule, in the current epoch
	warmup     int     // steps in which the rate grows to its full value
	clip       float32 // bound of the norm of the gradients; 0 for none
	decay      float32
	steps      int              // taken so far
	state      []backend.Tensor // adam: both moments; adagrad: the sums of squares
	stateNames []string
}

// newOptimizer returns an optimizer whose state is zeros.
func newOptimizer(be backend.Backend, c *Config, p *program.Params) (*optimizer, error) {
	o := &optimizer{be: be, kind: c.Optimizer, base: c.LR, factor: 1, warmup: c.Warmup,
		clip: float32(c.Clip), decay: float32(c.WeightDecay)}
	o.stateNames = stateNames(c.Optimizer)
	for _, name := range o.stateNames {
		t, err := be.Params(name, p.Total)
		if err != nil {
			return nil, fmt.Errorf("train: optimizer: %w", err)
		}
		o.state = append(o.state, t)
	}
	return o, nil
}

// rate returns the learning rate of the last step.
func (o *optimizer) rate() float64 {
	rate := o.base * o.factor
	if o.steps < o.warmup {
		rate *= float64(o.steps) / float64(o.warmup)
	}
	return rate
}

// reset sets the optimizer back to before the first step.
func (o *optimizer) reset() {
	o.steps = 0
	for _, s := range o.state {
		backend.Zero(o.be, s)
	}
}

// stateNames returns the names of the vectors that an optimizer keeps. Each has a value for
// each parameter.
func stateNames(kind string) []string {
	switch kind {
	case "adam", "adamw":
		return []string{"first moments", "second moments"}
	case "adagrad":
		return []string{"sums of squares"}
	}
	return nil
}

// step changes the parameters p by their gradients and, if vectors of nodes are learned, those of
// the batch's nodes.
func (o *optimizer) step(p *program.Params, vectors *embedding.Table) {
	o.steps++
	rate := float32(o.rate())
	w, g := p.Learned(p.W), p.Learned(p.G)
	if o.clip > 0 {
		o.clipAll(p, vectors)
	}
	switch o.kind {
	case "sgd":
		backend.SGD(o.be, w, g, rate, o.decay)
	case "adagrad":
		backend.Adagrad(o.be, w, g, p.Learned(o.state[0]),
			backend.AdamStep{Rate: rate, Eps: adagradEps, WeightDecay: o.decay})
	default:
		backend.Adam(o.be, w, g, backend.Moments{M: p.Learned(o.state[0]),
			V: p.Learned(o.state[1])}, o.adam(rate))
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
func (o *optimizer) adam(rate float32) backend.AdamStep {
	return backend.AdamStep{Step: o.steps, Rate: rate, Beta1: adamBeta1, Beta2: adamBeta2,
		Eps: adamEps, WeightDecay: o.decay, Decoupled: o.kind == "adamw"}
}

// clipAll scales all gradients down if their norm exceeds the bound.
func (o *optimizer) clipAll(p *program.Params, vectors *embedding.Table) {
	if vectors == nil {
		o.be.ClipNorm(p.Learned(p.G), o.clip, 0)
		return
	}
	vectors.Scale(o.be.ClipNorm(p.Learned(p.G), o.clip, vectors.Squares()))
}
