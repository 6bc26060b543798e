package program

import "gdb/compute/backend"

// Masks of edges: a number for each entry of a batch's lists, with which the message of the entry
// is multiplied in all layers, and whose gradient the backward pass computes. They tell what a
// model's result depends on (Ying and others, "GNNExplainer", section 4.1). A program of
// Options.Explain masks the lists of neighbors in Pull and PullWeighted, so models need not know
// it. An entry that a model adds for the node itself is not masked.

var (
	// opMask is x of the entries and heads, times the mask y of the entries.
	opMask = define("mask", func(o *backend.Operands) bool {
		return sameLen(o) && maskFits(o, o.In[1]) && o.Out.Rows == o.Lists.Entries
	}, func(h *backend.Plain) {
		copyRef(h)
		masked(h, h.From[1].Rows, func(entry, at int) {
			for k := range h.To.Row(entry) {
				h.To.Row(entry)[k] *= h.From[1].V[at]
			}
		})
	}, Kind{lists: ownLists, counts: true})
	// opMaskGrad is the gradient of the mask, given those of the result x and the values y.
	opMaskGrad = define("mask-grad", func(o *backend.Operands) bool {
		return o.In[0].Len() == o.In[1].Len() && maskFits(o, o.Out)
	}, func(h *backend.Plain) {
		h.Begin()
		masked(h, h.To.Rows, func(entry, at int) {
			h.To.V[at] = dot(h.From[0].Row(entry), h.From[1].Row(entry))
		})
	}, Kind{lists: ownLists})
	// opMaskShare is the mask of each entry over the length of its list: sums of rows with these
	// weights are means of masked rows. It is its own gradient.
	opMaskShare = define("mask-share", func(o *backend.Operands) bool {
		return sameLen(o) && o.Out.Len() == o.Lists.Entries
	}, func(h *backend.Plain) {
		h.Entries(func(list, entry, _ int) {
			h.To.V[entry] = h.From[0].V[entry] / float32(h.Length(list))
		})
	}, Kind{lists: ownLists, counts: true})
)

func init() { // these refer to themselves
	opMask.grad = func(t *tape, o *op, dy Value) {
		t.give(o.in[0], simple(opMask, dy, o.in[1]).overEntries(o))
		t.give(o.in[1], simple(opMaskGrad, dy, o.in[0]).overEntries(o))
	}
	opMaskShare.grad = func(t *tape, o *op, dy Value) {
		t.give(o.in[0], simple(opMaskShare, dy).overEntries(o))
	}
}

// maskFits says that a mask has a number for each entry that is not a loop.
func maskFits(o *backend.Operands, mask backend.Tensor) bool {
	return mask.Cols == 1 &&
		(mask.Rows == o.Lists.Entries || mask.Rows == o.Lists.Entries-o.Lists.Lists)
}

// masked calls f with each entry that has a mask, and with the number of its mask. With fewer masks
// than entries, the last entry of each list is its node's own, which has none.
func masked(h *backend.Plain, masks int, f func(entry, at int)) {
	loops := masks < len(h.Lists.Idx)
	h.Entries(func(list, entry, _ int) {
		switch {
		case !loops:
			f(entry, entry)
		case entry+1 < int(h.Lists.Off[list+1]):
			f(entry, entry-list)
		}
	})
}

// masks reports whether the entries of lists are masked: those of neighbors are.
func (b *Builder) masks(l List) bool {
	return b.p.explains && (l.of == ofNeighbors || l.of == toSegments)
}

// mask returns the mask of the entries of lists that are not loops.
func (b *Builder) mask(l List) Value {
	if b.p.mask == 0 {
		b.p.mask = b.p.new(value{rows: Entries(List{}), cols: 1, role: roleHost,
			index: int(EdgeMask), grad: true})
	}
	return b.p.tail(b.p.mask, Entries(List{Hop: l.Hop}))
}

// masked returns weights of entries times the mask.
func (b *Builder) masked(w Value, l List) Value {
	o := simple(opMask, w, b.mask(l))
	o.list = l
	return b.like(w, o)
}

// pullMasked reduces the masked rows of x in each list to one.
func (b *Builder) pullMasked(x Value, l List, r Reduce) Value {
	w := b.mask(l)
	switch r {
	case Max:
		panic("BUG: the largest of masked rows is asked for: model.Spec.Explains refuses it")
	case Mean:
		o := simple(opMaskShare, w)
		o.list = l
		w = b.like(w, o)
	}
	return b.pullWeighted(x, w, l, weighing{heads: 1})
}
