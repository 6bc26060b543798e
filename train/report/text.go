package report

import (
	"fmt"
	"io"
	"strings"

	"gdb/train"
	"gdb/train/runs"

	"github.com/dustin/go-humanize"
)

const (
	// classesShown is the most classes for which each gets a line.
	classesShown = 40
	// confusionShown is the most classes for which the rows of the confusion matrix fit a line.
	confusionShown = 8
)

// Text writes an evaluation for a terminal: the metrics and, if there are few classes, the scores
// of each class.
func Text(w io.Writer, r *train.EvalResult) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s over %s nodes (run %s, weights of epoch %d)\n", r.Split, r.Metric,
		runs.Figure(r.Value, 4), count(r.Nodes), r.Run, r.Epoch)
	if n := r.NumberMetrics; n != nil {
		fmt.Fprintf(&b, "rmse %s, mae %s, r2 %.4f\n", runs.Figure(n.RMSE, 4), runs.Figure(n.MAE, 4),
			n.R2)
	}
	if r.ClassMetrics != nil {
		fmt.Fprintf(&b, "accuracy %.4f, micro-F1 %.4f, macro-F1 %.4f\n", r.Accuracy, r.MicroF1,
			r.MacroF1)
		if c := r.Curves; c != nil && c.Calibrated != nil {
			fmt.Fprintf(&b, "expected calibration error %.4f, %.4f by the temperature %.4f\n",
				c.ECE, c.Calibrated.ECE, c.Calibrated.Temperature)
		}
		classText(&b, r)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// classText writes a line for each class, and the confusion matrix.
func classText(b *strings.Builder, r *train.EvalResult) {
	if len(r.Classes) > classesShown || len(r.Classes) < 2 {
		return
	}
	fmt.Fprintf(b, "\n%-20s %9s %9s %9s %9s", "class", "nodes", "precision", "recall", "F1")
	multi := r.Classes[0].Threshold > 0
	if multi {
		fmt.Fprintf(b, " %9s", "threshold")
	}
	for _, c := range r.Classes {
		fmt.Fprintf(b, "\n%-20s %9s %9.3f %9.3f %9.3f", cut(c.Class, 20), count(c.Nodes),
			c.Precision, c.Recall, c.F1)
		if multi {
			fmt.Fprintf(b, " %9.3f", c.Threshold)
		}
	}
	b.WriteByte('\n')
	if r.Confusion == nil || len(r.Classes) > confusionShown {
		return
	}
	fmt.Fprintf(b, "\n%-15s", "true \\ predicted")
	for _, c := range r.Classes {
		fmt.Fprintf(b, " %7s", cut(c.Class, 7))
	}
	b.WriteByte('\n')
	for k, row := range r.Confusion {
		fmt.Fprintf(b, "%-16s", cut(r.Classes[k].Class, 16))
		for _, n := range row {
			fmt.Fprintf(b, " %7d", n)
		}
		b.WriteByte('\n')
	}
}

func count(n uint64) string { return humanize.Comma(int64(n)) }

// cut shortens a name to at most most characters.
func cut(name string, most int) string {
	r := []rune(name)
	if len(r) <= most {
		return name
	}
	return string(r[:most-1]) + "…"
}
