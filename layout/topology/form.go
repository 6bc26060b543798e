package topology

import "gdb/layout"

// Form is how a resident reader holds lists.
type Form string

// The forms, from the fastest to the smallest. All give equal answers.
const (
	// Plain lists are arrays: 4 bytes per edge, and 4 per node, 8 from 2^32 edges on. The zero
	// value is plain too.
	Plain Form = "plain"
	// Packed ids take as many bits as the largest needs, 3 bytes for 16 million nodes; nodes as in
	// plain lists.
	Packed Form = "packed"
	// Compact lists are the blocks of the file as they are, some 2 bytes per edge, and about 1 per
	// node with what tells where lists are. Types, weights and times are in them. An entry is
	// decoded when it is drawn.
	Compact Form = "compact"
)

// FormBytes is what a resident reader takes in a form.
type FormBytes struct {
	Form  Form
	Bytes int64
}

// Forms are those of a store, from the fastest to the smallest, each smaller than those before it,
// with what they take for the options.
func Forms(s *layout.Store, dir layout.Direction, opt Options) (all []FormBytes) {
	for _, form := range []Form{Plain, Packed, Compact} {
		n := ResidentBytes(s, dir, form)
		if form != Compact {
			n += AttributeBytes(s, opt)
		}
		smaller := len(all) == 0 || n < all[len(all)-1].Bytes
		if smaller && (form != Compact || s.Meta().Coded) {
			all = append(all, FormBytes{form, n})
		}
	}
	return all
}
