package partitioner

// sizes are the numbers of nodes of one label that partitions have, with the partition that has
// fewest on top of a heap: of equal ones the one with the smaller number.
type sizes struct {
	of   []uint32 // by partition
	heap []uint32 // partitions
	at   []uint32 // where each is in the heap
}

// sizeBytes is the memory of a partition.
const sizeBytes = 12

func newSizes(parts int) sizes {
	s := sizes{make([]uint32, parts), make([]uint32, parts), make([]uint32, parts)}
	for p := range s.heap {
		s.heap[p], s.at[p] = uint32(p), uint32(p)
	}
	return s
}

// least returns the partition with fewest nodes.
func (s *sizes) least() int { return int(s.heap[0]) }

func (s *sizes) less(p, q uint32) bool {
	return s.of[p] < s.of[q] || s.of[p] == s.of[q] && p < q
}

// add counts n more nodes of a partition. It takes O(log k) of k partitions, as remove does.
func (s *sizes) add(part int, n uint32) {
	s.of[part] += n
	for i := s.at[part]; ; {
		child := 2*i + 1
		if child >= uint32(len(s.heap)) {
			return
		}
		if right := child + 1; right < uint32(len(s.heap)) && s.less(s.heap[right], s.heap[child]) {
			child = right
		}
		if !s.less(s.heap[child], s.heap[i]) {
			return
		}
		s.swap(i, child)
		i = child
	}
}

// remove counts n nodes less of a partition.
func (s *sizes) remove(part int, n uint32) {
	s.of[part] -= n
	for i := s.at[part]; i > 0; {
		parent := (i - 1) / 2
		if !s.less(s.heap[i], s.heap[parent]) {
			return
		}
		s.swap(i, parent)
		i = parent
	}
}

func (s *sizes) swap(i, j uint32) {
	s.heap[i], s.heap[j] = s.heap[j], s.heap[i]
	s.at[s.heap[i]], s.at[s.heap[j]] = i, j
}
