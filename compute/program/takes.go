package program

// What operations take and write in a program of half precision.

// operand says what an operation takes for one of its operands, in a program of half precision.
type operand uint8

const (
	takesFloats operand = iota
	takesHalf           // bfloat16
	takesEither
)

// takes returns what operation o takes for operand i. Products and sums over lists take bfloat16;
// what they are the gradients of does not matter.
func (p *Program) takes(o *op, i int) operand {
	if o.kind.takes == nil {
		return takesFloats
	}
	return o.kind.takes(p, o, i)
}

// allHalf takes bfloat16, firstHalf does for the first operand.
func allHalf(*Program, *op, int) operand { return takesHalf }

func firstHalf(_ *Program, _ *op, i int) operand {
	if i == 0 {
		return takesHalf
	}
	return takesFloats
}

// second takes something for the second operand, and else float32.
func second(takes operand) func(*Program, *op, int) operand {
	return func(_ *Program, _ *op, i int) operand {
		if i == 1 {
			return takes
		}
		return takesFloats
	}
}

// writesHalf reports whether an operation, which reads what it takes, can write its result as
// bfloat16.
func (p *Program) writesHalf(o *op) bool {
	return o.kind.writesHalf != nil && o.kind.writesHalf(p, o)
}

func always(*Program, *op) bool { return true }

// unlessAdded writes bfloat16 where the result is not added to a value.
func unlessAdded(_ *Program, o *op) bool { return o.acc == 0 }
