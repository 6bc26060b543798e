package model

import "gdb/compute/program"

// programs are the programs of a model, one for each order of aggregation and product that a batch
// asked for.
type programs struct {
	spec   *Spec
	params *program.Params
	made   map[programKey]*program.Program
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

// ordered is the program of an order, but for places at which rows could not be read in place then.
func (p *programs) ordered(k programKey, order uint64) *program.Program {
	for k.order = order; k.inPlace && k.order != 0 && !p.get(k).InPlace(); {
		k.order &= k.order - 1
	}
	return p.get(k)
}

// choose is the program that costs the least for a batch of such sizes. At each place where a
// product may come before its aggregation, it does if that alone costs less.
func (p *programs) choose(train, inPlace bool, s *program.Sizes) *program.Program {
	k := programKey{train: train, inPlace: inPlace}
	if p.spec.Order != nil {
		return p.ordered(k, *p.spec.Order)
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
