package model

import (
	"slices"

	"gdb/compute/program"
)

// What models of typed graphs have in common: matrices for each type of nodes. A store without
// types of nodes has one type.

// typed reports whether the model has matrices for each type of nodes.
func (s *Spec) typed() bool {
	_, typed := s.Architecture.(interface{ typed() })
	return typed
}

// typeParts returns how many columns a matrix of each type of nodes reads of the rows of layer l:
// in the first layer the features that the type has. A specification of fewer features, which is
// only asked what it reads, has no more.
func (s *Spec) typeParts(l int) []int {
	parts := slices.Repeat([]int{s.Dims[l]}, max(1, len(s.NodeTypes)))
	if l == 0 && s.NodeEmbedding == 0 {
		for t, width := range s.TypeWidths {
			parts[t] = min(width, parts[t])
		}
	}
	return parts
}

// relationParts returns the same for each relation, whose sources are of one type.
func (s *Spec) relationParts(l int) (parts []int) {
	of := s.typeParts(l)
	for _, source := range s.Sources() {
		parts = append(parts, of[source])
	}
	return parts
}

// Sources returns the type of the sources of each relation.
func (s *Spec) Sources() []int {
	if len(s.RelationSources) > 0 {
		return s.RelationSources
	}
	return make([]int, s.relations())
}

// relationsOfSource returns how many relations nodes of one type are sources of at most.
func (s *Spec) relationsOfSource() (most int) {
	of := map[int]int{}
	for _, source := range s.Sources() {
		of[source]++
		most = max(most, of[source])
	}
	return most
}

// byType appends a product of rows with the matrix of each row's type of nodes; types has the
// number of each.
func (s *Spec) byType(b *program.Builder, l int, name string, x, types program.Value,
	out int) program.Value {
	if parts := s.typeParts(l); len(parts) > 1 {
		return b.TypeMatMul(x, b.Stack(layerName(l)+name, parts, out), types, parts)
	}
	return b.MatMul(x, b.Param(layerName(l)+name, b.Cols(x), out, program.Glorot))
}

// firstByType appends a product of rows with a matrix: one for each type of nodes in the first
// layer, the same for all behind it. own says that x has the rows of the nodes that have lists.
func (s *Spec) firstByType(b *program.Builder, l int, name string, x program.Value, own bool,
	out int) program.Value {
	switch {
	case l > 0 || len(s.NodeTypes) < 2:
		return b.MatMul(x, b.Param(layerName(l)+name, b.Cols(x), out, program.Glorot))
	case own:
		return s.byType(b, l, name, x, b.Own(b.NodeTypes()), out)
	}
	return s.byType(b, l, name, x, b.NodeTypes(), out)
}

// biased appends the bias of a layer's rows: one for each type of nodes, or the same for all.
func (s *Spec) biased(b *program.Builder, l int, y program.Value) program.Value {
	if n := len(s.NodeTypes); s.typed() && n > 1 {
		table := b.Param(layerName(l)+"bias", n, b.Cols(y), program.Zero)
		return b.BiasByType(y, table, b.Own(b.NodeTypes()))
	}
	return b.Bias(y, b.Param(layerName(l)+"bias", 1, b.Cols(y), program.Zero))
}
