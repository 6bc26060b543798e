package mem

import (
	"fmt"
	"strings"
)

// Component is a part of a program that wants memory. It stands for how the part would be opened;
// Divide decides how much the part is given. Sizes are bytes.
type Component struct {
	// Name names the part, and What is a remark for people.
	Name, What string
	// Least is the smallest size with which the part works. More than Most is of no use to it.
	Least, Most int64
	// Share is how many sixteenths of the memory that is free at its turn the part is given beyond
	// Least.
	Share int64
	// Takes returns what the part takes if it is given a size: it may have tables beside it, or use
	// whole pages only. Nil takes the size itself.
	Takes func(given int64) int64
}

// Fixed returns a component that takes a number of bytes, no fewer and no more.
func Fixed(name, what string, bytes int64) Component {
	return Component{Name: name, What: what, Least: bytes, Most: bytes}
}

// All is the Share, in sixteenths, of a component that is given all that is free at its turn.
const All = 16

// Part is a part of a program with its share of the memory.
type Part struct {
	Name  string `json:"what"`
	What  string `json:"-"`     // a remark for people; "" if there is none
	Bytes int64  `json:"bytes"` // that it takes
	Given int64  `json:"-"`     // the size it was given, from which Bytes follow
}

// Pool is memory that the parts of a program share.
type Pool struct {
	Device string // that the memory belongs to
	Bytes  int64  // all of it
	Least  int64  // with which all parts would have their least
	Parts  []Part
}

// Divide divides bytes of memory among components. Each is given its Least. Then each is given, in
// their order, its Share of what is still free. If all of the Leasts do not fit, nothing is given
// beyond them, and Left of the pool is below 0.
func Divide(bytes int64, all []Component) Pool {
	p := Pool{Bytes: bytes}
	for _, c := range all {
		p.Parts = append(p.Parts, c.given(c.Least))
	}
	p.Least = p.Taken()
	for i, c := range all {
		if free := p.Left(); free > 0 && c.Most > c.Least {
			p.Parts[i] = c.given(min(c.Most, c.Least+free*c.Share/All))
		}
	}
	return p
}

// given returns the part that a component becomes if it is given a size.
func (c *Component) given(size int64) Part {
	p := Part{Name: c.Name, What: c.What, Bytes: size, Given: size}
	if c.Takes != nil {
		p.Bytes = c.Takes(size)
	}
	return p
}

// Taken returns the bytes that the parts take together.
func (p *Pool) Taken() (bytes int64) {
	for _, part := range p.Parts {
		bytes += part.Bytes
	}
	return bytes
}

// Left returns the bytes that no part takes. It is below 0 if the parts do not fit.
func (p *Pool) Left() int64 { return p.Bytes - p.Taken() }

// String returns the parts and what is left in one line.
func (p *Pool) String() string {
	var b strings.Builder
	for _, part := range p.Parts {
		fmt.Fprintf(&b, "%s %s", part.Name, FormatSize(part.Bytes))
		if part.What != "" {
			fmt.Fprintf(&b, " (%s)", part.What)
		}
		b.WriteString(", ")
	}
	fmt.Fprintf(&b, "left %s", FormatSize(p.Left()))
	return b.String()
}

// Part returns the part of a name; a part without a size if there is none.
func (p *Pool) Part(name string) Part {
	for _, part := range p.Parts {
		if part.Name == name {
			return part
		}
	}
	return Part{Name: name}
}
