package program

import "slices"

// What makes values, and what reads them.

// producers returns the numbers of the operations that make values.
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

// root returns the value of which v is a view, or v.
func (p *Program) root(v Value) Value {
	if base := p.of(v).base; base != 0 {
		return base
	}
	return v
}

// findLists finds the lists that the program reads.
func (p *Program) findLists() {
	at := map[List]int{}
	for i := range p.ops {
		o := &p.ops[i]
		if o.kind.lists == noLists {
			continue
		}
		if _, seen := at[o.list]; !seen {
			at[o.list] = len(p.lists)
			p.lists = append(p.lists, listUse{List: o.list})
			p.sorts = p.sorts || o.list.of == toSegments || o.list.of == toNodes
		}
		l := &p.lists[at[o.list]]
		l.transposed = l.transposed || o.kind.lists != ownLists
		l.entries = l.entries || o.kind.lists == transposedEntries
	}
}

// dropNone drops the operations that were removed.
func (p *Program) dropNone() {
	p.ops = slices.DeleteFunc(p.ops, func(o op) bool { return o.kind == nil })
}
