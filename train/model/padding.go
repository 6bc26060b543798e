package model

import "gdb/compute/program"

const (
	// paddingSteps is how many classes of sizes there are at most: the largest has twice the sizes
	// of the first.
	paddingSteps = 12
	// paddingRound is what padded sizes are multiples of.
	paddingRound = 16
	// paddingMost, in quarters, bounds how many rows and entries a padded batch has for each of its
	// own.
	paddingMost = 5
)

// Padding says which sizes batches are padded to, so that a device does the same work for each:
// after Joestar's kernel invocation grouping (section 5.3.2). There are classes of sizes: the first
// is a sixteenth above those of a sample of batches, and each a sixteenth above the one before. The
// class of a batch follows from its sizes and the sample alone, so that what is computed does not
// depend on the batches before or on who prepares it. The zero value pads nothing. Its methods may
// be called from any goroutine.
type Padding struct{ classes []program.Sizes }

// NewPadding returns the padding for batches of which the largest of a sample have such sizes. The
// sample has as many seeds as every batch but the last of an epoch.
func NewPadding(sampled *program.Sizes) *Padding {
	p, last := &Padding{}, sampled
	for range paddingSteps {
		next := program.Sizes{}
		for i, n := range last.Nodes {
			if i < len(last.Nodes)-1 {
				n = roundedUp(n)
			}
			next.Nodes = append(next.Nodes, n)
		}
		for _, n := range last.Entries {
			next.Entries = append(next.Entries, roundedUp(n))
		}
		p.classes = append(p.classes, next)
		last = &next
	}
	return p
}

// roundedUp returns a sixteenth more.
func roundedUp(n int) int {
	n += (n + 15) / 16
	return (n + paddingRound - 1) / paddingRound * paddingRound
}

// Fit returns the sizes that a batch of such sizes is padded to, those of the smallest class that
// holds it: nil if it is to stay as it is, since it is much smaller or larger than the sample, or
// has another number of seeds, such as the last of an epoch.
func (p *Padding) Fit(s *program.Sizes) *program.Sizes {
	last := len(s.Nodes) - 1
	for i := range p.classes {
		c := &p.classes[i]
		if len(c.Nodes) != len(s.Nodes) || c.Nodes[last] != s.Nodes[last] {
			return nil
		}
		if holds(c.Nodes, s.Nodes) && holds(c.Entries, s.Entries) {
			if 4*firstRead(c) > paddingMost*firstRead(s) {
				return nil
			}
			return c
		}
	}
	return nil
}

// holds reports whether no size is larger than that of the class.
func holds(class, sizes []int) bool {
	for i, n := range sizes {
		if n > class[i] {
			return false
		}
	}
	return true
}

// firstRead returns the rows and the entries that the first layer reads.
func firstRead(s *program.Sizes) int {
	n := s.Nodes[0]
	if len(s.Entries) > 0 {
		n += s.Entries[0]
	}
	return n
}
