package backend

import (
	"fmt"
	"slices"

	"gdb/compute/kernel"
	"gdb/internal/mem"
)

// Op is an operation as backends know it. Each backend has a table of kernels by the names of
// operations; one that has no kernel for an operation computes its reference.
type Op struct {
	// Name is how the operation is called in tables, programs and errors.
	Name string
	// Fits says whether the shapes of operands are right; nil takes any.
	Fits func(o *Operands) bool
	// Ref computes the operation on values in the host's memory, plainly: it says what kernels
	// compute. Nil is for what every backend has a kernel of.
	Ref func(p *Plain)
}

// Operands are what an operation is done with: which of them it has, its kind says.
type Operands struct {
	// Out is the result, In are read, and Extra are more results. An operation in the place of
	// In[0] finds the same values in Out, whether it is the same memory or not.
	Out   Tensor
	In    [4]Tensor
	Extra [2]Tensor
	// Lists are those whose entries it is over.
	Lists Segments
	// Acc adds the result to Out. Gradients of rows are added too: only the first Fresh rows of Out
	// are written whatever they hold.
	Acc   bool
	Fresh int
	// Heads is how many parts of equal width columns are in, 0 for none. With Shared each head
	// reads whole rows.
	Heads  int
	Shared bool
	// First is the column that an operation on columns begins with; of sparse rows, how many
	// columns they stand for.
	First int
	// Scalar is a factor, a number or a slope.
	Scalar float32
	// Parts are the heights of the matrices of types, which stand one below the other; of compose,
	// what it says.
	Parts []int
	// Drop is the dropout of the result, or of rows as they are read.
	Drop Dropout

	// Labels are the classes of rows, Error what an error costs, and Step the settings of an
	// optimizer's step.
	Labels []int32
	Error  ErrorLoss
	Step   AdamStep
	// Link is what operations of link prediction are of.
	Link *Links
}

// Dropout zeroes values with probability Rate, 0 for none, and scales the others by 1/(1-Rate):
// which is a function of Key and position. The first value has the position First.
type Dropout = kernel.Drop

// HeadCols returns the width of a head of x.
func (o *Operands) HeadCols(x Tensor) int { return x.Cols / max(1, o.Heads) }

// Check panics for operands that do not fit: whoever made them is wrong.
func (op *Op) Check(o *Operands) {
	if op.Fits == nil || op.Fits(o) {
		return
	}
	shapes := ""
	for _, t := range slices.Concat([]Tensor{o.Out}, o.In[:], o.Extra[:]) {
		if t != (Tensor{}) {
			shapes += fmt.Sprintf(" (%d,%d)", t.Rows, t.Cols)
		}
	}
	panic("BUG: " + op.Name + " of shapes" + shapes)
}

// Matrix is the values of a tensor in the host's memory, row by row.
type Matrix struct {
	Rows, Cols int
	V          []float32
}

// Row is one of the rows.
func (m Matrix) Row(i int) []float32 { return m.V[i*m.Cols : (i+1)*m.Cols] }

// Plain are operands in the host's memory, for a reference: To is Out, From are In, and More are
// Extra.
type Plain struct {
	*Operands
	To    Matrix
	From  [4]Matrix
	More  [2]Matrix
	Lists Lists
}

// ReadPlain copies operands to the memory of the host, for a reference; lists are the lists that
// they name, which the host has already.
func ReadPlain(be Backend, o *Operands, lists Lists) *Plain {
	read := func(t Tensor) Matrix {
		m := Matrix{Rows: t.Rows, Cols: t.Cols, V: make([]float32, t.Len())}
		if t.Len() > 0 {
			be.Read(m.V, t)
		}
		return m
	}
	p := &Plain{Operands: o, To: read(o.Out), Lists: lists}
	for i, t := range o.In {
		p.From[i] = read(t)
	}
	for i, t := range o.Extra {
		p.More[i] = read(t)
	}
	return p
}

// Plain does an operation by its reference: values are read to the host, and what changed is
// written back.
func (op *Op) Plain(be Backend, o *Operands, lists Lists) {
	if op.Ref == nil {
		panic("BUG: " + op.Name + " has neither a kernel nor a reference")
	}
	p := ReadPlain(be, o, lists)
	kept := p.From
	for i, m := range kept {
		kept[i].V = slices.Clone(m.V)
	}
	op.Ref(p)
	for i, t := range o.In { // such as statistics that are kept
		if !slices.Equal(mem.BytesOf(kept[i].V), mem.BytesOf(p.From[i].V)) {
			be.Write(t, p.From[i].V)
		}
	}
	for i, t := range o.Extra {
		if t.Len() > 0 {
			be.Write(t, p.More[i].V)
		}
	}
	be.Write(o.Out, p.To.V)
}

// Drops drops values of the result out.
func (p *Plain) Drops() {
	if p.Drop.Rate > 0 {
		kernel.Dropout(nil, p.To.V, p.Drop.First, p.Drop.Rate, p.Drop.Key)
	}
}

// Entries calls fn with the list, the number and the row of each entry.
func (p *Plain) Entries(fn func(list, entry, row int)) {
	l := &p.Lists
	for i := range max(0, len(l.Off)-1) {
		for e := l.Off[i]; e < l.Off[i+1]; e++ {
			fn(i, int(e), int(l.Idx[e]))
		}
	}
}

// Length returns how many entries a list has.
func (p *Plain) Length(list int) int { return int(p.Lists.Off[list+1] - p.Lists.Off[list]) }

// Begin clears the result where it is not added to.
func (p *Plain) Begin() {
	switch {
	case p.Acc:
	case p.Fresh > 0:
		clear(p.To.V[:p.Fresh*p.To.Cols])
	default:
		clear(p.To.V)
	}
}
