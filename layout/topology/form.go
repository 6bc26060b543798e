package topology

import "gdb/layout"

// Form is how a resident reader holds lists in memory.
type Form string

// The forms, from the fastest to the smallest. All give the same answers.
const (
	// Plain lists are arrays: 4 bytes per edge, and 4 per node, 8 if there are 2^32 edges or more.
	// The zero value means plain too.
	Plain Form = "plain"
	// Packed ids take as many bits as the largest id needs, such as 3 bytes for 16 million nodes;
	// nodes take as much as in plain lists.
	Packed Form = "packed"
	// Compact lists are the blocks of the file as they are: about 2 bytes per edge, and about 1 per
	// node for where lists begin. Types, weights and times are in the blocks. An entry is decoded
	// when it is drawn.
	Compact Form = "compact"
)

// FormBytes is a form and the memory that a resident reader takes in it.
type FormBytes struct {
	Form  Form
	Bytes int64
}

// Forms returns the forms that a store's lists can have, from the fastest to the smallest, with
// their memory for the options. A form that is not smaller than a faster one is left out.
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
