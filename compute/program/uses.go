package program

// What makes values, and what reads them.

// producers are the numbers of the operations that make values.
func (p *Program) producers() map[Value]int {
	from := map[Value]int{}
	for i := range p.ops {
		from[p.ops[i].out] = i
	}
	return from
}

// uses counts the operands that are a value or a view of it.
func (p *Program) uses() map[Value]int {
	n := map[Value]int{}
	for i := range p.ops {
		for _, v := range p.ops[i].reads() {
			n[v]++
			if base := p.of(v).base; base != 0 {
				n[base]++
			}
		}
	}
	return n
}

// root is the value of which v is a view, or v.
func (p *Program) root(v Value) Value {
	if base := p.of(v).base; base != 0 {
		return base
	}
	return v
}
