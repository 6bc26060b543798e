package train

import (
	"fmt"

	"gdb/compute/backend"
	"gdb/compute/program"
	"gdb/train/embedding"
)

// Constants of the optimizers, as their authors set them: Kingma and Ba, "Adam: A Method for
// Stochastic Optimization"; Duchi, Hazan and Singer, "Adaptive Subgradient Methods".
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
	base       float64 // the rate, before what follows
	factor     float64 // of the schedule, in the current epoch
	warmup     int     // steps in which the rate grows to its own
	clip       float32 // the most that the norm of the gradients may be; 0: any
	decay      float32
	steps      int              // taken so far
	state      []backend.Tensor // adam: both moments; adagrad: the sums of squares
	stateNames []string
}

// newOptimizer takes the memory of the state, zeros at first.
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

// rate is that of the last step.
func (o *optimizer) rate() float64 {
	rate := o.base * o.factor
	if o.steps < o.warmup {
		rate *= float64(o.steps) / float64(o.warmup)
	}
	return rate
}

// reset forgets all steps.
func (o *optimizer) reset() {
	o.steps = 0
	for _, s := range o.state {
		backend.Zero(o.be, s)
	}
}

// stateNames are the vectors that an optimizer keeps, each of the size of the parameters.
func stateNames(kind string) []string {
	switch kind {
	case "adam", "adamw":
		return []string{"first moments", "second moments"}
	case "adagrad":
		return []string{"sums of squares"}
	}
	return nil
}

// step applies the gradients of p, and those of the vectors of a batch's nodes, if any are learned.
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

// adam is the step that is due.
func (o *optimizer) adam(rate float32) backend.AdamStep {
	return backend.AdamStep{Step: o.steps, Rate: rate, Beta1: adamBeta1, Beta2: adamBeta2,
		Eps: adamEps, WeightDecay: o.decay, Decoupled: o.kind == "adamw"}
}

// clipAll bounds the norm of all gradients.
func (o *optimizer) clipAll(p *program.Params, vectors *embedding.Table) {
	if vectors == nil {
		o.be.ClipNorm(p.Learned(p.G), o.clip, 0)
		return
	}
	vectors.Scale(o.be.ClipNorm(p.Learned(p.G), o.clip, vectors.Squares()))
}
