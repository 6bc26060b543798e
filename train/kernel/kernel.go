// Package kernel holds the float32 kernels of training: pure functions over row-major slices.
//
// A matrix x of shape (R, C) is x[r*C+c]; shapes stand in the comments. Each kernel has a plain Go
// version in ref.go, which is the specification; AVX2 and AVX-512 versions are chosen at run time
// by what the CPU has (Level). Results have the same bits for the same inputs, whatever the timing
// and whatever Pool.Workers: work is cut into parts by the shapes alone, and partial sums are added
// in the order of the parts. Between levels they differ in the last bits.
//
// Slices may be longer than the shape needs. A slice that is shorter is a programmer's error and
// panics. Inputs and outputs must not overlap where a comment does not allow it.
package kernel

// ops are the parts of the kernels that differ between levels. Each works on one goroutine and on
// slices that are as long as they must be; the exported functions cut the work into parts.
type ops struct {
	segmentSum  func(out, x []float32, off, idx []uint32, d int, mean bool)
	weightedSum func(out, x, weight []float32, off, idx []uint32, d int)
	columnSum   func(out, x []float32, rows, n int)
	bias        func(y, bias []float32, rows, n int)
	biasReLU    func(y, bias []float32, rows, n int)
	reluGrad    func(dy, y []float32)
	dropout     func(y []float32, d *dropoutPlan, first uint32)
	add         func(dst, src []float32)
	scale       func(x []float32, s float32)
	rowMax      func(x []float32) float32
	expSum      func(out, x []float32, shift float32) float32
	adam        func(w, g, m, v []float32, c *adamPlan)
	sgd         func(w, g []float32, lr, weightDecay float32)
	adagrad     func(w, g, s []float32, lr, eps, weightDecay float32)
}

var plainOps = ops{
	segmentSum: refSegmentSum, weightedSum: refWeightedSum, columnSum: refColumnSum,
	bias: refBias, biasReLU: refBiasReLU, reluGrad: refReLUGrad, dropout: refDropout,
	add: refAdd, scale: refScale, rowMax: refRowMax, expSum: refExpSum,
	adam: refAdam, sgd: refSGD, adagrad: refAdagrad,
}

func level() *ops { return &plainOps }
