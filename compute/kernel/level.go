package kernel

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
)

// Level is a set of instructions that kernels are written for.
type Level int

// The levels, each faster than the one before.
const (
	Plain  Level = iota // Go
	AVX2                // AVX2 and FMA: 8 floats at once
	AVX512              // AVX-512F: 16 floats at once
)

var levelNames = []string{"plain", "avx2", "avx512"}

// String returns the name that GDB_KERNEL takes.
func (l Level) String() string { return levelNames[l] }

// ops are the parts of the kernels that differ between levels. Each works on one goroutine, on
// slices that are as long as they must be and, where there are rows, not empty; the exported
// functions cut the work into parts.
type ops struct {
	tiles *tileSet // of products; nil: plain
	sums  *sumSet  // of rows; nil: plain
	links *linkSet // of link prediction, fused; nil: plain

	bias     func(y, bias []float32, rows, n int)
	biasReLU func(y, bias []float32, rows, n int)
	reluGrad func(dy, y []float32, scale float32)
	dropout  func(y []float32, d *DropoutPlan, first uint32)
	add      func(dst, src []float32)
	scale    func(x []float32, s float32)
	rowMax   func(x []float32) float32
	expSum   func(out, x []float32, shift float32) float32
	adam     func(w, g, m, v []float32, c *adamPlan)
	sgd      func(w, g []float32, lr, weightDecay float32)
	adagrad  func(w, g, s []float32, lr, eps, weightDecay float32)

	times     func(y, x []float32, f float32)
	addScaled func(dst, src []float32, a float32)
	leaky     func(x []float32, slope float32)
	leakyGrad func(dx, y []float32, slope float32)
	elu       func(x []float32)
	eluGrad   func(dx, y []float32)
	gelu      func(y, x []float32)
	geluGrad  func(dx, x []float32)

	edgeScores  func(s, src, dst []float32, l *Lists, slope float32)
	subtractMax func(a []float32, off []uint32, heads int)
	divideSum   func(a []float32, off []uint32, heads int)
	edgeToDst   func(out, s []float32, off []uint32, heads int)
	edgeToSrc   func(sum, s []float32, entry []uint32)

	sum         func(x []float32) float32
	squares     func(x []float32, mean float32) float32
	normRow     func(y, x, gamma, beta []float32, mean, inverse float32)
	layerSums   func(dgamma, dbeta, dy, x, gamma []float32, mean, inverse float32) (p, s float32)
	layerGrad   func(dx, dy, x, gamma []float32, mean, inverse, plain, scaled float32)
	addSquares  func(sum, x, mean []float32)
	normColumns func(y, x, mean, factor, beta []float32)
	batchSums   func(dgamma, dbeta, dy, x, mean, inverse []float32)
	batchGrad   func(dx, dy, x, mean, a, b, c []float32)

	// Of link prediction: see lines.go, distance.go and linkrow.go. Without prefetch rows are not
	// asked for ahead.
	prefetch      func(table *float32, rows *uint32, count int, bytes uintptr)
	product       func(y, a, b []float32)
	addCube       func(g, x []float32, f float32)
	dot           func(a, b []float32) float32
	manhattan     func(a, b []float32) float32
	manhattanGrad func(da, db, a, b []float32, w float32)
	modulus       func(ar, ai, br, bi []float32) float32
	modulusGrad   func(da, db, a, b []float32, half, n uint64, w float32)
}

var plainOps = ops{
	bias: refBias, biasReLU: refBiasReLU, reluGrad: refReLUGrad, dropout: refDropout,
	add: refAdd, scale: refScale, rowMax: refRowMax, expSum: refExpSum,
	adam: refAdam, sgd: refSGD, adagrad: refAdagrad,
	times: refTimes, addScaled: refAddScaled, leaky: refLeaky, leakyGrad: refLeakyGrad,
	elu: refELU, eluGrad: refELUGrad, gelu: refGELU, geluGrad: refGELUGrad,
	edgeScores: refEdgeScores, subtractMax: refSubtractMax, divideSum: refDivideSum,
	edgeToDst: refEdgeToDst, edgeToSrc: refEdgeToSrc,
	sum: refSum, squares: refSquares, normRow: refNormRow, layerSums: refLayerSums,
	layerGrad: refLayerGrad, addSquares: refAddSquares, normColumns: refNormColumns,
	batchSums: refBatchSums, batchGrad: refBatchGrad,
	product: refProduct, addCube: refAddCube, dot: refDot, manhattan: refManhattan,
	manhattanGrad: refManhattanGrad, modulus: refModulus, modulusGrad: refModulusGrad,
}

// active is the level in use; tests change it.
var active atomic.Pointer[ops]

var chosen, errChosen = choose(os.Getenv("GDB_KERNEL"), supported())

func init() { active.Store(opsOf(chosen)) }

func level() *ops { return active.Load() }

// Chosen returns the level in use: the best one of this CPU, or the lower one that the environment
// variable GDB_KERNEL names. The error says that GDB_KERNEL names no level, or one that this CPU
// lacks; the best is in use then.
func Chosen() (Level, error) { return chosen, errChosen }

// choose returns the level of a name, which may be empty.
func choose(name string, best Level) (Level, error) {
	if name == "" {
		return best, nil
	}
	for l := range Level(len(levelNames)) {
		if levelNames[l] != name {
			continue
		}
		if l > best {
			return best, fmt.Errorf("kernel: GDB_KERNEL=%s: this CPU has no more than %s", l, best)
		}
		return l, nil
	}
	return best, fmt.Errorf("kernel: GDB_KERNEL=%q: known are %s", name,
		strings.Join(levelNames, ", "))
}
