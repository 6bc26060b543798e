package listcode

// ahead is how many places kernels look ahead: arrays of places have so many more.
const ahead = 16

// PlacesMost is how many places there are in Places: they fit in the first cache of a core, and are
// enough that reads of memory overlap.
const PlacesMost = 256

// Places are some places in bytes, in bits, of entries that are under way.
type Places struct {
	at [PlacesMost + ahead]uint64
}

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

// field is the number of a draw's field in its source, and 0 for the first id, which has none.
func field(draw uint64) uint64 { return max(draw&(1<<32-1), 1) - 1 }

// aimPlain sets starts to the places from which on ones are looked for.
func aimPlain(g *Gatherer, k *batch) {
	for i, draw := range k.draws[:k.used] {
		s := &k.sources[draw>>32/sourceBytes]
		start := s.upper
		if n := field(draw) / sampleEvery; n > 0 && s.coded != 0 {
			bits := g.coding.PosBits
			start += Field(g.b, s.samples+(n-1)*uint64(bits), bits)
		}
		// A sample that is damaged leads to any id, but to no other memory.
		k.starts[i] = min(start, g.last)
	}
}

// takePlain writes the entries of a batch to out.
func takePlain(g *Gatherer, k *batch, out []uint32) {
	for i, draw := range k.draws[:k.used] {
		s, n := &k.sources[draw>>32/sourceBytes], field(draw)
		if out[i] = s.first; uint32(draw) == 0 {
			continue
		}
		v := Field(g.b, s.low+n*uint64(s.width), int(s.width))
		if s.coded != 0 {
			start := k.starts[i]
			at := selectOne(g.b, start, n%sampleEvery, start+8*uint64(g.reach))
			v += (at - s.upper - n) << s.width
		}
		out[i] += uint32(v)
	}
}
