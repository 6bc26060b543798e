package report

import (
	"fmt"

	"gdb/internal/chart"
)

// EmbeddingMost is how many nodes the picture of vectors has.
const EmbeddingMost = 2000

// Embedding is the vectors of a sample of nodes.
type Embedding struct {
	From string // what the vectors are
	Rows [][]float32
	Of   []string // what each node is: a class or a type, "" for nothing
}

// SVG draws the vectors in the plane of their first two principal components. It centers the rows.
func (e *Embedding) SVG() []byte {
	at, shares := principal(e.Rows)
	names, group := groups(e.Of)
	s := &chart.Scatter{Title: fmt.Sprintf("Vectors of %s nodes in two dimensions",
		count(uint64(len(e.Rows)))), Note: e.From + "; by their principal components",
		XLabel: axisName("first", shares[0]), YLabel: axisName("second", shares[1]),
		Groups: make([]chart.Points, max(1, len(names)))}
	for k, name := range names {
		s.Groups[k].Name = name
	}
	for i, k := range group {
		g := &s.Groups[k]
		g.X, g.Y = append(g.X, at[0][i]), append(g.Y, at[1][i])
	}
	if names == nil {
		s.Groups[0].Name = "nodes"
	}
	return s.SVG()
}

func axisName(which string, share float64) string {
	return fmt.Sprintf("%s component (%.0f %% of the variance)", which, 100*share)
}
