package program

import (
	"maps"
	"slices"

	"gdb/compute/backend"
)

// Kind is what an operation computes, with all that passes, machines and plans ask about it. Each
// is a value in the file of its family. What a kind leaves out is the usual: it has no gradient,
// reads no lists, takes float32 and costs nothing that matters.
type Kind struct {
	// Op is its name, the shapes that fit, and a plain reference: what backends know of it.
	backend.Op
	// detail is printed behind the operands; nil for nothing.
	detail func(o *op) string

	// grad appends the gradients of the operands, given that of the result. Nil says that nothing
	// that is learned comes before the operation.
	grad rule
	// masks says that the gradient asks where the result is positive, so that the result of a
	// dropout that alone reads it answers for both.
	masks bool

	// product says which factor of a product of matrices is transposed.
	product product
	// lists says which lists it reads.
	lists listReads
	// reduces says how rows of lists become one, of a kind whose result has a row for each list;
	// linear that this is linear in the rows, so that a product may come before or after it.
	reduces, linear bool
	reduce          Reduce
	// accumulates says that it can add its result to a value instead of writing a new one.
	accumulates bool
	// overRows says that it sums up over all rows of its first operand, and counts that it counts
	// rows or sums up over entries in any case: see Program.Pads.
	overRows, counts bool
	// biased are the kinds that do the same to what a bias gives in one operation, by its kind.
	biased map[*Kind]*Kind
	// dropout says that it takes in a dropout that alone reads it, in half precision; drops that it
	// is one.
	dropout, drops bool

	// takes says what it takes for operand i in half precision; nil for float32.
	takes func(p *Program, o *op, i int) operand
	// writesHalf says whether its result can be bfloat16, given operands as it takes them; nil for
	// float32 alone.
	writesHalf func(p *Program, o *op) bool
	// follows says that it writes bfloat16 if it reads it.
	follows bool

	// flops is what it costs where the order of aggregation and product decides that, in
	// operations of a product.
	flops func(z sized) float64
	// taken is the scratch of its kernel besides operands, and takenHalf that with an operand of
	// bfloat16. longest bounds the entries of a list of the first hop.
	taken, takenHalf func(z sized, longest int) backend.Taken
}

// kinds are all kinds, by their names.
var kinds = map[string]*Kind{}

// define makes a kind known by its name. fits reports whether shapes are right, and ref computes
// the operation plainly: see backend.Op.
func define(name string, fits func(o *backend.Operands) bool, ref func(h *backend.Plain),
	k Kind) *Kind {
	k.Op = backend.Op{Name: name, Fits: fits, Ref: ref}
	if kinds[k.Name] != nil {
		panic("BUG: two operations are called " + k.Name)
	}
	kinds[k.Name] = &k
	return &k
}

// Named returns an operation by its name, for what runs one without a program.
func Named(name string) *backend.Op {
	k := kinds[name]
	if k == nil {
		panic("BUG: no operation is called " + name)
	}
	return &k.Op
}

// Names returns the names of all operations, sorted.
func Names() []string { return slices.Sorted(maps.Keys(kinds)) }

// String returns what the kind is called.
func (k *Kind) String() string { return k.Name }

// product says whether a kind is a product of matrices, and which factor it transposes.
type product uint8

const (
	noProduct product = iota
	plainProduct
	transposesA
	transposesB
)

// listReads says which lists a kind reads: none, those of its operation, these transposed, or
// transposed with the numbers of the entries.
type listReads uint8

const (
	noLists listReads = iota
	ownLists
	transposedLists
	transposedEntries
)

// Reduce is how a list's rows become one.
type Reduce uint8

// The reductions. The mean, the sum and the largest of an empty list are zero.
const (
	Mean Reduce = iota
	Sum
	Max
)

// op is one operation.
type op struct {
	kind *Kind // nil for one that is removed
	in   []Value
	// acc is the value that the result is added to, in its place; 0 for none. It may have more rows
	// than the result, which has rows: then its last ones are added to.
	acc  Value
	rows Rows
	out  Value
	// extra are more results: the rows of maxima, statistics of a norm, gradients of parameters.
	extra  []Value
	list   List
	heads  int
	first  int     // column
	shared bool    // all heads read the whole row
	scalar float32 // slope, factor
	parts  []int   // heights of the matrices of types
	rate   float32 // of a dropout, or of one that follows an activation in half precision
	site   int     // number of a dropout
	// inPlace is the operand whose memory the result takes, by its number; -1 for none.
	inPlace int
	// copies says that the operand in whose place the result comes is read again: it is copied.
	copies bool
	// tail says that a dropout is of the last rows of a matrix that is not there: its positions
	// begin where they do.
	tail bool
}

// simple makes an operation that writes a new value.
func simple(kind *Kind, in ...Value) op { return op{kind: kind, in: in, inPlace: -1} }

// inPlace makes an operation that may write in the place of its first operand.
func inPlace(kind *Kind, in ...Value) op { return op{kind: kind, in: in} }

// reads returns the values that an operation reads.
func (o *op) reads() []Value {
	if o.acc == 0 {
		return o.in
	}
	return append(o.in[:len(o.in):len(o.in)], o.acc)
}

// target returns the value in whose place the result may come; 0 for none.
func (o *op) target() Value {
	if o.acc == 0 && o.inPlace >= 0 {
		return o.in[o.inPlace]
	}
	return o.acc
}

// operands returns the operands of an operation, without tensors and lists.
func (o *op) operands() backend.Operands {
	return backend.Operands{Acc: o.acc != 0, Heads: o.heads, Shared: o.shared, First: o.first,
		Scalar: o.scalar, Parts: o.parts}
}

// overEntries copies what an operation over entries is about.
func (o op) overEntries(from *op) op {
	o.list, o.heads, o.scalar, o.shared = from.list, from.heads, from.scalar, from.shared
	return o
}

// Program is a list of operations. It has no memory.
type Program struct {
	values []value // values[0] is none
	ops    []op
	params *Params
	layers int
	sites  int

	features Value
	own      Value // features of Nodes(1), where the others are read in place
	logits   Value
	seed     Value // gradient of the logits; 0 without a backward pass
	input    Value // gradient of the features; 0 where it is not wanted
	explains bool  // edges are masked, and parameters have no gradients
	// keepsFeatures is Options.KeepFeatures.
	keepsFeatures bool
	mask          Value   // of the entries of all lists; 0 for none
	maskGrad      Value   // its gradient; 0 for none
	forward       int     // operations of the forward pass
	places        int     // where aggregation and product may change places
	known         []Value // results of layers, of which rows are Halo.States
	inPlace       bool    // the features but those of Nodes(1) are read where they are kept
	mayCut        bool    // they may be in pieces there
	sparse        bool    // the features are sparse rows
	memory        *memoryMap
	lists         []listUse // that it reads
	sorts         bool      // entries of lists by their types
	columns       int       // of entries, that it reads
	looped        bool      // zeros for loops are among these
}

func newProgram(params *Params, layers int) *Program {
	return &Program{values: make([]value, 1), params: params, layers: layers}
}

func (p *Program) new(v value) Value {
	p.values = append(p.values, v)
	return Value(len(p.values) - 1)
}

func (p *Program) of(v Value) *value { return &p.values[v] }

// add appends an operation, and returns its result, of rows x cols.
func (p *Program) add(o op, rows Rows, cols int) Value {
	v := value{rows: rows, cols: cols}
	for _, x := range o.in {
		v.grad = v.grad || p.of(x).grad
	}
	o.out = p.new(v)
	p.ops = append(p.ops, o)
	return o.out
}

// sized is an operation in a batch of some sizes.
type sized struct {
	p *Program
	o *op
	s *Sizes
}

// rows returns the number of rows of operand i.
func (z sized) rows(i int) int { return z.s.Of(z.p.of(z.o.in[i]).rows) }

// cols returns the number of columns of operand i.
func (z sized) cols(i int) int { return z.p.of(z.o.in[i]).cols }

// out returns the shape of the result.
func (z sized) out() (rows, cols int) {
	v := z.p.of(z.o.out)
	return z.s.Of(v.rows), v.cols
}

// outCols returns the width of the result.
func (z sized) outCols() int { return z.p.of(z.o.out).cols }

// heads returns at least 1.
func (z sized) heads() int { return max(1, z.o.heads) }

// lists returns how many there are, and entries how many entries they have.
func (z sized) lists() int { return z.s.Of(z.o.list.has()) }

func (z sized) entries() int { return z.s.Of(Entries(z.o.list)) }
