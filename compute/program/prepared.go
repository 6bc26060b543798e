package program

import (
	"slices"

	"gdb/compute/backend"
	"gdb/internal/bug"
	"gdb/internal/dense"
	"gdb/internal/mem"
)

// Prepared is what a step on a batch needs that follows from the batch alone: its lists as a
// program reads them, with loops, padding and what gradients need, and its properties. It is made
// beside steps, by any goroutine: for a device in a block, of which a step sends the whole. The
// memory is used again by the next batch.
type Prepared struct {
	program    *Program
	own, sizes Sizes // of the batch, and those that it is padded to
	features   int   // floats of the features, with padding
	layout     *layout
	lists      []preparedLists
	properties [properties]preparedValues
	computed   measures
	sorted     segments         // of a program that sorts entries
	kept       []keptLists      // by hop, of a batch with nodes outside memory
	ends       endLists         // of a batch of edges
	on         backend.Preparer // of the block; nil where the host computes
	block      *backend.Block   // nil once it was sent
	labels     blockRoom        // for what outputs are compared with
	places     blockRoom        // behind all else, for where rows of features are
	held       mem.Account
	// Counted is what a caller counted of the batch, for its step.
	Counted float64
}

// blockRoom is room in a block: words from first on, of which used are sent.
type blockRoom struct{ first, words, used int }

// preparedLists are lists of a batch, in memory of their own or in words of the block from first
// on.
type preparedLists struct {
	backend.Lists
	first, words int
	off, idx, at []uint32
}

// preparedValues are a property of a batch, in words of the block from first on, behind zeros.
type preparedValues struct {
	read  bool // by the program
	of    []float32
	first int
}

// NewPrepared returns a Prepared of no batch. What it holds beside its block is counted in budget,
// which may be nil.
func NewPrepared(budget *mem.Budget) *Prepared {
	return &Prepared{held: mem.NewAccount(budget, "lists of layers")}
}

// Prepare prepares a batch for a program: its Dense, Sizes, Rows, Degrees, Places and Padded are
// read. on is the device that computes, or nil. The error is of memory: nothing is prepared then.
func (p *Prepared) Prepare(prog *Program, in *Input, on backend.Preparer) error {
	p.Drop()
	p.program, p.on = prog, on
	if len(in.Sizes.Nodes) > 0 {
		p.own.copy(&in.Sizes)
	} else {
		p.own.set(in.Dense)
	}
	if in.Halo != nil {
		p.keep(in)
	}
	p.sizes.copy(&p.own)
	p.ends.set(in.Dense)
	if prog.sorts {
		in = p.sorted.sort(in, prog, p.own.Segments[0])
	}
	p.sorted.count(prog.numbered(&p.own))
	if in.Padded != nil {
		p.sizes.Raise(in.Padded)
	}
	p.features = prog.FeatureFloats(p.sizes.Of(prog.featureRows()))
	p.layout = prog.memory.arrange(&p.sizes, p.features)
	for k := range Property(properties) {
		p.properties[k] = preparedValues{read: prog.Reads(k)}
		switch {
		case k == SegmentType:
			p.properties[k].of = mem.View[float32](mem.BytesOf(p.sorted.types))
		case p.properties[k].read:
			p.properties[k].of = p.computed.values(k, in)
		}
		if k == EdgeColumn && prog.looped {
			p.properties[k].of = p.computed.withLoops(in.Dense, prog.columns)
		}
	}
	for len(p.lists) < len(prog.lists) {
		p.lists = append(p.lists, preparedLists{})
	}
	if on != nil {
		return p.inBlock(in)
	}
	for i, l := range prog.lists {
		p.inMemory(&p.lists[i], l, in)
	}
	return p.held.AtLeast(4 * int64(p.heldWords()))
}

// keep takes the lists of all hops without nodes that are missing.
func (p *Prepared) keep(in *Input) {
	for hop, missing := range in.Halo.Missing {
		if hop == len(p.kept) {
			p.kept = append(p.kept, keptLists{})
		}
		if missing == nil {
			continue
		}
		p.kept[hop].keep(in.Dense, hop, missing)
		p.own.Entries[hop] = len(p.kept[hop].idx)
	}
}

// listsOf returns where lists of a hop begin among entries, with the end, and what entries name.
func (p *Prepared) listsOf(l List, in *Input) (off, names []uint32) {
	if in.Halo != nil && in.Halo.Missing[l.Hop] != nil {
		return p.kept[l.Hop].off, p.kept[l.Hop].idx
	}
	if l.ends() {
		return p.ends.off, p.ends.of[l.of-toFirst]
	}
	return p.sorted.listed(l, in.Dense)
}

// endLists are lists of one entry each: the ends of edges, as positions among all nodes of a batch.
type endLists struct {
	off []uint32
	of  [2][]uint32
}

func (e *endLists) set(d *dense.Lists) {
	n := len(d.Ends) / 2
	if n == 0 {
		return
	}
	e.off = mem.Resized(e.off, n+1)
	first := d.NodeIDOffsets[d.Layers()]
	for k := range e.of {
		e.of[k] = mem.Resized(e.of[k], n)
		for i := range n {
			e.of[k][i] = first + d.Ends[2*i+k]
		}
	}
	for i := range e.off {
		e.off[i] = uint32(i)
	}
}

func (e *endLists) words() int { return cap(e.off) + cap(e.of[0]) + cap(e.of[1]) }

// FeatureRows returns how many rows of features the batch has, with padding.
func (p *Prepared) FeatureRows() int { return p.sizes.Of(p.program.featureRows()) }

// Places returns memory for a number of words that say where rows of features are: the caller
// writes them, and the step sends them with all else and gives them to Input.Features. It takes the
// place of what an earlier call returned. It returns nil where no block has as much room.
func (p *Prepared) Places(words int) []uint32 {
	if p.block == nil || words > p.places.words {
		return nil
	}
	p.places.used = words
	return p.block.Words[p.places.first:][:words:words]
}

// Labels returns memory for Input.Labels words, with which outputs are compared: the caller writes
// them, and the step sends them with all else. It returns nil where there is no block.
func (p *Prepared) Labels() []uint32 {
	if p.block == nil {
		return nil
	}
	return p.block.Words[p.labels.first:][:p.labels.words:p.labels.words]
}

// send sends the block, without room in it that nobody uses, and returns it on the device, and the
// places there.
func (p *Prepared) send() (all, places backend.Tensor) {
	bug.Check(p.block != nil, "a batch is computed that is not prepared")
	used := p.places
	p.block.Words = p.block.Words[:used.first+used.used]
	all = p.on.Send(p.block)
	p.block = nil
	return all, all.View(used.first, used.used, 1)
}

// Drop gives up what was prepared and not computed.
func (p *Prepared) Drop() {
	if p.block != nil {
		p.on.DropBlock(p.block)
		p.block = nil
	}
}

// Free gives up all memory, and returns whether there was any.
func (p *Prepared) Free() (freed bool) {
	freed = p.block != nil || p.held.Bytes() > 0
	p.Drop()
	p.held.Release()
	*p = Prepared{held: p.held}
	return freed
}

// inMemory prepares lists in memory of the host: those of the first hop where they are, if they are
// the batch's.
func (p *Prepared) inMemory(to *preparedLists, l listUse, in *Input) {
	s := p.listSizes(l)
	if l.Hop == 0 && !l.Loops && in.Padded == nil {
		off, names := p.listsOf(l.List, in)
		to.Lists = backend.Lists{Off: off, Idx: names}
		if s.At {
			to.At, to.Idx, to.Cut = names, in.tableRows(names), in.Cut
		}
	} else {
		to.off, to.idx = mem.Resized(to.off, s.Lists+1), mem.Resized(to.idx, s.Entries)
		to.Lists = backend.Lists{Off: to.off, Idx: to.idx}
		if s.At {
			to.at = mem.Resized(to.at, s.Entries)
			to.At, to.Cut = to.at, in.Cut
		}
		p.write(&to.Lists, l, in)
	}
	to.Rows, to.Entries = s.Rows, s.Weights
}

// tableRows returns the rows that entries name, which name some nodes, in a table or its Cut.
func (in *Input) tableRows(names []uint32) []uint32 {
	if in.Cut.Dim > 0 {
		return names
	}
	return in.Rows
}

// inBlock prepares all in a block.
func (p *Prepared) inBlock(in *Input) (err error) {
	words := 0
	take := func(n int) (first int) {
		first = words
		words += (n + backend.BlockAlign - 1) / backend.BlockAlign * backend.BlockAlign
		return first
	}
	for i, l := range p.program.lists {
		to := &p.lists[i]
		to.words = p.on.ListWords(p.listSizes(l))
		to.first = take(to.words)
	}
	for k := range p.properties {
		if x := &p.properties[k]; x.read {
			x.first = take(p.propertyRows(Property(k)))
		}
	}
	p.labels = blockRoom{first: take(in.Labels), words: in.Labels}
	p.places = blockRoom{words: in.Places * p.FeatureRows()}
	p.places.first = take(p.places.words)
	if err := p.held.AtLeast(4 * int64(p.computed.words())); err != nil {
		return err
	}
	if p.block, err = p.on.TakeBlock(words); err != nil {
		return err
	}
	for i, l := range p.program.lists {
		to := &p.lists[i]
		memory := p.block.Words[to.first:][:to.words]
		to.Lists = p.on.ListsIn(memory, p.listSizes(l))
		p.write(&to.Lists, l, in)
		p.on.FinishLists(memory, &to.Lists)
	}
	for k := range p.properties {
		if x := &p.properties[k]; x.read {
			rows := p.propertyRows(Property(k))
			to := p.block.Words[x.first:][:rows]
			zeros := rows - len(x.of)
			clear(to[:zeros])
			copy(to[zeros:], mem.View[uint32](mem.BytesOf(x.of)))
		}
	}
	return nil
}

// propertyRows returns how many rows a property has that was computed, with zeros before it. Of
// nodes that is as many as its padded rows; a batch without weights of nodes has none.
func (p *Prepared) propertyRows(k Property) int {
	return len(p.properties[k].of)/p.program.width(k) + p.padding(propertyKinds[k].rows)
}

// padding returns how many rows of a value are padding.
func (p *Prepared) padding(r Rows) int { return p.sizes.Of(r) - p.own.Of(r) }

// listSizes returns the sizes of lists as the program reads them.
func (p *Prepared) listSizes(l listUse) (s backend.ListSizes) {
	s.Lists, s.Entries = p.sizes.Of(l.has()), p.sizes.Of(Entries(l.List))
	s.At = l.Hop == 0 && p.program.inPlace && l.of != toNodes && !l.ends() && !l.Itself
	if l.transposed {
		s.Rows, s.Weights = p.sizes.Of(l.reads()), l.entries
	}
	return s
}

// write writes lists of a hop to memory of their sizes. Rows are counted from the first one of the
// hop. Where the batch is padded, empty lists come first, behind entries that no list has, and all
// rows of the batch are the last of their matrices, as those of a later layer are the last of an
// earlier one's: what stands before them is padding, and rows that other layers have.
func (p *Prepared) write(to *backend.Lists, l listUse, in *Input) {
	base, next := in.Dense.NodeIDOffsets[l.Hop], in.Dense.NodeIDOffsets[l.Hop+1]
	off, all := p.listsOf(l.List, in)
	from := all[off[0]:]
	padLists := len(to.Off) - len(off)
	padEntries := len(to.Idx) - p.own.Of(Entries(l.List))
	for i := range to.Off[:padLists] {
		to.Off[i] = uint32(padEntries)
	}
	clear(to.Idx[:padEntries])
	offs, idx := to.Off[padLists:], to.Idx[padEntries:]
	shift := uint32(p.padding(Nodes(l.Hop))) - base
	if l.of == toNodes || l.Itself {
		shift = -off[0]
	}
	switch {
	case to.At != nil: // rows are numbered as in a table
		clear(to.At[:padEntries])
		copy(to.At[padEntries:], from)
		copy(idx, in.tableRows(from))
	case l.Loops:
		withLoops(offs, idx, off, all, looped{uint32(padEntries), shift, next})
		if l.Itself {
			copy(idx, p.sorted.numbers)
		}
		return
	default:
		for i, r := range from {
			idx[i] = r + shift
		}
	}
	first := off[0] - uint32(padEntries)
	for i, o := range off {
		offs[i] = o - first
	}
}

// looped says where entries of lists with loops begin, what is added to their rows, and which node
// has the first list.
type looped struct{ first, shift, node uint32 }

// withLoops adds to each list an entry for its own node, the last.
func withLoops(toOff, toIdx, off, idx []uint32, by looped) {
	at := 0
	for i := range len(off) - 1 {
		toOff[i] = by.first + uint32(at)
		for _, r := range idx[off[i]:off[i+1]] {
			toIdx[at] = r + by.shift
			at++
		}
		toIdx[at] = by.node + uint32(i) + by.shift
		at++
	}
	toOff[len(off)-1] = by.first + uint32(at)
}

// heldWords returns the memory of lists in memory of the host, and of degrees.
func (p *Prepared) heldWords() int {
	n := p.computed.words() + p.sorted.words() + p.ends.words()
	for i := range p.kept {
		n += cap(p.kept[i].off) + cap(p.kept[i].idx)
	}
	for i := range p.lists {
		l := &p.lists[i]
		n += cap(l.off) + cap(l.idx) + cap(l.at)
	}
	return n
}

// HeldWords returns how many words of 4 bytes lists take of the host's memory for a batch of such
// sizes where the host computes.
func (p *Program) HeldWords(s *Sizes) (words int) {
	for _, l := range p.lists {
		if l.Loops || l.Hop > 0 {
			words += s.Of(l.has()) + 1 + s.Of(Entries(l.List))
		}
	}
	words += 3*s.Items + min(s.Items, 1)
	for _, v := range p.known { // states, which of them are missing, and lists that read them
		words += s.Of(p.of(v).rows) * (p.of(v).cols + 1)
		if hop := p.of(v).rows.n; hop < len(s.Entries) {
			words += s.Nodes[hop+1] + 1 + s.Entries[hop]
		}
	}
	words += min(len(p.known), 1) * s.Nodes[0] // which are inside
	return words + p.sortWords(s)
}

// ComputedWords returns how many words of 4 bytes properties take that are computed for a batch of
// such sizes.
func (p *Program) ComputedWords(s *Sizes) (words int) {
	for k, property := range propertyKinds {
		if property.held && p.Reads(Property(k)) {
			words += s.Of(property.rows)
		}
	}
	if p.looped { // columns of edges, with zeros for loops
		words += p.columns * s.Of(Entries(List{}.WithLoops()))
	}
	return words
}

// BlockWords returns how many words of 4 bytes a block has at most for a batch of such sizes, but
// for what a device makes of long lists: lists, transposed ones, and properties.
func (p *Program) BlockWords(s *Sizes) (words int) {
	for _, l := range p.lists {
		words += s.Of(l.has()) + 1 + s.Of(Entries(l.List)) + 6*backend.BlockAlign
	}
	for k, property := range propertyKinds {
		if p.Reads(Property(k)) {
			words += s.Of(property.rows) + backend.BlockAlign
		}
	}
	return words + p.ListFloats(s)
}

// ListFloats returns what the lists of a batch of such sizes take of a step's scratch for the
// backward pass.
func (p *Program) ListFloats(s *Sizes) (floats int) {
	for _, l := range p.lists {
		if l.transposed {
			floats += backend.SegmentFloats(s.Of(l.reads()), s.Of(Entries(l.List)),
				s.Of(l.has()), l.entries)
		}
	}
	return floats
}

// SizesOf returns the sizes of a batch.
func SizesOf(d *dense.Lists) (s Sizes) {
	s.set(d)
	return s
}

func (s *Sizes) set(d *dense.Lists) {
	s.Nodes = slices.Grow(s.Nodes[:0], d.Layers()+1)
	s.Entries = slices.Grow(s.Entries[:0], d.Layers())
	end := d.Nodes()
	for l := range d.Layers() + 1 {
		s.Nodes = append(s.Nodes, end-int(d.NodeIDOffsets[l]))
	}
	for l := range d.Layers() {
		first := d.NbrOffsets[d.NodeIDOffsets[l+1]-d.NodeIDOffsets[1]]
		s.Entries = append(s.Entries, len(d.ReprMap)-int(first))
	}
	s.Items = len(d.Ends) / 2
	s.countSegments(d)
}

// copy takes over sizes, in memory of its own.
func (s *Sizes) copy(o *Sizes) {
	s.Nodes, s.Entries = append(s.Nodes[:0], o.Nodes...), append(s.Entries[:0], o.Entries...)
	s.Segments, s.Items = append(s.Segments[:0], o.Segments...), o.Items
}

// Raise raises sizes to those of another batch of as many hops, of which programs that are padded
// read no segments.
func (s *Sizes) Raise(o *Sizes) {
	if len(s.Nodes) == 0 {
		s.Nodes, s.Entries = make([]int, len(o.Nodes)), make([]int, len(o.Entries))
	}
	s.Items = max(s.Items, o.Items)
	for i, n := range o.Nodes {
		s.Nodes[i] = max(s.Nodes[i], n)
	}
	for i, n := range o.Entries {
		s.Entries[i] = max(s.Entries[i], n)
	}
}

// Pads reports whether a padded batch gives what the batch gives: rows before the first have no
// gradient, and nothing sums up over entries or counts rows.
func (p *Program) Pads() bool {
	for i := range p.ops {
		o := &p.ops[i]
		if o.kind.counts {
			return false
		}
		k := p.of(o.in[0]).rows.kind
		if o.kind.overRows && (k == entryRows || k == loopRows) {
			return false
		}
	}
	return true
}
