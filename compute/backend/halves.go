package backend

// Halves is what a backend has that computes in half precision: tensors of bfloat16 (Tensor.Half)
// beside those of float32. Products, sums over lists and their gradients then take operands that
// are such tensors, but for biases, weights of entries and scores; sums are float32, and results
// are what their tensor is. A product takes both operands so, or only its first if few columns come
// of it. ReLUGrad and ELUGrad take y so, ColumnSum x, Columns and Copy both operands, Scratch none.
type Halves interface {
	// Narrow writes the nearest bfloat16 of each value of x to out, Widen their values as float32.
	Narrow(out, x Tensor)
	Widen(out, x Tensor)
	// Activate writes to out, which is of bfloat16, what an activation makes of x. x stays as it
	// is, unless both are the same tensor.
	Activate(out, x Tensor, a Activation)
	// ReLUGradTo writes to out, which is of bfloat16, what ReLUGrad makes of dx, which stays as it
	// is.
	ReLUGradTo(out, dx, y Tensor, rate float32)
	// ELUGradTo writes to out the gradient, given that of y, of ELU and then the dropout that a
	// has: y is what came of both, of bfloat16. dx stays as it is, unless it is out.
	ELUGradTo(out, dx, y Tensor, a Activation)
}

// Activation is what Activate does, in this order: it adds a row, cuts at zero or takes ELU, and
// drops values out.
type Activation struct {
	Bias Tensor // empty for none
	ReLU bool
	ELU  bool
	// Rate is the share of values that Dropout zeroes, 0 for none, First and Key are its others.
	Rate  float32
	First int
	Key   uint64
}
