package report

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/guptarohit/asciigraph"
)

const (
	plotHeight = 8  // lines of a plot
	plotWidth  = 66 // columns of a plot; the numbers of the axis stand before them
)

// PlotText draws the scores of several runs on the validation nodes with letters: a plot for each
// run, all with the same axis.
func PlotText(w io.Writer, metric string, all []Run) error {
	least, most := math.Inf(1), math.Inf(-1)
	values := make([][]float64, len(all))
	for i, r := range all {
		for k := range r.Epochs {
			if v := val(&r.Epochs[k]); !math.IsNaN(v) {
				values[i] = append(values[i], v)
				least, most = min(least, v), max(most, v)
			}
		}
	}
	var b strings.Builder
	for i, r := range all {
		if i > 0 {
			b.WriteByte('\n')
		}
		if len(values[i]) == 0 {
			fmt.Fprintf(&b, "run %s has no evaluated epoch yet\n", r.Name)
			continue
		}
		fmt.Fprintf(&b, "run %s: val %s in %d epochs\n", r.Name, metric, len(r.Epochs))
		graph := asciigraph.Plot(values[i], asciigraph.Height(plotHeight),
			asciigraph.Width(min(plotWidth, len(values[i]))), asciigraph.Precision(3),
			asciigraph.LowerBound(least), asciigraph.UpperBound(most))
		for line := range strings.Lines(graph) {
			b.WriteString(strings.TrimRight(line, " \n") + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
