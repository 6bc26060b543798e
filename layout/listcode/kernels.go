package listcode

// Prefetch asks for the memory at places in b, in bits, all of which it has.
func Prefetch(b []byte, places []uint64) { prefetch(b, places) }

// selectOnesPlain replaces each place at[i] by that of one number rank[i]%sampleEvery, of those
// from it on. It looks no further than reach bytes.
func selectOnesPlain(b []byte, at, rank []uint64, reach int) {
	for i, p := range at {
		at[i] = selectOne(b, p, rank[i]%sampleEvery, p+8*uint64(reach))
	}
}
