package listcode

// Ref is what a Gatherer needs to know of a list, in 32 bytes. Kernels know where its fields are.
type Ref struct {
	low    uint64 // the place of the first cell, of packed entries, or of low bits
	first  uint32
	Count  uint32
	recip  uint32 // 2^32 by the entries of a cell, rounded up; 0: all are in one
	stride uint16 // of cells
	per    uint8  // entries of a cell
	base   uint8  // bits of the base of a cell
	ahead  uint8  // bits of a cell before the low bits
	width  uint8  // of low bits, or of packed entries
	kind   uint8
	// From is what positions count from: that of the first entry here, where a list has more
	// entries in other places.
	From uint32
}

// RefBytes is the size of a Ref.
const RefBytes = 32

// The kinds of a Ref. Kernels take packed entries as the low bits of one cell, of which nothing
// else counts, and whole as neither.
const (
	kindPacked = 0
	kindCells  = 1<<8 - 1
	kindWhole  = 1
)

// recips are 2^32 by a number, rounded up: so i*recips[n]>>32 is i/n for all i below countMost.
var recips = func() (all [1 << 6]uint32) {
	for n := perLeast; n < len(all); n++ {
		all[n] = uint32((1<<32 + uint64(n) - 1) / uint64(n))
	}
	return all
}()

const _ uint = 1<<32 - (countMost-1)<<6 // what makes the quotients right

// Ref is that of a list.
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

// Moved is that of the same list so many bits further on.
func (r Ref) Moved(bits uint64) Ref {
	r.low += bits
	return r
}

// countForms are how a count goes on, by its first bits.
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

// ReadRef reads the head of a list at a place, which Parse took before.
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

// Heads are where some lists begin, and what is known of their codings: Base and FirstBits as
// CodingWord puts them together. The place 0 is that of an empty list, of which no more is known
// than that it has no ids.
type Heads struct {
	At      []uint64
	Codings []uint64
}

// CodingWord is what Heads have of a coding. Bits from codingSpare up to the base may be used for
// other things.
func (c Coding) CodingWord() uint64 { return uint64(c.Base)<<32 | uint64(c.FirstBits) }

// CodingSpare is how many bits a CodingWord has below those that are not used.
const CodingSpare = 8

// ReadRefs reads the heads of lists, which Parse took before, to refs, and their counts to counts.
// All have codings with the same PosBits.
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
	// drawsAhead is for how many entries memory is under way before they are read: some more than
	// the reads of memory that a core has under way.
	drawsAhead = 32
	// drawsMost is how many are read in one go: what was asked for stays in the caches of a core.
	drawsMost = 64
)

// Gatherer reads single entries of many lists. It is for one goroutine. It notes where entries are
// as they are given, and asks for their memory; it reads them when as many more were given as a
// core can wait for: so it computes while memory is on its way.
type Gatherer struct {
	b       []byte
	posBits int
	reach   uint64 // bits
	out     []uint32
	used    int // places
	places  [drawsMost + drawsAhead]place
	whole   []wholeDraws
}

// place is where an entry is. Kernels know where its fields are.
type place struct {
	at    uint64 // of the cell
	low   uint64 // of the low bits, or of a packed entry
	first uint32 // of the list
	width uint8  // of low bits, or of a packed entry
	base  uint8  // bits of the base of the cell
	kind  uint8  // kindCells, or kindPacked
	rank  uint8  // number of the entry in the cell
}

// wholeDraws are entries of a list that is coded as a whole. Their places, from number from on, say
// nothing.
type wholeDraws struct {
	list Ref
	pos  []uint32
	from int
}

// NewGatherer returns one for lists in b, none larger than reach, in bytes; as many, and Slack,
// follow the last list in b.
func NewGatherer(c Coding, b []byte, reach int) *Gatherer {
	return &Gatherer{b: b, posBits: c.PosBits, reach: 8 * uint64(reach)}
}

// Begin begins with entries that are written to out, one after the other. What was under way is
// given up.
func (g *Gatherer) Begin(out []uint32) {
	g.out, g.used, g.whole = out, 0, g.whole[:0]
}

// List takes the entries of a list at positions, each one that it has, which stay as they are until
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

// Each takes an entry of each of some lists at positions, as List does.
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

// End writes what is under way.
func (g *Gatherer) End() {
	for g.used > 0 {
		g.take(min(g.used, drawsMost))
	}
}

// take reads the first n entries.
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

// wholes notes entries of a list that is coded as a whole, from place number at on, and asks for
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

// sample is the place of the sample before entry i of a list that is coded as a whole.
func (r *Ref) sample(i uint64, posBits int) uint64 {
	all := (uint64(r.Count) - 2) / sampleEvery
	return r.low - (all-i/sampleEvery+1)*uint64(posBits)
}

// takeWhole reads entries of a list that is coded as a whole. What is damaged gives any ids, and
// reads no other memory.
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
