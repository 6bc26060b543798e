//go:build cuda && cgo && linux

package cuda

import (
	"gdb/compute/backend"
	"gdb/compute/kernel"
	"gdb/internal/mem"
)

const (
	// longList is LongList of the kernels: lists of more entries are summed up by blocks.
	longList = 64
	// partEntries is PartEntries of them: as many entries of a long list are a block's.
	partEntries = 512
	// longHeader is LongHeader of them: the words before parts of long lists.
	longHeader = 3
)

// deviceLists are lists on the device.
type deviceLists struct {
	off, idx uint64
	longs    longLists
}

// longLists are the parts of long lists on the device, and the hubs, which are the lists of more
// than one part: see the kernels' Lists.
type longLists struct {
	at       uint64
	mayLong  int // bounds the parts, given the entries of all lists
	mayParts int // bounds the parts of hubs
	mayHubs  int // bounds the hubs

	parts uint64 // where a launch writes the sums of the parts of hubs
	join  bool   // whether it adds these up, and does nothing else
}

// longsOf returns the bounds for lists that have a number of entries in all.
func longsOf(entries int) longLists {
	l := longLists{mayLong: entries / (longList + 1), mayHubs: entries / (partEntries + 1)}
	if l.mayHubs > 0 {
		l.mayParts = min(l.mayLong, 2*entries/partEntries)
	}
	return l
}

// words returns what the kernels know of long lists takes: a size that follows from the entries.
func (l *longLists) words() int { return longHeader + 2*(l.mayLong+l.mayHubs) }

// write writes it. Parts of hubs come first, so that their numbers are few.
func (l *longLists) write(to, off []uint32) {
	parts, hubs, hubsAt := 0, 0, longHeader+2*l.mayLong
	each := func(write func(list, entries uint32)) {
		for i := 1; i < len(off); i++ {
			if n := off[i] - off[i-1]; n > longList {
				write(uint32(i-1), n)
			}
		}
	}
	part := func(list, number uint32) {
		to[longHeader+2*parts], to[longHeader+2*parts+1] = list, number
		parts++
	}
	each(func(list, entries uint32) {
		if entries <= partEntries {
			return
		}
		to[hubsAt+2*hubs], to[hubsAt+2*hubs+1] = list, uint32(parts)
		hubs++
		for k := range (entries + partEntries - 1) / partEntries {
			part(list, k)
		}
	})
	each(func(list, entries uint32) {
		if entries <= partEntries {
			part(list, 0)
		}
	})
	to[0], to[1], to[2] = uint32(parts), uint32(hubs), uint32(hubsAt)
}

// listParts says where the parts of lists begin in their memory, in words: the lists, what the
// kernels know of long ones, and both of the transposed lists. Parts of these lie in the order of
// kernel.TransposedIn.
type listParts struct {
	backend.ListSizes
	idx, at, longs, back, backLongs, words int
	long                                   longLists // of both: they have as many entries
}

// listPartsOf returns where the parts of lists are.
func listPartsOf(s backend.ListSizes) (p listParts) {
	p.ListSizes, p.long = s, longsOf(s.Entries)
	take := func(words int) (at int) {
		at = p.words
		p.words += (words + backend.BlockAlign - 1) / backend.BlockAlign * backend.BlockAlign
		return at
	}
	take(s.Lists + 1)
	p.idx = take(s.Entries)
	if s.At {
		p.at = take(s.Entries)
	}
	p.longs = take(p.long.words())
	if s.Rows > 0 {
		p.back = take(backend.SegmentFloats(s.Rows, s.Entries, s.Lists, s.Weights))
		p.backLongs = take(p.long.words())
	}
	return p
}

// transpose writes the transposed lists, and what the kernels know of long ones among them.
func (p *listParts) transpose(words []uint32, l *backend.Lists) {
	memory := mem.View[float32](mem.BytesOf(words[p.back:p.backLongs]))
	if p.Weights {
		t := kernel.TransposedEntriesIn(memory, p.Rows, p.Entries, p.Lists)
		t.BuildEntries(l.Off, l.Idx, p.Rows)
		_, _, entries, _ := t.Lists()
		for i := range entries { // numbered from the first of the lists
			entries[i] += l.Off[0]
		}
	} else {
		t := kernel.TransposedIn(memory, p.Rows, p.Entries, p.Lists)
		t.Build(l.Off, l.Idx, p.Rows)
	}
	p.long.write(words[p.backLongs:], words[p.back:][:p.Rows+1])
}

// ListWords returns the words of all parts.
func (g *gpu) ListWords(s backend.ListSizes) int {
	p := listPartsOf(s)
	return p.words
}

// ListsIn returns the first parts.
func (g *gpu) ListsIn(words []uint32, s backend.ListSizes) backend.Lists {
	p := listPartsOf(s)
	l := backend.Lists{Off: words[:s.Lists+1], Idx: words[p.idx:][:s.Entries], Rows: s.Rows,
		Entries: s.Weights}
	if s.At {
		l.At = words[p.at:][:s.Entries]
	}
	return l
}

// FinishLists writes the other parts.
func (g *gpu) FinishLists(words []uint32, l *backend.Lists) {
	if lists := len(l.Off) - 1; lists > 0 && int(l.Off[lists]) != len(l.Idx) {
		panic("BUG: lists are not of all entries")
	}
	l.Names = 0
	for _, r := range l.Idx {
		l.Names = max(l.Names, r+1)
	}
	p := listPartsOf(l.Sizes())
	p.long.write(words[p.longs:], l.Off)
	if p.Rows > 0 {
		p.transpose(words, l)
	}
}

// stepLists are lists of a step.
type stepLists struct {
	backend.Lists
	parts     listParts
	first     uint64 // where they are on the device; 0 until they are asked for
	entryList uint64 // the list of each entry
}

// word returns the address of a word of the lists.
func (l *stepLists) word(at int) uint64 { return l.first + uint64(at)*floatBytes }

// Segments notes lists.
func (g *gpu) Segments(l backend.Lists) backend.Segments {
	parts := listPartsOf(l.Sizes())
	g.lists = append(g.lists, stepLists{Lists: l, parts: parts})
	return backend.Segments{Lists: parts.Lists, Entries: parts.Entries, Rows: parts.Rows,
		ID: len(g.lists) - 1}
}

// on returns lists that are on the device. Those that were not prepared are when they are first
// asked for.
func (g *gpu) on(s backend.Segments) *stepLists {
	l := &g.lists[s.ID]
	switch {
	case l.first != 0 || g.err != nil:
	case l.There.Len() > 0:
		l.first = g.at(l.There)
	default:
		l.first = g.sendBytes(l.parts.words*floatBytes, func(to []byte) {
			words := mem.View[uint32](to)
			copied := g.ListsIn(words, l.parts.ListSizes)
			copied.Off[0] = 0
			copy(copied.Off, l.Off)
			copy(copied.Idx, l.Idx)
			copy(copied.At, l.At)
			g.FinishLists(words, &copied)
			l.Names = copied.Names
		})
	}
	return l
}

// forward returns the lists of s on the device. They must name rows of a matrix of this number of
// rows.
func (g *gpu) forward(s backend.Segments, rows int) deviceLists {
	l := g.on(s)
	if int(l.Names) > rows {
		panic("BUG: a segment names a row that is not there")
	}
	f := deviceLists{off: l.first, idx: l.word(l.parts.idx), longs: l.parts.long}
	f.longs.at = l.word(l.parts.longs)
	return f
}

// places returns where rows of entries were in the matrix that is dropped out.
func (g *gpu) places(s backend.Segments) uint64 {
	l := g.on(s)
	return l.word(l.parts.at)
}

// entryLists returns the numbers of the lists of entries.
func (g *gpu) entryLists(s backend.Segments, off uint64) uint64 {
	l := &g.lists[s.ID]
	if l.entryList == 0 && s.Entries > 0 {
		l.entryList = g.takeFloats(s.Entries)
		g.launch("entry_lists", s.Entries, l.entryList, off, s.Lists, s.Entries)
	}
	return l.entryList
}

// transposedLists has, for each row, the lists that name it. weight has 1/length of each list, and
// entry the entry that each transposed one comes from: 0 where nothing asks for it.
type transposedLists struct {
	deviceLists
	weight, entry uint64
}

// back returns the transposed lists of s.
func (g *gpu) back(s backend.Segments) (b transposedLists) {
	l := g.on(s)
	if l.parts.Rows == 0 {
		panic("BUG: lists were not made for gradients of rows")
	}
	at := l.parts.back
	b.off = l.word(at)
	at += s.Rows + 1
	b.idx = l.word(at)
	at += s.Entries
	b.weight = l.word(at)
	if at += s.Lists; l.parts.Weights {
		b.entry = l.word(at)
	}
	b.longs = l.parts.long
	b.longs.at = l.word(l.parts.backLongs)
	return b
}
