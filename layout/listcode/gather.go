package listcode

// Ref is what a Gatherer needs to know of a list, in 32 bytes. Kernels in assembly know its layout.
type Ref struct {
	low    uint64 // place of the first cell, of packed entries, or of low bits
	first  uint32
	Count  uint32
	recip  uint32 // 2^32 divided by the entries of a cell, rounded up; 0 if all are in one
	stride uint16 // bits of a cell
	per    uint8  // entries of a cell
	base   uint8  // bits of the base of a cell
	ahead  uint8  // bits of a cell before the low bits
	width  uint8  // of low bits, or of packed entries
	kind   uint8
	// From is the position of the first entry here, which is not 0 if earlier entries of the list
	// are elsewhere.
	From uint32
}

// RefBytes is the size of a Ref.
const RefBytes = 32

// The kinds of a Ref. Kernels treat packed entries as low bits of one cell without upper bits;
// whole lists are not read by kernels.
const (
	kindPacked = 0
	kindCells  = 1<<8 - 1
	kindWhole  = 1
)

// recips holds 2^32 divided by n, rounded up, so that i*recips[n]>>32 is i/n for all i below
// countMost.
var recips = func() (all [1 << 6]uint32) {
	for n := perLeast; n < len(all); n++ {
		all[n] = uint32((1<<32 + uint64(n) - 1) / uint64(n))
	}
	return all
}()

const _ uint = 1<<32 - (countMost-1)<<6 // the quotients are exact

// Ref returns the Ref of a list.
func (l *List) Ref() Ref {
	r := Ref{low: l.low, first: l.first, Count: l.Count, width: l.width}
	switch {
	case l.way == wayCells:
		r.setCells(l.cells)
	case l.way >= wayEF:
		r.kind = kindWhole
	}
	return r
}

func (r *Ref) setCells(k cells) {
	r.recip, r.stride, r.per = recips[k.per&63], uint16(k.stride()), k.per
	r.base, r.ahead, r.width, r.kind = k.base, uint8(k.ahead()), k.low, kindCells
}

// Moved returns the Ref of the same list, if it lies this number of bits further on.
func (r Ref) Moved(bits uint64) Ref {
	r.low += bits
	return r
}

// countForms tells, by the first bits of a count, how the count goes on.
var countForms = func() (all [1 << countBits]struct {
	mask  uint64
	least uint16
	bits  uint8 // of the count
}) {
	for i := range all {
		all[i].least, all[i].bits = uint16(i), countBits
	}
	all[countShort].mask, all[countShort].bits = 1<<8-1, countBits+8
	all[countShort+1].mask, all[countShort+1].bits = 1<<longBits-1, countBits+longBits
	all[countShort+1].least = countLong
	return all
}()

// ReadRef reads the head of a list at a place. Parse must have accepted the list before.
func (c Coding) ReadRef(r *Ref, b []byte, at uint64) {
	word := load(b, at)
	short := &countForms[word&(1<<countBits-1)]
	n := uint64(short.least) + word>>countBits&short.mask
	at += uint64(short.bits)
	word = load(b, at)
	*r = Ref{first: c.Base + uint32(word&(1<<c.FirstBits-1)), Count: uint32(n) + 1}
	at += uint64(c.FirstBits)
	if r.low = at; n == 0 {
		return
	}
	way := uint8(word >> c.FirstBits & (1<<wayBits - 1))
	r.low += wayBits
	switch {
	case way == wayCells:
		r.setCells(cellsOf(load(b, r.low)))
		r.low += cellsHead
	case way >= wayEF:
		r.low += (n - 1) / sampleEvery * uint64(c.PosBits)
		r.width, r.kind = way-wayEF, kindWhole
	default:
		r.width = way
	}
}

// Heads says where some lists begin, and what their codings are: Base and FirstBits as CodingWord
// packs them. Place 0 stands for an empty list, whose coding is not read.
type Heads struct {
	At      []uint64
	Codings []uint64
}

// CodingWord returns Base and FirstBits as one word for Heads. The bits from CodingSpare up to the
// base are free for other use.
func (c Coding) CodingWord() uint64 { return uint64(c.Base)<<32 | uint64(c.FirstBits) }

// CodingSpare is the number of low bits of a CodingWord that are in use.
const CodingSpare = 8

// ReadRefs reads the heads of lists to refs, and their lengths to counts. Parse must have accepted
// the lists before, and all must have the same PosBits.
func ReadRefs(b []byte, posBits int, h Heads, refs []Ref, counts []uint32) {
	if n := len(h.At); n > 0 {
		readRefs(b, posBits, Heads{h.At, h.Codings[:n]}, refs[:n], counts[:n])
	}
}

func readRefsPlain(b []byte, posBits int, h Heads, refs []Ref, counts []uint32) {
	for i, at := range h.At {
		word := h.Codings[i]
		c := Coding{Base: uint32(word >> 32), FirstBits: int(word & (1<<CodingSpare - 1)),
			PosBits: posBits}
		c.ReadRef(&refs[i], b, at)
		if at == 0 {
			refs[i].Count = 0
		}
		counts[i] = refs[i].Count
	}
}

const (
	// drawsAhead is for how many entries memory is prefetched before they are read: somewhat more
	// than the reads of memory that a core can have under way.
	drawsAhead = 32
	// drawsMost is how many entries are read together: what was prefetched then still is in the
	// core's caches.
	drawsMost = 64
)

// Gatherer reads single entries of many lists. One goroutine may use it. It notes the places of
// entries as they are given, prefetches them, and reads them only after more were given, so that it
// computes while memory is on its way.
type Gatherer struct {
	b       []byte
	posBits int
	reach   uint64 // bits
	out     []uint32
	used    int // places
	places  [drawsMost + drawsAhead]place
	whole   []wholeDraws
}

// place is where an entry is. Kernels in assembly know its layout.
type place struct {
	at    uint64 // place of the cell
	low   uint64 // place of the low bits, or of a packed entry
	first uint32 // first id of the list
	width uint8  // of low bits, or of a packed entry
	base  uint8  // bits of the base of the cell
	kind  uint8  // kindCells, or kindPacked
	rank  uint8  // index of the entry in the cell
}

// wholeDraws are entries of a list that is coded as a whole, noted at places from number from on.
// The contents of these places are not used.
type wholeDraws struct {
	list Ref
	pos  []uint32
	from int
}

// NewGatherer returns a Gatherer for lists in b, each at most reach bytes long. reach bytes and
// Slack must follow the last list in b.
func NewGatherer(c Coding, b []byte, reach int) *Gatherer {
	return &Gatherer{b: b, posBits: c.PosBits, reach: 8 * uint64(reach)}
}

// Begin starts to write entries to out, one after the other. Entries noted before are dropped.
func (g *Gatherer) Begin(out []uint32) {
	g.out, g.used, g.whole = out, 0, g.whole[:0]
}

// List adds the entries of a list at positions, which the list must have. pos must not change until
// End.
func (g *Gatherer) List(l *Ref, pos []uint32) {
	for len(pos) > 0 {
		n := min(len(pos), len(g.places)-g.used)
		if l.kind == kindWhole {
			g.wholes(l, pos[:n], g.used)
		} else {
			findPlaces(g.b, l, pos[:n], g.places[g.used:g.used+n])
		}
		pos = pos[n:]
		if g.used += n; g.used == len(g.places) {
			g.take(drawsMost)
		}
	}
}

// Each adds one entry of each list, at the position of the same index; see List.
func (g *Gatherer) Each(lists []*Ref, pos []uint32) {
	for len(pos) > 0 {
		n := min(len(pos), len(g.places)-g.used)
		findPlacesOf(g.b, lists[:n], pos[:n], g.places[g.used:g.used+n])
		for k, l := range lists[:n] {
			if l.kind == kindWhole {
				g.wholes(l, pos[k:k+1], g.used+k)
			}
		}
		lists, pos = lists[n:], pos[n:]
		if g.used += n; g.used == len(g.places) {
			g.take(drawsMost)
		}
	}
}

// End writes all entries that were added.
func (g *Gatherer) End() {
	for g.used > 0 {
		g.take(min(g.used, drawsMost))
	}
}

// take reads the first n entries that were added.
func (g *Gatherer) take(n int) {
	take(g.b, g.places[:n], g.out[:n])
	taken := 0
	for i := range g.whole {
		w := &g.whole[i]
		k := max(0, min(len(w.pos), n-w.from))
		if k > 0 {
			g.takeWhole(&w.list, w.pos[:k], g.out[w.from:])
		}
		if w.pos = w.pos[k:]; len(w.pos) == 0 {
			taken++
		}
		w.from = max(0, w.from-n)
	}
	g.whole = g.whole[:copy(g.whole, g.whole[taken:])]
	g.used = copy(g.places[:], g.places[n:g.used])
	g.out = g.out[n:]
}

// wholes notes entries of a list that is coded as a whole, from place number at on, and prefetches
// their memory.
func (g *Gatherer) wholes(l *Ref, pos []uint32, at int) {
	to := g.places[at : at+len(pos)]
	g.whole = append(g.whole, wholeDraws{*l, pos, at})
	for k, p := range pos {
		i := uint64(max(p-l.From, 1) - 1)
		to[k] = place{low: l.low + i*uint64(l.width),
			at: l.low + (uint64(l.Count)-1)*uint64(l.width)}
		if i >= sampleEvery {
			to[k].at = l.sample(i, g.posBits)
		}
	}
	ask(g.b, to)
}

// sample returns the place of the sample before entry i of a list that is coded as a whole.
func (r *Ref) sample(i uint64, posBits int) uint64 {
	all := (uint64(r.Count) - 2) / sampleEvery
	return r.low - (all-i/sampleEvery+1)*uint64(posBits)
}

// takeWhole reads entries of a list that is coded as a whole. A damaged list gives arbitrary ids,
// but no memory outside is read.
func (g *Gatherer) takeWhole(r *Ref, pos, out []uint32) {
	n, b := uint64(r.Count)-1, g.b
	upper := r.low + n*uint64(r.width)
	for k, p := range pos {
		if out[k] = r.first; p == r.From {
			continue
		}
		i, at := uint64(p-r.From)-1, upper
		if i >= sampleEvery {
			at = min(at+Field(b, r.sample(i, g.posBits), g.posBits), upper+g.reach)
		}
		one := selectOne(b, at, i%sampleEvery, upper+g.reach)
		low := Field(b, r.low+i*uint64(r.width), int(r.width))
		out[k] += uint32((one-upper-i)<<r.width | low)
	}
}
