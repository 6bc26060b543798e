package listcode

import "fmt"

// Ref is what a Gatherer needs to know of a list, in 16 bytes.
type Ref struct {
	lowWay uint64 // the place of the low bits, and in the low 8 bits the way
	first  uint32
	Count  uint32
}

// RefBytes is the size of a Ref.
const RefBytes = 16

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

const (
	// batchDraws is how many entries go from stage to stage together: some more than the reads of
	// memory that a core has under way.
	batchDraws = 16
	// stages are those of a batch: it is filled; lists are parsed; samples are read; and entries.
	stages = 4
)

// Gatherer reads single entries of many lists. It is for one goroutine.
//
// Entries go through stages in batches, and in each stage the memory is asked for that the next one
// reads: while one batch is filled, that of the others is on its way. A stage is a loop in which no
// step waits for the one before, and which does not branch by what lists are.
type Gatherer struct {
	coding  Coding
	b       []byte
	reach   int // bytes
	last    uint64
	out     []uint32
	now     int // the batch that is filled
	batches [stages]batch
	err     error
}

// batch is some entries that are under way.
type batch struct {
	used, lists, later int
	// draws are the entries: a position, and above it where the source is in sources, in bytes.
	draws   [batchDraws]uint64
	starts  [batchDraws]uint64 // where to look for the ones
	sources [batchDraws]source
	// Of lists that are yet to be parsed, each of one entry: where they are, and their draws.
	places [batchDraws]uint64
	heads  [batchDraws]Coding
	which  [batchDraws]uint8
}

// source is a list of which entries are drawn. Kernels know where its fields are.
type source struct {
	low     uint64 // the place of field 0: packed entries, or low bits
	upper   uint64
	samples uint64 // the place of the first
	first   uint32
	width   uint8 // of a field
	coded   uint8 // all ones: Elias-Fano; 0: packed
	_       [2]uint8
}

const sourceBytes = 32

// NewGatherer returns one for lists in b. The upper bits of a list are at most reach bytes, 32 at
// least, and as many, and Slack, follow the last list in b.
func NewGatherer(c Coding, b []byte, reach int) *Gatherer {
	return &Gatherer{coding: c, b: b, reach: reach, last: uint64(len(b)-reach-Slack) * 8}
}

// Begin begins with entries that are written to out, one after the other. What was under way is
// given up.
func (g *Gatherer) Begin(out []uint32) {
	for i := range g.batches {
		g.batches[i].clear()
	}
	g.out, g.err = out, nil
}

func (k *batch) clear() { k.used, k.lists, k.later = 0, 0, 0 }

// List takes the entries of a list at positions, each below its Count.
func (g *Gatherer) List(l *Ref, pos []uint32) {
	for len(pos) > 0 {
		k := &g.batches[g.now&(stages-1)]
		n := min(len(pos), batchDraws-k.used)
		k.sources[k.lists].set(l, uint64(g.coding.PosBits))
		draws, at := k.draws[k.used:][:n], uint64(k.lists)*sourceBytes<<32
		for i, p := range pos[:n] {
			draws[i] = at | uint64(p)
		}
		k.lists++
		if k.used += n; k.used == batchDraws {
			g.step()
		}
		pos = pos[n:]
	}
}

// Entry takes an entry of the list that begins at a place, which Parse took before.
func (g *Gatherer) Entry(c Coding, at uint64, pos uint32) {
	k := &g.batches[g.now&(stages-1)]
	k.places[k.later], k.heads[k.later], k.which[k.later] = at, c, uint8(k.used)
	k.draws[k.used] = uint64(k.lists)*sourceBytes<<32 | uint64(pos)
	k.later++
	k.lists++
	if k.used++; k.used == batchDraws {
		g.step()
	}
}

// End writes what is under way. It fails if a list did not have an entry that it was asked for.
func (g *Gatherer) End() error {
	for range stages {
		g.step()
	}
	return g.err
}

// step takes each batch through its stage; the next one is empty.
func (g *Gatherer) step() {
	g.take(&g.batches[(g.now+1)&(stages-1)])
	aim(g, &g.batches[(g.now+2)&(stages-1)])
	g.parse(&g.batches[(g.now+3)&(stages-1)])
	ask(g, &g.batches[(g.now+3)&(stages-1)])
	k := &g.batches[g.now&(stages-1)]
	prefetch(g.b, k.places[:k.later])
	g.now++
	g.batches[g.now&(stages-1)].clear()
}

// parse reads the heads of lists that were not known.
func (g *Gatherer) parse(k *batch) {
	for i := range k.later {
		draw := &k.draws[k.which[i]&(batchDraws-1)]
		l := k.heads[i].RefAt(g.b, k.places[i])
		if pos := uint32(*draw); pos >= l.Count {
			g.err = fmt.Errorf("%w of %d ids is asked for that at %d", ErrList, l.Count, pos)
			*draw -= uint64(pos)
		}
		k.sources[*draw>>32/sourceBytes&(batchDraws-1)].set(&l, uint64(g.coding.PosBits))
	}
}

// set makes s the source of a list.
func (s *source) set(l *Ref, posBits uint64) {
	low, way, n := l.lowWay>>8, l.lowWay&(1<<8-1), uint64(l.Count)-1
	coded := uint64(int64(wayEF-1-way) >> 63) // all ones: Elias-Fano
	width := way - coded&wayEF
	s.low, s.first, s.width, s.coded = low, l.first, uint8(width), uint8(coded)
	s.upper = low + coded&(n*width)
	s.samples = low - coded&((n-1)/sampleEvery*posBits)
}

// take writes the entries of a batch to out.
func (g *Gatherer) take(k *batch) {
	if k.used == 0 {
		return
	}
	take(g, k, g.out[:k.used])
	g.out = g.out[k.used:]
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
