package model

import (
	"gdb/sample"
	"gdb/train/backend"
	"gdb/train/program"
)

// Params counts the values that a model learns.
func (s *Spec) Params() int {
	var p program.Params
	program.Make(&p, s.build, s.options(false, false))
	return p.Count()
}

// StepFloats counts the scratch of a training step on a mini-batch, and the entries of the lists
// that it makes, if the numbers of its nodes and entries were num/den times as large, but not the
// features, of which dead rows are used again. inPlace says that the rows of the first layer's
// neighbors are read where they are kept.
func (s *Spec) StepFloats(d *sample.Dense, inPlace bool, num, den int64) (floats, lists int64) {
	var params program.Params
	made := programs{spec: s, params: &params}
	sizes := program.SizesOf(d)
	p := made.choose(true, inPlace, &sizes)
	features := sizes.Nodes[0] * s.Dims[0]
	if p.InPlace() {
		features = sizes.Nodes[1] * s.Dims[0]
	}
	grown := program.Sizes{}
	for _, n := range sizes.Nodes {
		grown.Nodes = append(grown.Nodes, scaled(n, num, den))
	}
	for l, n := range sizes.Entries {
		grown.Entries = append(grown.Entries, scaled(n, num, den))
		if l > 0 {
			lists += int64(grown.Nodes[l+1] + 1 + grown.Entries[l])
		}
	}
	return int64(p.StepFloats(&grown, features) + p.ListFloats(&grown)), lists
}

func scaled(n int, num, den int64) int { return int((int64(n)*num + den - 1) / den) }

// Degrees says whether the model reads degrees of a batch's nodes.
func (s *Spec) Degrees() bool {
	var params program.Params
	p := program.Make(&params, s.build, s.options(true, false))
	return p.Reads(program.InvSqrtDegree) || p.Reads(program.ListScale)
}

// ProductBytes is the scratch memory of matrix products by so many threads: partial sums, and
// packed blocks.
func (s *Spec) ProductBytes(threads int) int64 {
	n := int64(0)
	for i := range s.Layers() {
		n = max(n, backend.ProductBytes(s.Dims[i], s.Dims[i+1], threads))
	}
	return n
}

// DroppedBytes is what each thread copies of a list's rows, of at most fanout neighbors, to read
// them in place with dropout.
func (s *Spec) DroppedBytes(threads, fanout int) int64 {
	return backend.DroppedBytes(threads, fanout, s.Dims[0])
}

// InPlace says whether the first layer may average features where they are kept: nothing else reads
// those of neighbors, and only a layer narrower than half its input may transform first, which
// needs a copy.
func (s *Spec) InPlace() bool {
	var p program.Params
	return program.Make(&p, s.build, s.options(true, true)).InPlace() && s.Dims[0] <= 2*s.Dims[1]
}
