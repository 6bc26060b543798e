package task

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"gdb/compute/backend"
	"gdb/compute/kernel"
)

// TestLossesAreThoseOfTraining compares the losses of an evaluation with the kernels that training
// uses, on values that would overflow a plain exponential too.
func TestLossesAreThoseOfTraining(t *testing.T) {
	const rows, n = 50, 7
	r := rand.New(rand.NewPCG(7, 8))
	pool := kernel.NewPool(1)
	logits, grad := make([]float32, rows*n), make([]float32, rows*n)
	labels, truth := make([]int32, rows), make([]float32, rows*n)
	for i := range logits {
		logits[i] = float32(r.NormFloat64() * 60)
		truth[i] = float32(r.IntN(2))
	}
	for i := range labels {
		labels[i] = int32(r.IntN(n))
	}
	near := func(name string, sum *lossSum, want float64) {
		t.Helper()
		if got, err := sum.Loss(); err != nil || math.Abs(got-want) > 1e-5*(1+math.Abs(want)) {
			t.Errorf("%s: loss %v, the kernel's is %v, %v", name, got, want, err)
		}
	}
	var classes, multi lossSum
	for i, label := range labels {
		classes.add(crossEntropy(logits[i*n:(i+1)*n], label))
	}
	for i, v := range logits {
		multi.add(binaryCrossEntropy(v, truth[i]))
	}
	mean, _, _ := kernel.SoftmaxCrossEntropy(pool, grad, logits, labels, rows, n)
	near("classes", &classes, mean)
	near("several classes", &multi, kernel.SigmoidBCE(pool, grad, logits, truth, rows, n))
	for _, kind := range []backend.ErrorLoss{backend.SquaredError, backend.AbsoluteError,
		backend.HuberError} {
		var numbers lossSum
		for i, v := range logits {
			numbers.add(errorLoss(kind, float64(v/20-truth[i])))
		}
		scaled := make([]float32, len(logits))
		for i, v := range logits {
			scaled[i] = v / 20
		}
		sum := kernel.Regression(pool, kind, grad, scaled, truth)
		near("numbers", &numbers, sum.Loss/float64(sum.Counted))
	}
}

func TestLossOfNothing(t *testing.T) {
	if _, err := new(lossSum).Loss(); !errors.Is(err, ErrNothing) {
		t.Errorf("the loss of no label: %v", err)
	}
}
