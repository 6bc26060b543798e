package stream

// MergeNames are the values of --merge: what becomes of the weights of parallel edges, of which one
// is kept. The first is the default.
var MergeNames = []string{"sum", "mean", "min", "max", "last", "error"}

// WeightMerge makes one weight of those of parallel edges, which come in any order.
type WeightMerge struct {
	how         string // "" is the first of MergeNames
	sum         float64
	least, most float32
	last        float32
	lastNumber  uint64 // of the edge whose weight is last
	edges       int
}

// Begin starts with the weight of an edge, and its number in the source.
func (m *WeightMerge) Begin(w float32, number uint64) {
	m.sum, m.least, m.most, m.edges = 0, w, w, 0
	m.last, m.lastNumber = w, number
	m.Add(w, number)
}

// Add takes the weight of a parallel edge, and its number in the source.
func (m *WeightMerge) Add(w float32, number uint64) {
	m.sum += float64(w)
	m.least, m.most = min(m.least, w), max(m.most, w)
	if number > m.lastNumber {
		m.last, m.lastNumber = w, number
	}
	m.edges++
}

// Weight is that of the edge which is kept; not ok if they should not differ, and do.
func (m *WeightMerge) Weight() (w float32, ok bool) {
	switch m.how {
	case "mean":
		return float32(m.sum / float64(m.edges)), true
	case "min":
		return m.least, true
	case "max":
		return m.most, true
	case "last":
		return m.last, true
	case "error":
		return m.least, m.least == m.most
	}
	return float32(m.sum), true
}

// NewWeightMerge merges as one of MergeNames says; "" is the first.
func NewWeightMerge(how string) *WeightMerge { return &WeightMerge{how: how} }
