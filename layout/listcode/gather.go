package listcode

// Ref is what Gather needs to know of a list, in 16 bytes.
type Ref struct {
	lowWay uint64 // the place of the low bits, and in the low 8 bits the way
	first  uint32
	Count  uint32
}

// Ref is that of a list.
func (l *List) Ref() Ref {
	way := uint64(l.width)
	if l.ef {
		way += wayEF
	}
	return Ref{lowWay: l.low<<8 | way, first: l.first, Count: l.Count}
}

// Moved is that of the same list so many bits further on.
func (r Ref) Moved(bits uint64) Ref {
	r.lowWay += bits << 8
	return r
}

// gatherMost is how many entries are under way at a time: their places fit in the first cache of a
// core, and are enough that reads of memory overlap.
const gatherMost = 256

// Gatherer reads single entries of many lists. It is for one goroutine.
//
// It goes over some hundred entries in stages, each a loop in which no step waits for the one
// before: where low bits and samples are, the samples, the ones of the upper bits, the low bits.
// The memory that a stage reads was asked for in the one before.
type Gatherer struct {
	coding Coding
	b      []byte
	reach  int // bytes
	used   int // entries under way
	ones   int // of them, those of Elias-Fano

	low   Places // of packed entries or low bits
	width [gatherMost]uint8
	first [gatherMost]uint32

	// Of the entries of Elias-Fano: which they are, the upper bits of their list, and where to look
	// for a one, first the place of a sample, if there is one.
	which [gatherMost]uint16
	upper [gatherMost]uint64
	at    Places
	rank  [gatherMost]uint64
	// Of those that have a sample: which of the entries of Elias-Fano they are, where the sample
	// is, and what it says.
	sampled  [gatherMost]uint16
	sampleAt Places
	sample   [gatherMost]uint32
	samples  int
}

// NewGatherer returns one for lists in b. The upper bits of a list are at most reach bytes, and as
// many, and Slack, follow the last list in b.
func NewGatherer(c Coding, b []byte, reach int) *Gatherer {
	return &Gatherer{coding: c, b: b, reach: reach}
}

// Gather writes to out the entries of lists[i] at positions pos[off[i]:off[i+1]], which are below
// its Count, at the same places. The first place is off[0].
func (g *Gatherer) Gather(lists []Ref, off, pos, out []uint32) {
	from := off[0]
	for i := range lists {
		end := off[i+1]
		for at := off[i]; at < end; {
			n := min(end-at, uint32(gatherMost-g.used))
			g.add(&lists[i], pos[at:at+n])
			at += n
			if g.used == gatherMost {
				g.finish(out[from:at])
				from = at
			}
		}
	}
	g.finish(out[from:off[len(lists)]])
}

// add takes entries of one list in.
func (g *Gatherer) add(l *Ref, pos []uint32) {
	low, way := l.lowWay>>8, l.lowWay&(1<<8-1)
	first, used := l.first, g.used
	if way < wayEF {
		for k, p := range pos {
			// Entry 0 is the first id: its field has no bits.
			j, width := (used+k)&(gatherMost-1), uint8(way)
			if p == 0 {
				p, width = 1, 0
			}
			g.low.at[j], g.width[j], g.first[j] = low+uint64(p-1)*way, width, first
		}
		g.used += len(pos)
		return
	}
	way -= wayEF
	n := uint64(l.Count - 1)
	upper, ones := low+n*way, g.ones
	posBits := uint64(g.coding.PosBits)
	samples := low - (n-1)/sampleEvery*posBits - posBits
	for k, p := range pos {
		j := (used + k) & (gatherMost - 1)
		if p == 0 {
			g.low.at[j], g.width[j], g.first[j] = low, 0, first
			continue
		}
		i := uint64(p - 1)
		g.low.at[j], g.width[j], g.first[j] = low+i*way, uint8(way), first
		o := ones & (gatherMost - 1)
		g.which[o], g.upper[o], g.at.at[o], g.rank[o] = uint16(j), upper, upper, i
		if s := i / sampleEvery; s > 0 {
			k := g.samples & (gatherMost - 1)
			g.sampled[k], g.sampleAt.at[k] = uint16(o), samples+s*posBits
			g.samples++
		}
		ones++
	}
	g.ones = ones
	g.used += len(pos)
}

// finish writes the entries under way to out.
func (g *Gatherer) finish(out []uint32) {
	b, used, ones := g.b, g.used, g.ones
	last := uint64(len(b)-g.reach-Slack) * 8
	packedFields(b, g.sampleAt.at[:g.samples], g.coding.PosBits, g.sample[:g.samples])
	for k, o := range g.sampled[:g.samples] {
		// A sample that is damaged leads to any id, but to no other memory.
		g.at.at[o&(gatherMost-1)] = min(g.upper[o&(gatherMost-1)]+uint64(g.sample[k]), last)
	}
	addFields(b, g.low.at[:used], g.width[:used], g.first[:used], out)
	selectOnes(b, g.at.at[:ones], g.rank[:ones], g.reach)
	for o, at := range g.at.at[:ones] {
		j := g.which[o]
		out[j] += uint32((at - g.upper[o] - g.rank[o]) << (g.width[j&(gatherMost-1)] & 63))
	}
	g.used, g.ones, g.samples = 0, 0, 0
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

// RefAt reads the head of a list at a place, which Parse took before.
func (c Coding) RefAt(b []byte, at uint64) Ref {
	word := load(b, at)
	short := &countForms[word&(1<<countBits-1)]
	n := uint64(short.least) + word>>countBits&short.mask
	head := uint64(short.bits)
	word = load(b, at+head)
	first := c.Base + uint32(word&(1<<c.FirstBits-1))
	at += head + uint64(c.FirstBits)
	if n == 0 {
		return Ref{first: first, lowWay: at << 8, Count: 1}
	}
	way := word >> c.FirstBits & (1<<wayBits - 1)
	at += wayBits
	if way >= wayEF {
		at += (n - 1) / sampleEvery * uint64(c.PosBits)
	}
	return Ref{lowWay: at<<8 | way, first: first, Count: uint32(n) + 1}
}
