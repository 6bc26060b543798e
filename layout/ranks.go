package layout

import "math/bits"

// Ranks numbers the members of a set of nodes in order: 3/16 byte for each node of the store. The
// zero value is the empty set of no store.
type Ranks struct {
	words []uint64 // a bit for each node
	below []uint32 // how many members are before each word
}

// RankWords returns how many words of 64 bits Ranks of a number of nodes has.
func RankWords(nodes uint64) uint64 { return nodes/64 + 1 }

// NewRanks returns an empty set in memory of the caller: as many zeros each as RankWords says.
func NewRanks(words []uint64, below []uint32) Ranks { return Ranks{words, below} }

// Add adds nodes. Number follows, before ranks are asked for.
func (r *Ranks) Add(nodes []uint32) {
	for _, v := range nodes {
		r.words[v/64] |= 1 << (v % 64)
	}
}

// Number numbers the members, and returns how many they are.
func (r *Ranks) Number() (n uint32) {
	for i, w := range r.words {
		r.below[i] = n
		n += uint32(bits.OnesCount64(w))
	}
	return n
}

// Rank returns the number of a node, if it is a member.
func (r *Ranks) Rank(v NodeID) (rank uint32, is bool) {
	if uint64(v)/64 >= uint64(len(r.words)) {
		return 0, false
	}
	w, bit := r.words[v/64], uint64(1)<<(v%64)
	return r.below[v/64] + uint32(bits.OnesCount64(w&(bit-1))), w&bit != 0
}

// Each calls fn with the members before end, in order, until it fails.
func (r *Ranks) Each(end uint64, fn func(v NodeID) error) error {
	for i, w := range r.words {
		for ; w != 0; w &= w - 1 {
			v := uint64(i)*64 + uint64(bits.TrailingZeros64(w))
			if v >= end {
				return nil
			}
			if err := fn(NodeID(v)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Next returns the first member from v on, and false if there is none.
func (r *Ranks) Next(v uint64) (next NodeID, is bool) {
	for i := v / 64; i < uint64(len(r.words)); i++ {
		w := r.words[i]
		if i == v/64 {
			w &= ^uint64(0) << (v % 64)
		}
		if w != 0 {
			return NodeID(i*64 + uint64(bits.TrailingZeros64(w))), true
		}
	}
	return 0, false
}
