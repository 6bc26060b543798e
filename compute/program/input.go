package program

import (
	"gdb/compute/backend"
	"gdb/compute/kernel"
	"gdb/internal/dense"
)

// Input is what a program computes a batch from.
type Input struct {
	Dense *dense.Lists
	// Sizes has the numbers of rows of Dense, if they were counted before: see SizesOf.
	Sizes Sizes
	// X are the features of the batch's nodes, or of Nodes(1) for a program that reads rows in
	// place. It is overwritten, unless the program keeps features.
	X []float32
	// Features returns the features of all nodes, instead of X, where the backend puts them
	// together. They are overwritten too. Places is how many numbers for each row a block has room
	// for, which say where rows are: see Prepared.Places. It has room for Labels words besides: see
	// Prepared.Labels.
	Features       backend.Assemble
	Places, Labels int
	// Table and Rows are Batch.Table and TableRows of package sample, for a program that reads rows
	// in place.
	Table backend.Tensor
	Rows  []uint32
	// Cut says where the Table has the rows of the batch's nodes, if they are in pieces: instead of
	// Rows. Its Dim is 0 where rows are whole.
	Cut kernel.Cut
	// Degrees are the in-degrees of the batch's nodes in the whole graph, for a program that reads
	// them.
	Degrees []uint32
	// Nodes are the numbers of the batch's nodes in the graph, and Types the first node of each
	// type, for a program that reads types of nodes: see NodeTypes.
	Nodes []uint32
	Types []int
	// Seed, Epoch and Batch are what dropout is a function of, beside its number and position.
	Seed, Epoch, Batch uint64
	// Mask has a number for each of Dense.ReprMap, for a program of Options.Explain. The entries of
	// lists must be in the order of their types then, where the program reads types.
	Mask []float32
	// Halo is set for a program that was made with Builder.Known.
	Halo *Halo
	// Padded are sizes that the batch is padded to, at least its own: nil for none. See
	// Program.Pads.
	Padded *Sizes
}
