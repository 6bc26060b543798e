package listcode

// ahead is how many places kernels look ahead: arrays of places have so many more.
const ahead = 16

// Places are some places in bytes, in bits, of entries that are under way.
type Places struct {
	at [gatherMost + ahead]uint64
}

// PlacesMost is how many places there are.
const PlacesMost = gatherMost

// At are the first n.
func (p *Places) At(n int) []uint64 { return p.at[:n] }

// Fields writes the first n fields of one width, at most 32, to out.
func (p *Places) Fields(b []byte, n, width int, out []uint32) {
	packedFields(b, p.at[:n], width, out[:n])
}

// Prefetch asks for the memory at places in b, in bits, all of which it has.
func Prefetch(b []byte, places []uint64) { prefetch(b, places) }

func packedFieldsPlain(b []byte, places []uint64, width int, out []uint32) {
	for i, at := range places {
		out[i] = uint32(Field(b, at, width))
	}
}

// addFieldsPlain sets out to firsts and the fields of widths bits at places.
func addFieldsPlain(b []byte, places []uint64, widths []uint8, firsts, out []uint32) {
	for i, at := range places {
		out[i] = firsts[i] + uint32(Field(b, at, int(widths[i])))
	}
}

// selectOnesPlain replaces each place at[i] by that of one number rank[i]%sampleEvery, of those
// from it on. It looks no further than reach bytes.
func selectOnesPlain(b []byte, at, rank []uint64, reach int) {
	for i, p := range at {
		at[i] = selectOne(b, p, rank[i]%sampleEvery, p+8*uint64(reach))
	}
}
