package model

import (
	"sync"

	"gdb/compute/program"
)

// programs holds the programs of a model, one for each order of aggregation and product that a
// batch has asked for. They may be asked for from any goroutine.
type programs struct {
	spec   *Spec
	params *program.Params

	mu   sync.Mutex
	made map[programKey]*program.Program
}

// programKey identifies a program. Bit i of order is set if at place i the product comes first.
type programKey struct {
	train, inPlace bool
	hidden         bool // without the last layer
	order          uint64
}

// get returns a program, which it makes the first time.
func (p *programs) get(k programKey) *program.Program {
	p.mu.Lock()
	defer p.mu.Unlock()
	if got := p.made[k]; got != nil {
		return got
	}
	o := p.spec.options(k.train, k.inPlace)
	for i := range 64 {
		o.Order = append(o.Order, k.order>>i&1 == 1)
	}
	build := p.spec.build
	if k.hidden {
		build = p.spec.buildHidden
		o.Layers--
	}
	made := program.Make(p.params, build, o)
	if p.made == nil {
		p.made = map[programKey]*program.Program{}
	}
	p.made[k] = made
	return made
}

// ordered returns the program with an order. If rows are to be read in place it clears bits of the
// order until they can be.
func (p *programs) ordered(k programKey, order uint64) *program.Program {
	for k.order = order; k.inPlace && k.order != 0 && !p.get(k).InPlace(); {
		k.order &= k.order - 1
	}
	return p.get(k)
}

// choose returns the program that costs least for a batch of these sizes. At each place where a
// product may come before its aggregation, it does if that alone costs less.
func (p *programs) choose(k programKey, s *program.Sizes) *program.Program {
	if p.spec.Order != nil {
		return p.ordered(k, *p.spec.Order)
	}
	plain := p.get(k)
	cost := plain.Cost(s)
	for i := range plain.Places() {
		one := k
		one.order = 1 << i
		other := p.get(one)
		if other.InPlace() == k.inPlace && other.Cost(s) < cost {
			k.order |= 1 << i
		}
	}
	return p.get(k)
}
