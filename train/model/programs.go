package model

import "gdb/train/program"

// programs are the programs of a model, one for each order of aggregation and product that a batch
// asked for.
type programs struct {
	spec   *Spec
	params *program.Params
	made   map[programKey]*program.Program
	fixed  *uint64 // the order of all batches, for tests; nil for what costs the least
}

// programKey says which program it is. Bit i of order is that of place i.
type programKey struct {
	train, inPlace bool
	order          uint64
}

// get makes a program, once.
func (p *programs) get(k programKey) *program.Program {
	if got := p.made[k]; got != nil {
		return got
	}
	o := p.spec.options(k.train, k.inPlace)
	for i := range 64 {
		o.Order = append(o.Order, k.order>>i&1 == 1)
	}
	made := program.Make(p.params, p.spec.build, o)
	if p.made == nil {
		p.made = map[programKey]*program.Program{}
	}
	p.made[k] = made
	return made
}

// choose is the program that costs the least for a batch of such sizes. At each place where a
// product may come before its aggregation, it does if that alone costs less.
func (p *programs) choose(train, inPlace bool, s *program.Sizes) *program.Program {
	k := programKey{train: train, inPlace: inPlace}
	if p.fixed != nil {
		k.order = *p.fixed
		return p.get(k)
	}
	plain := p.get(k)
	cost := plain.Cost(s)
	for i := range plain.Places() {
		other := p.get(programKey{train: train, inPlace: inPlace, order: 1 << i})
		if other.InPlace() == inPlace && other.Cost(s) < cost {
			k.order |= 1 << i
		}
	}
	return p.get(k)
}
