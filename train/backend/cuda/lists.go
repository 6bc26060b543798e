//go:build cuda && cgo && linux

package cuda

import (
	"gdb/internal/mem"
	"gdb/train/backend"
	"gdb/train/kernel"
)

// longList is LongList of the kernels: lists of more entries are summed up by a block.
const longList = 512

// deviceLists are lists on the device.
type deviceLists struct {
	off, idx uint64
	longs    uint64 // how many long ones there are, and their numbers
	mayLong  int    // how many there may be, of so many entries
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
	return backend.Segments{Lists: lists, Entries: len(l.Idx), ID: len(g.lists) - 1}
}

// forward are the lists of s, which name rows of a matrix of so many.
func (g *gpu) forward(s backend.Segments, rows int) deviceLists {
	l := &g.lists[s.ID]
	if l.forward == nil {
		for _, r := range l.Idx {
			l.rows = max(l.rows, r+1)
		}
		f := deviceLists{off: send(g, l.Off), idx: send(g, l.Idx)}
		f.longs, f.mayLong = g.sendLongs(l.Off, s.Entries)
		l.forward = &f
	}
	if int(l.rows) > rows {
		panic("BUG: a segment names a row that is not there")
	}
	return *l.forward
}

// sendLongs copies the numbers of the long lists to memory of a size that follows from the entries
// of all lists.
func (g *gpu) sendLongs(off []uint32, entries int) (at uint64, most int) {
	most = entries / (longList + 1)
	at = g.sendBytes((1+most)*floatBytes, func(to []byte) {
		longs := mem.View[uint32](to)
		longs[0] = 0
		for i := 1; i < len(off); i++ {
			if off[i]-off[i-1] > longList {
				longs[0]++
				longs[longs[0]] = uint32(i - 1)
			}
		}
	})
	return at, most
}

// places are where rows of entries were in the matrix that is dropped out.
func (g *gpu) places(s backend.Segments) uint64 {
	l := &g.lists[s.ID]
	if l.at == 0 {
		l.at = send(g, l.At)
	}
	return l.at
}

// entryLists are the numbers of the lists of entries.
func (g *gpu) entryLists(s backend.Segments, off uint64) uint64 {
	l := &g.lists[s.ID]
	if l.entryList == 0 && s.Entries > 0 {
		l.entryList = g.takeFloats(s.Entries)
		g.launch("entry_lists", s.Entries, l.entryList, off, s.Lists, s.Entries)
	}
	return l.entryList
}

// back are the transposed lists of s, for rows rows, which the host makes in the memory that they
// are copied from.
func (g *gpu) back(s backend.Segments, rows int) *stepLists {
	l := &g.lists[s.ID]
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
		b.longs, b.mayLong = g.sendLongs(mem.View[uint32](to)[:rows+1], s.Entries)
	})
	// The order of the parts is that of kernel.TransposedIn.
	b.off = at
	b.idx = b.off + uint64(rows+1)*floatBytes
	l.weight = b.idx + uint64(s.Entries)*floatBytes
	l.entry = l.weight + uint64(s.Lists)*floatBytes
	l.back = b
	return l
}

// returns says whether a gradient of rows can be computed.
func (g *gpu) returns(dx backend.Tensor, lists int, s backend.Segments, op string) bool {
	return g.ready(lists == s.Lists && dx.Rows == g.lists[s.ID].Rows, op+" without memory", dx)
}
