package program

import (
	"fmt"
	"strings"
)

// String prints the program, one operation a line.
func (p *Program) String() string {
	var b strings.Builder
	for i := range p.ops {
		if i == p.forward {
			fmt.Fprintf(&b, "%s = gradient of the loss at %s\n", p.show(p.seed), p.name(p.logits))
		}
		fmt.Fprintln(&b, p.Op(i))
	}
	return b.String()
}

// Len returns the number of operations.
func (p *Program) Len() int { return len(p.ops) }

// Backward reports whether operation i is of the backward pass.
func (p *Program) Backward(i int) bool { return i >= p.forward }

// Shape returns the shape of the result of operation i, for a batch of sizes s.
func (p *Program) Shape(i int, s *Sizes) (rows, cols int) {
	v := p.of(p.ops[i].out)
	return s.Of(v.rows), v.cols
}

// Op returns a line about operation i.
func (p *Program) Op(i int) string {
	o := &p.ops[i]
	var in []string
	for _, v := range o.in {
		in = append(in, p.name(v))
	}
	sign := "="
	if o.acc != 0 {
		sign = "= " + p.name(o.acc) + " +"
	}
	line := fmt.Sprintf("%s %s %s(%s)", p.show(o.out), sign, o.kind, strings.Join(in, ", "))
	if o.kind.detail != nil {
		line += o.kind.detail(o)
	}
	if o.kind.lists != noLists {
		line += " " + o.list.String()
	}
	if o.rate > 0 && !o.kind.drops {
		line += " dropout"
	}
	if o.copies {
		line += " copying"
	}
	return line
}

// name returns what a value is called, and show adds its shape.
func (p *Program) name(v Value) string {
	x := p.of(v)
	switch {
	case x.role == roleParam:
		return x.name
	case x.role == roleGrad:
		return fmt.Sprintf("d(%s)", p.params.shapes[x.index].name)
	case x.role == roleHost && x.base == 0:
		return propertyKinds[x.index].name
	case v == p.features:
		return "features"
	case x.role == roleTable:
		return "table"
	case x.base != 0:
		return fmt.Sprintf("%s[%s]", p.name(x.base), x.rows)
	}
	return fmt.Sprintf("%%%d", v)
}

func (p *Program) show(v Value) string {
	x := p.of(v)
	kind := ""
	if x.half {
		kind = " bf16"
	}
	return fmt.Sprintf("%s (%s x %d%s)", p.name(v), x.rows, x.cols, kind)
}
