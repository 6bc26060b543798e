package ingest

// mergeNames are the values of --merge: what becomes of the weights of parallel edges, of which one
// is kept. The first is the default.
var mergeNames = []string{"sum", "mean", "min", "max", "error"}

// weightMerge makes one weight of those of parallel edges, which come in ascending order.
type weightMerge struct {
	how         string // "" is the first of mergeNames
	sum         float64
	first, last float32
	n           int
}

// begin starts with the weight of an edge.
func (m *weightMerge) begin(w float32) {
	m.sum, m.first, m.last, m.n = 0, w, w, 0
	m.add(w)
}

// add takes the weight of a parallel edge.
func (m *weightMerge) add(w float32) {
	m.sum += float64(w)
	m.first, m.last = min(m.first, w), max(m.last, w)
	m.n++
}

// weight is that of the edge which is kept; not ok if they should not differ, and do.
func (m *weightMerge) weight() (w float32, ok bool) {
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
