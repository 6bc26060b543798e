package superbatch

import (
	"encoding/binary"
	"iter"

	"gdb/internal/radix"
	"gdb/sample/superbatch/changeset"
)

// missing are the nodes that each batch of a span misses: ascending, as their differences, of seven
// bits a byte.
type missing struct {
	lists []byte
	ends  []uint64 // of each list, as far as they were added
	// Where chunks has read to in each list, and the node before.
	at, begun     []uint64
	last, begunAt []uint32
}

// missingPerBatch is the memory of a list besides its bytes.
const missingPerBatch = 3*8 + 2*4

// listBytes is what a list of n of so many nodes takes at most: no more than nodes/128 differences
// are 128 or more, and so on.
func listBytes(n, nodes uint64) (bytes uint64) {
	for most := max(nodes, n); most > 0; most >>= 7 {
		bytes += min(n, most)
	}
	return bytes
}

// newMissing takes the memory of so many lists of so many bytes from b.
func newMissing(b *[]byte, lists int, bytes int64) missing {
	m := missing{ends: changeset.Carve[uint64](b, lists)[:0], at: changeset.Carve[uint64](b, lists),
		begun: changeset.Carve[uint64](b, lists), last: changeset.Carve[uint32](b, lists),
		begunAt: changeset.Carve[uint32](b, lists)}
	m.lists = changeset.Carve[uint8](b, int(bytes))[:0]
	return m
}

// add adds the next list. Its nodes ascend.
func (m *missing) add(nodes []uint64) {
	before := uint64(0)
	for _, v := range nodes {
		m.lists = binary.AppendUvarint(m.lists, v-before)
		before = v
	}
	m.ends = append(m.ends, uint64(len(m.lists)))
}

// chunks are the keys node<<32 | list of the first lists, ascending: as many at once as keys has
// room for, one for each list at least. Time: O(1) for each, and sorting.
func (m *missing) chunks(lists int, nodes uint64, keys []uint64) iter.Seq[[]uint64] {
	return func(yield func([]uint64) bool) {
		m.rewind(lists)
		width := nodes
		for first := uint64(0); first < nodes; {
			got, ok := m.window(lists, min(first+width, nodes), keys)
			if !ok {
				width = max(1, width/2)
				continue
			}
			first += width
			if len(got) < cap(keys)/2 {
				width *= 2
			}
			if len(got) == 0 {
				continue
			}
			if radix.Sort(got); !yield(got) {
				return
			}
		}
	}
}

// rewind begins anew.
func (m *missing) rewind(lists int) {
	begin := uint64(0)
	for k := range lists {
		m.at[k], m.last[k] = begin, 0
		begin = m.ends[k]
	}
}

// window takes the keys of the nodes before end, or none if there are too many.
func (m *missing) window(lists int, end uint64, keys []uint64) ([]uint64, bool) {
	copy(m.begun, m.at[:lists])
	copy(m.begunAt, m.last[:lists])
	keys = keys[:0]
	for k := range lists {
		at, v := m.at[k], uint64(m.last[k])
		for at < m.ends[k] {
			step, n := binary.Uvarint(m.lists[at:m.ends[k]])
			if v+step >= end {
				break
			}
			if len(keys) == cap(keys) {
				copy(m.at, m.begun[:lists])
				copy(m.last, m.begunAt[:lists])
				return nil, false
			}
			at, v = at+uint64(n), v+step
			keys = append(keys, v<<32|uint64(k))
		}
		m.at[k], m.last[k] = at, uint32(v)
	}
	return keys, true
}
