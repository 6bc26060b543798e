package rank

import (
	"maps"
	"slices"

	"gdb/train/link/triples"
)

// hitsAt lists the ranks up to which an edge counts as a hit.
var hitsAt = [3]float64{1, 3, 10}

// Metrics summarizes some ranks. All but MeanRank are from 0 to 1, and the larger the better.
type Metrics struct {
	MRR      float64 `json:"mrr"` // mean of 1/rank
	Hits1    float64 `json:"hits@1"`
	Hits3    float64 `json:"hits@3"`
	Hits10   float64 `json:"hits@10"`
	MeanRank float64 `json:"mean_rank"`
	Ranks    int     `json:"ranks"` // number of ranks: two for each edge
}

func (m *Metrics) add(rank float64) {
	m.MRR += 1 / rank
	for i, hits := range []*float64{&m.Hits1, &m.Hits3, &m.Hits10} {
		if rank <= hitsAt[i] {
			*hits++
		}
	}
	m.MeanRank += rank
	m.Ranks++
}

// finish divides the sums by the number of ranks.
func (m *Metrics) finish() {
	for _, v := range []*float64{&m.MRR, &m.Hits1, &m.Hits3, &m.Hits10, &m.MeanRank} {
		*v /= float64(max(1, m.Ranks))
	}
}

// RelationMetrics holds the filtered metrics of the edges of one relation, and those of the lists
// of tails of its heads.
type RelationMetrics struct {
	Relation uint32 `json:"-"`
	Name     string `json:"relation"`
	Metrics
	Lists
}

// Result says how a model ranks edges.
type Result struct {
	// Metrics are filtered, for both ends.
	Metrics
	// Lists are of the tails of each head and relation, and HeadLists of the heads of each tail.
	Lists
	HeadLists Lists   `json:"head_lists"`
	Raw       Metrics `json:"raw"`
	Heads     Metrics `json:"heads"` // filtered, for heads given tails
	Tails     Metrics `json:"tails"`
	// Relations are ordered by their numbers.
	Relations []RelationMetrics `json:"relations,omitempty"`

	byRelation map[uint32]*RelationMetrics
	places     []place   // of the list that is added
	at         []float64 // where they are in the list
}

func newResult() *Result { return &Result{byRelation: map[uint32]*RelationMetrics{}} }

// addList adds the ranks of all true answers of a query.
func (r *Result) addList(q triples.Query, targets []target) {
	m := r.byRelation[q.Relation]
	if m == nil {
		m = &RelationMetrics{Relation: q.Relation}
		r.byRelation[q.Relation] = m
	}
	r.places = r.places[:0]
	for i := range targets {
		t := &targets[i]
		r.add(m, q, t)
		r.places = append(r.places, place{t.score, t.above - t.knownAbove, t.equal - t.knownEqual})
	}
	r.at = positions(r.at, r.places)
	if q.Head {
		r.HeadLists.add(r.at)
		return
	}
	r.Lists.add(r.at)
	m.Lists.add(r.at)
}

// add adds the ranks of a target.
func (r *Result) add(m *RelationMetrics, q triples.Query, t *target) {
	rank := func(above, equal int) float64 { return 1 + float64(above) + float64(equal)/2 }
	r.Raw.add(rank(t.above, t.equal))
	filtered := rank(t.above-t.knownAbove, t.equal-t.knownEqual)
	r.Metrics.add(filtered)
	if q.Head {
		r.Heads.add(filtered)
	} else {
		r.Tails.add(filtered)
	}
	m.Metrics.add(filtered)
}

func (r *Result) finish() {
	for _, m := range []*Metrics{&r.Metrics, &r.Raw, &r.Heads, &r.Tails} {
		m.finish()
	}
	r.Lists.finish()
	r.HeadLists.finish()
	for _, relation := range slices.Sorted(maps.Keys(r.byRelation)) {
		m := r.byRelation[relation]
		m.Metrics.finish()
		m.Lists.finish()
		r.Relations = append(r.Relations, *m)
	}
}

// AUC returns the share of pairs of an edge and a non-edge in which the edge scores higher, equal
// scores counting half: the area under the ROC curve. It sorts both lists, which must not be empty.
func AUC(edges, others []float32) float64 {
	slices.Sort(edges)
	slices.Sort(others)
	below, equal, wins := 0, 0, 0.0
	for _, v := range edges {
		for below < len(others) && others[below] < v {
			below++
		}
		for equal = max(equal, below); equal < len(others) && others[equal] == v; {
			equal++
		}
		wins += float64(below) + float64(equal-below)/2
	}
	return wins / float64(len(edges)) / float64(len(others))
}

// HitsAt returns the share of edges that score above the k-th best of the non-edges, which must
// ascend (Hu and others, "Open Graph Benchmark", section 4.2). With fewer than k non-edges it is 1.
func HitsAt(edges, others []float32, k int) float64 {
	if len(others) < k {
		return 1
	}
	hits := 0
	for _, v := range edges {
		if v > others[len(others)-k] {
			hits++
		}
	}
	return float64(hits) / float64(len(edges))
}
