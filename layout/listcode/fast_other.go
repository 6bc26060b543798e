//go:build !amd64

package listcode

func prefetch([]byte, []uint64, int) {}

func packedFields(b []byte, places []uint64, width int, out []uint32) {
	packedFieldsPlain(b, places, width, out)
}

func findPlaces(_ []byte, r *Ref, pos []uint32, out []place) { findPlacesPlain(r, pos, out) }

func findPlacesOf(_ []byte, refs []*Ref, pos []uint32, out []place) {
	findPlacesOfPlain(refs, pos, out)
}

func readRefs(b []byte, posBits int, h Heads, refs []Ref, counts []uint32) {
	readRefsPlain(b, posBits, h, refs, counts)
}

func ask([]byte, []place) {}

func take(b []byte, places []place, out []uint32) { takePlain(b, places, out) }

func selectBit(word, rank uint64) uint64 { return selectPlain(word, rank) }

func (w *Writer) addLow(list []uint32, first uint32, width int) {
	w.addLowPlain(list, first, width)
}

func (w *Writer) addCells(k cells, list []uint32, first uint32) { w.addCellsPlain(k, list, first) }

func readCells(cells, []byte, uint64, uint32, []uint32) bool { return false }

func widest(list []uint32, first uint32, per, l, most int) int {
	return widestPlain(list, first, per, l, most)
}
