package listcode

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// fast is set if this CPU has the instructions that the kernels use.
var fast = cpu.X86.HasBMI1 && cpu.X86.HasBMI2 && cpu.X86.HasPOPCNT

func prefetch(b []byte, places []uint64, bytes int) {
	if len(places) > 0 {
		prefetchBits(&b[0], places, max(0, bytes-1))
	}
}

func packedFields(b []byte, places []uint64, width int, out []uint32) {
	switch {
	case !fast:
		packedFieldsPlain(b, places, width, out)
	case len(places) > 0:
		packedBMI(&b[0], places, uint64(width), &out[0])
	}
}

// findPlaces writes the places in b of the entries of a list at positions pos to out, and
// prefetches the memory there.
func findPlaces(b []byte, r *Ref, pos []uint32, out []place) {
	switch {
	case !fast:
		findPlacesPlain(r, pos, out)
	case len(pos) > 0:
		placesBMI(&r.low, pos, words(out[:len(pos)]), &b[0])
	}
}

// readRefs does what ReadRefs does, for at least one list.
func readRefs(b []byte, posBits int, h Heads, refs []Ref, counts []uint32) {
	if !fast {
		readRefsPlain(b, posBits, h, refs, counts)
		return
	}
	headsBMI(&b[0], h.At, &h.Codings[0], &refs[0].low, &counts[0], uint64(posBits),
		&countForms[0].mask, &recips[0])
}

// findPlacesOf does what findPlaces does, with a list of its own for each position.
func findPlacesOf(b []byte, refs []*Ref, pos []uint32, out []place) {
	switch {
	case !fast:
		findPlacesOfPlain(refs, pos, out)
	case len(pos) > 0:
		first := (*uint64)(unsafe.Pointer(unsafe.SliceData(refs[:len(pos)])))
		placesOfBMI(first, pos, words(out[:len(pos)]), &b[0])
	}
}

// ask prefetches the memory of places.
func ask(b []byte, places []place) {
	if fast && len(places) > 0 {
		askBMI(&b[0], words(places), len(places))
	}
}

// take writes the entries at places to out.
func take(b []byte, places []place, out []uint32) {
	switch {
	case !fast:
		takePlain(b, places, out)
	case len(out) > 0:
		takeBMI(&b[0], words(places[:len(out)]), len(out), &out[0])
	}
}

// words returns places as kernels take them.
func words(places []place) *uint64 { return &places[0].at }

// selectBit returns the place of one number rank of a word, counted from 0, or 64 if it has fewer.
func selectBit(word, rank uint64) uint64 {
	if !fast || rank > 63 {
		return selectPlain(word, rank)
	}
	return selectBMI(word, rank)
}

// lowFast is how many low bits of an id kernels write at most.
const lowFast = 28

// twice returns a number of 32 bits in both halves of a word.
func twice(v uint64) uint64 { return v<<32 | v }

// addLow does what addLowPlain does.
func (w *Writer) addLow(list []uint32, first uint32, width int) {
	if !fast || width > lowFast || len(list) == 0 {
		w.addLowPlain(list, first, width)
		return
	}
	w.room(uint64(len(list)) * uint64(width))
	i, bit := w.at>>3, w.at&7
	end := writeLowBMI(list, twice(uint64(first)), twice(1<<width-1), uint64(width), &w.buf[i], bit)
	w.at += end - bit
}

// addCells does what addCellsPlain does.
func (w *Writer) addCells(k cells, list []uint32, first uint32) {
	if !fast || k.low > lowFast || len(list) == 0 {
		w.addCellsPlain(k, list, first)
		return
	}
	w.room(k.size(uint64(len(list))))
	i, bit := w.at>>3, w.at&7
	end := writeCellsBMI(list, twice(uint64(first)), twice(1<<k.low-1), uint64(k.low),
		uint64(k.per), uint64(k.upper), uint64(k.base), &w.buf[i], bit)
	w.at += end - bit
}

// readCells decodes what decodePlain decodes. It returns false if that is damaged, or to be
// decoded without kernels.
func readCells(k cells, b []byte, at uint64, first uint32, ids []uint32) bool {
	if !fast || len(ids) == 0 {
		return false
	}
	return readCellsBMI(&b[0], at, uint64(k.low), uint64(k.per), uint64(k.upper), uint64(k.base),
		ids, first)
}

// widest does what widestPlain does.
func widest(list []uint32, first uint32, per, l, most int) int {
	if !fast || len(list) == 0 {
		return widestPlain(list, first, per, l, most)
	}
	return int(widestBMI(list, uint64(first), uint64(per), uint64(l), uint64(most)))
}
