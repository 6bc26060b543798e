//go:build cuda && cgo && linux

package cuda

import (
	"gdb/compute/backend"
	"gdb/compute/kernel"
	"gdb/internal/mem"
)

const (
	// longList is LongList of the kernels: lists of more entries are summed up by blocks.
	longList = 512
	// partEntries is PartEntries of them: as many entries of a long list are a block's.
	partEntries = 2048
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

// stepLists are lists of a step, and what was copied of them to the device, each when an operation
// first asked for it.
type stepLists struct {
	backend.Lists
	rows      uint32 // a bound of what they name
	forward   *deviceLists
	at        uint64 // the places of rows
	entryList uint64 // the list of each entry
	back      *deviceLists
	weight    uint64 // 1/length of each list
	entry     uint64 // the entry of each transposed one
}

// Segments notes lists.
func (g *gpu) Segments(l backend.Lists) backend.Segments {
	lists := max(0, len(l.Off)-1)
	if lists > 0 && int(l.Off[lists]) != len(l.Idx) {
		panic("BUG: lists are not of all entries")
	}
	g.lists = append(g.lists, stepLists{Lists: l})
	return backend.Segments{Lists: lists, Entries: len(l.Idx), Rows: l.Rows, ID: len(g.lists) - 1}
}

// forward returns the lists of s on the device. They must name rows of a matrix of this number of
// rows.
func (g *gpu) forward(s backend.Segments, rows int) deviceLists {
	l := &g.lists[s.ID]
	if l.forward == nil {
		for _, r := range l.Idx {
			l.rows = max(l.rows, r+1)
		}
		f := deviceLists{off: send(g, l.Off), idx: send(g, l.Idx)}
		f.longs = g.sendLongs(l.Off, s.Entries)
		l.forward = &f
	}
	if int(l.rows) > rows {
		panic("BUG: a segment names a row that is not there")
	}
	return *l.forward
}

// sendLongs copies what the kernels know of long lists to memory of a size that follows from the
// entries of all lists. Parts of hubs come first, so that their numbers are few.
func (g *gpu) sendLongs(off []uint32, entries int) longLists {
	l := longLists{mayLong: entries / (longList + 1), mayHubs: entries / (partEntries + 1)}
	l.mayParts = min(l.mayLong, 2*entries/partEntries)
	if l.mayHubs == 0 {
		l.mayParts = 0
	}
	l.at = g.sendBytes((longHeader+2*(l.mayLong+l.mayHubs))*floatBytes, func(to []byte) {
		writeLongs(mem.View[uint32](to), off, longHeader+2*l.mayLong)
	})
	return l
}

// writeLongs writes what sendLongs sends, with the hubs from word hubsAt on.
func writeLongs(to, off []uint32, hubsAt int) {
	parts, hubs := 0, 0
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

// places returns where rows of entries were in the matrix that is dropped out.
func (g *gpu) places(s backend.Segments) uint64 {
	l := &g.lists[s.ID]
	if l.at == 0 {
		l.at = send(g, l.At)
	}
	return l.at
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

// back returns the transposed lists of s, which the host makes in the memory that they are copied
// from.
func (g *gpu) back(s backend.Segments) *stepLists {
	l, rows := &g.lists[s.ID], s.Rows
	if l.back != nil || g.err != nil {
		return l
	}
	n := kernel.TransposedWords(rows, s.Entries, s.Lists)
	if l.Entries {
		n = kernel.TransposedEntryWords(rows, s.Entries, s.Lists)
	}
	b := &deviceLists{}
	at := g.sendBytes(n*floatBytes, func(to []byte) {
		memory := mem.View[float32](to)
		if l.Entries {
			t := kernel.TransposedEntriesIn(memory, rows, s.Entries, s.Lists)
			t.BuildEntries(l.Off, l.Idx, rows)
			_, _, entries, _ := t.Lists()
			for i := range entries { // numbered from the first of the lists
				entries[i] += l.Off[0]
			}
		} else {
			t := kernel.TransposedIn(memory, rows, s.Entries, s.Lists)
			t.Build(l.Off, l.Idx, rows)
		}
		b.longs = g.sendLongs(mem.View[uint32](to)[:rows+1], s.Entries)
	})
	// The parts lie in the order of kernel.TransposedIn.
	b.off = at
	b.idx = b.off + uint64(rows+1)*floatBytes
	l.weight = b.idx + uint64(s.Entries)*floatBytes
	l.entry = l.weight + uint64(s.Lists)*floatBytes
	l.back = b
	return l
}
