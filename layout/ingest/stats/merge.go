package stats

// MergeNames are the values of --merge: what becomes of the weights of parallel edges, of which one
// is kept. The first is the default.
var MergeNames = []string{"sum", "mean", "min", "max", "error"}

// WeightMerge makes one weight of those of parallel edges, which come in ascending order.
type WeightMerge struct {
	how         string // "" is the first of MergeNames
	sum         float64
	first, last float32
	n           int
}

// Begin starts with the weight of an edge.
func (m *WeightMerge) Begin(w float32) {
	m.sum, m.first, m.last, m.n = 0, w, w, 0
	m.Add(w)
}

// Add takes the weight of a parallel edge.
func (m *WeightMerge) Add(w float32) {
	m.sum += float64(w)
	m.first, m.last = min(m.first, w), max(m.last, w)
	m.n++
}

// Weight is that of the edge which is kept; not ok if they should not differ, and do.
func (m *WeightMerge) Weight() (w float32, ok bool) {
	switch m.how {
	case "mean":
		return float32(m.sum / float64(m.n)), true
	case "min":
		return m.first, true
	case "max":
		return m.last, true
	case "error":
		return m.first, m.first == m.last
	}
	return float32(m.sum), true
}

// NewWeightMerge merges as one of MergeNames says; "" is the first.
func NewWeightMerge(how string) *WeightMerge { return &WeightMerge{how: how} }
