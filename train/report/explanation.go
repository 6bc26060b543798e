package report

import (
	_ "embed" // of the page
	"fmt"
	"html/template"
	"io"
	"strings"

	"gdb/internal/chart"
	"gdb/train"
	"gdb/train/runs"
)

//go:embed explanation.html
var explanationText string

var explanationPage = template.Must(template.New("explanation").Funcs(template.FuncMap{
	"signed": signed, "score": score,
}).Parse(explanationText))

// score formats a share; it takes a pointer too, as template values are.
func score(v any) string {
	if p, ok := v.(*float64); ok {
		v = *p
	}
	return fmt.Sprintf("%.3f", v)
}

// WriteExplanation writes an explanation as a page that needs no network.
func WriteExplanation(w io.Writer, e *train.Explanation) error {
	err := explanationPage.Execute(w, struct {
		*train.Explanation
		Title    string
		Picture  template.HTML
		Outcomes [][2]string
	}{e, explanationTitle(e), template.HTML(explanationRings(e).SVG()), outcomes(e)})
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

func explanationTitle(e *train.Explanation) string {
	return fmt.Sprintf("Run %s predicts of node %s: %s", e.Run, e.Node, predicted(&e.Outcome))
}

// ExplanationPicture draws the listed edges around the node, as a file of SVG.
func ExplanationPicture(e *train.Explanation) []byte { return explanationRings(e).File() }

// explanationRings draws the listed edges around the node: arrows are as dark as their masks, and
// nodes that lower the output have a mark of their own.
func explanationRings(e *train.Explanation) *chart.Rings {
	r := &chart.Rings{Title: explanationTitle(e), Note: fmt.Sprintf("the first %d of %d edges; "+
		"dark ones were learned to matter", len(e.Edges), e.EdgeCount),
		Groups: []string{"adds to the output, or is not listed", "lowers the output"}}
	places, added := map[string]int{}, map[string]float64{}
	for _, x := range e.Nodes {
		added[x.Name] = x.Gradient
	}
	place := func(name string, ring int) int {
		at, known := places[name]
		if !known {
			at = len(r.Nodes)
			places[name] = at
			n := chart.RingNode{Name: name, Ring: ring, Detail: name}
			if added[name] < 0 {
				n.Group = 1
			}
			r.Nodes = append(r.Nodes, n)
		}
		return at
	}
	place(e.Node, 0)
	for _, x := range e.Edges {
		to := place(x.Dst, x.Hops)
		r.Edges = append(r.Edges, chart.RingEdge{From: place(x.Src, x.SrcHops), To: to,
			Weight: x.Mask})
	}
	return r
}

// ExplanationText writes an explanation for a terminal of 80 columns.
func ExplanationText(w io.Writer, e *train.Explanation) error {
	var b strings.Builder
	fmt.Fprintf(&b, "node %s: %s\n", e.Node, predicted(&e.Outcome))
	if e.Confidence != nil && e.Class != e.Prediction {
		fmt.Fprintf(&b, "explained is class %s\n", e.Class)
	}
	fmt.Fprintf(&b, "%s neighbors: %s nodes, %s edges, %s columns (run %s)\n", e.Neighbors,
		count(uint64(e.NodeCount)), count(uint64(e.EdgeCount)), count(uint64(e.ColumnCount)),
		e.Run)
	if len(e.Edges) > 0 {
		fmt.Fprintf(&b, "\n%-52s %4s %6s %11s\n", "edge", "hops", "mask", "gradient")
	}
	for _, x := range e.Edges {
		fmt.Fprintf(&b, "%-52s %4d %6.3f %11s\n", edgeName(&x, 52), x.Hops, x.Mask,
			signed(x.Gradient))
	}
	if len(e.Columns) > 0 {
		fmt.Fprintf(&b, "\n%-57s %6s %11s\n", "column", "mask", "gradient")
	}
	for _, x := range e.Columns {
		fmt.Fprintf(&b, "%-57s %6.3f %11s\n", cut(x.Name, 57), *x.Mask, signed(x.Gradient))
	}
	fmt.Fprintf(&b, "\n%-57s %6s %11s\n", "node", "hops", "gradient")
	for _, x := range e.Nodes {
		fmt.Fprintf(&b, "%-57s %6d %11s\n", cut(x.Name, 57), *x.Hops, signed(x.Gradient))
	}
	b.WriteByte('\n')
	for _, row := range outcomes(e) {
		fmt.Fprintf(&b, "%-28s %s\n", row[0], row[1])
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// outcomes are lines about what is predicted with and without what is listed.
func outcomes(e *train.Explanation) (rows [][2]string) {
	add := func(n int, what string, only, without *train.Outcome) {
		if n > 0 {
			rows = append(rows, [2]string{fmt.Sprintf("from these %d %s alone", n, what),
				predicted(only)}, [2]string{fmt.Sprintf("without these %d %s", n, what),
				predicted(without)})
		}
	}
	add(len(e.Edges), "edges", &e.OnlyEdges, &e.WithoutEdges)
	add(len(e.Columns), "columns", &e.OnlyColumns, &e.WithoutColumns)
	return rows
}

// predicted says what is predicted, with the probability of the class that is explained.
func predicted(o *train.Outcome) string {
	if o.Confidence == nil {
		v, _ := o.Prediction.(float64)
		return runs.Figure(v, 4)
	}
	return fmt.Sprintf("%v (%.1f %%)", o.Prediction, 100**o.Confidence)
}

// edgeName names an edge in at most most characters, each end as far as there is room.
func edgeName(x *train.ExplainedEdge, most int) string {
	arrow := " -> "
	if x.Relation != "" {
		arrow = " -" + cut(x.Relation, 16) + "-> "
	}
	room := most - len([]rune(arrow))
	src := cut(x.Src, max(room/2, room-len([]rune(x.Dst))))
	return src + arrow + cut(x.Dst, room-len([]rune(src)))
}

func signed(v float64) string { return fmt.Sprintf("%+.4g", v) }
