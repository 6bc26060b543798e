package model

import (
	"gdb/sample"
	"gdb/train/backend"
)

// gatherFlops is what reading one float of a random row costs, in floating-point operations of a
// matrix product: a core gathers about 5 GB/s and multiplies at about 100 GFLOP/s.
const gatherFlops = 80

// transformFirst says whether A(XW) is cheaper than (AX)W for a layer. Aggregating moves edges x
// width floats, forward and, if the gradient of the input is needed, backward; transforming first
// has the product over all inputs and not only the outputs, and always needs the gradient of the
// aggregation.
func transformFirst(v sample.Layer, din, dout int, needsInput bool) bool {
	edges, passes, products := float64(len(v.Idx)), 1.0, 2.0
	if needsInput {
		passes, products = 2, 3
	}
	width := 2 * products * float64(din) * float64(dout)
	aggregated := gatherFlops*passes*edges*float64(din) + width*float64(v.Out)
	transformed := gatherFlops*2*edges*float64(dout) + width*float64(v.In)
	return transformed < aggregated
}

// Params counts the parameters of all layers.
func (SAGE) Params(dims []int) (n int) {
	var p Params
	p.layers(dims)
	for _, s := range p.shapes {
		n += s.rows * s.cols
	}
	return n
}

// StepFloats counts the scratch of a step as sage.results takes it, and the entries of its layers'
// lists, if what its layers compute were grown, but not the rows that the first of them leaves
// dead.
// inPlace says that these are not the batch's own.
func (SAGE) StepFloats(dims []int, d *sample.Dense, inPlace bool,
	grown func(n int64) int64) (floats, lists int64) {
	end := d.NodeIDOffsets[len(d.NodeIDOffsets)-1]
	var dead deadRoom
	take := func(rows uint32, cols int) {
		n := grown(int64(rows) * int64(cols))
		if _, ok := dead.take(int(n)); !ok {
			floats += n
		}
	}
	for l := range len(dims) - 1 {
		v := sample.Layer{In: end - d.NodeIDOffsets[l], Out: end - d.NodeIDOffsets[l+1]}
		v.Idx = d.ReprMap[d.NbrOffsets[d.NodeIDOffsets[l+1]-d.NodeIDOffsets[1]]:]
		inPlace := inPlace && l == 0
		first := !inPlace && transformFirst(v, dims[l], dims[l+1], l > 0)
		if first || l > 0 {
			floats += grown(int64(backend.SegmentFloats(int(v.In), len(v.Idx), int(v.Out))))
		}
		if first {
			take(v.In, dims[l+1])
		} else {
			take(v.Out, dims[l])
		}
		if l == 0 && !first && !inPlace {
			dead.floats = int(v.In-v.Out) * dims[0]
		}
		take(v.Out, dims[l+1])
		take(v.Out, dims[l+1])
		if l > 0 {
			lists += grown(int64(v.Out) + 1 + int64(len(v.Idx)))
		}
	}
	return floats, lists
}

// ProductBytes is the scratch memory of matrix products: partial sums, and packed blocks.
func (SAGE) ProductBytes(dims []int, threads int) int64 {
	n := int64(0)
	for i := range len(dims) - 1 {
		n = max(n, backend.ProductBytes(dims[i], dims[i+1], threads))
	}
	return n
}

// DroppedBytes is what each thread copies of a list's rows to drop values of them.
func (SAGE) DroppedBytes(dims []int, threads, fanout int) int64 {
	return backend.DroppedBytes(threads, fanout, dims[0])
}

// InPlace: only a layer narrower than half its input may transform first, which needs a copy: see
// transformFirst, whose choice the result's last bits depend on.
func (SAGE) InPlace(dims []int) bool { return dims[0] <= 2*dims[1] }

// TransformsFirst: a layer that is narrower than its input averages narrow rows.
func (SAGE) TransformsFirst(dims []int, layer int) bool { return dims[layer+1] < dims[layer] }
