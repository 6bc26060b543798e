package rank

import "slices"

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
