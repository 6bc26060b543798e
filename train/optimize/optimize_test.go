package optimize

import (
	"fmt"
	"math"
	"testing"

	"gdb/compute/backend"
	"gdb/compute/program"
	"gdb/internal/rng"
	"gdb/train/setting"
)

// plainOptimizer is every optimizer as its authors wrote it down, in float64, for one parameter.
type plainOptimizer struct {
	kind        string
	rate, decay float64
	w           float64
	m, v        float64 // adam: the moments; adagrad: v is the sum of squares
	steps       int
}

func (o *plainOptimizer) step(g float64) {
	o.steps++
	if o.kind == "adamw" {
		o.w -= o.rate * o.decay * o.w
	} else {
		g += o.decay * o.w
	}
	switch o.kind {
	case "sgd":
		o.w -= o.rate * g
	case "adagrad":
		o.v += g * g
		o.w -= o.rate * g / (math.Sqrt(o.v) + 1e-10)
	default:
		o.m = 0.9*o.m + 0.1*g
		o.v = 0.999*o.v + 0.001*g*g
		m := o.m / (1 - math.Pow(0.9, float64(o.steps)))
		v := o.v / (1 - math.Pow(0.999, float64(o.steps)))
		o.w -= o.rate * m / (math.Sqrt(v) + 1e-8)
	}
}

// TestOptimizers compares every step of every optimizer with the plain one. Some gradients are as
// small as the constants that keep a division by zero away, so that those show too.
func TestOptimizers(t *testing.T) {
	for _, kind := range []string{"sgd", "adam", "adamw", "adagrad"} {
		for _, decay := range []float64{0, 0.25} {
			t.Run(fmt.Sprintf("%s-decay-%g", kind, decay), func(t *testing.T) {
				compareOptimizer(t, kind, decay)
			})
		}
	}
}

func compareOptimizer(t *testing.T, kind string, decay float64) {
	const n, steps, rate = 48, 12, 0.01
	be, err := backend.OpenCPU(backend.Options{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer be.Close()
	p := program.Params{Total: n}
	for _, to := range []*backend.Tensor{&p.W, &p.G} {
		if *to, err = be.Params("values", n); err != nil {
			t.Fatal(err)
		}
	}
	o, err := New(be, &setting.Node{Learning: setting.Learning{Optimizer: kind, LR: rate},
		NodeLearning: setting.NodeLearning{WeightDecay: decay}}, &p)
	if err != nil {
		t.Fatal(err)
	}
	draw, want := rng.NewStream(5), make([]plainOptimizer, n)
	w, g := make([]float32, n), make([]float32, n)
	for i := range w {
		w[i] = float32(i%5) / 4
		want[i] = plainOptimizer{kind: kind, rate: rate, decay: decay, w: float64(w[i])}
	}
	be.Write(p.W, w)
	for step := range steps {
		for i := range g {
			size := []float64{1, 1e-2, 1e-8, 1e-10}[i%4]
			g[i] = float32((2*draw.Float64() - 1) * size)
			want[i].step(float64(g[i]))
		}
		be.Write(p.G, g)
		o.Step(&p, nil)
		be.Read(w, p.W)
		for i := range w {
			// A step rounds a weight of about 1 by 6e-8.
			if diff := math.Abs(float64(w[i]) - want[i].w); !(diff <= 1e-7*float64(step+2)) {
				t.Fatalf("step %d, parameter %d: %g, want %g", step+1, i, w[i], want[i].w)
			}
		}
	}
}

// TestClippedStep: a step of plain descent is as long as the norm allows.
func TestClippedStep(t *testing.T) {
	be, err := backend.OpenCPU(backend.Options{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer be.Close()
	p := program.Params{Total: 3}
	for _, to := range []*backend.Tensor{&p.W, &p.G} {
		if *to, err = be.Params("values", 3); err != nil {
			t.Fatal(err)
		}
	}
	o, err := New(be, &setting.Node{Learning: setting.Learning{Optimizer: "sgd", LR: 1},
		NodeLearning: setting.NodeLearning{Clip: 2}}, &p)
	if err != nil {
		t.Fatal(err)
	}
	be.Write(p.G, []float32{3, 0, -4})
	o.Step(&p, nil)
	w := make([]float32, 3)
	be.Read(w, p.W)
	for i, want := range []float64{-1.2, 0, 1.6} {
		if math.Abs(float64(w[i])-want) > 1e-6 {
			t.Errorf("weights %v: %d, want %v", w, i, want)
		}
	}
}
