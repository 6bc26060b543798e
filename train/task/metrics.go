package task

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gdb/kv"
)

// Names of the metrics, first of classes, then of numbers.
const (
	Accuracy = "accuracy"
	MicroF1  = "micro-f1"
	MacroF1  = "macro-f1"
	ROCAUC   = "roc-auc" // area under the ROC curve
	PRAUC    = "pr-auc"  // average precision

	RMSE = "rmse" // root of the mean squared error
	MAE  = "mae"  // mean absolute error
	R2   = "r2"   // 1 less the squared errors over those of the mean of the labels
)

// Names of the losses. The losses of numbers are computed on standardized labels.
const (
	LossSoftmax = "softmax"
	LossBCE     = "bce"
	LossMSE     = "mse"
	LossMAE     = "mae"
	LossHuber   = "huber"
)

// Kinds of labels, as a store names them.
const (
	KindClass  = "class"
	KindMulti  = "multi"
	KindTarget = "target"
)

// fits lists the losses and metrics for each kind of labels, the defaults first.
var fits = []struct {
	kind, words     string
	losses, metrics []string
}{
	{KindClass, "classes", []string{LossSoftmax}, []string{Accuracy, MicroF1, MacroF1, ROCAUC,
		PRAUC}},
	{KindMulti, "several classes a node", []string{LossBCE},
		[]string{MicroF1, Accuracy, MacroF1, ROCAUC, PRAUC}},
	{KindTarget, "numbers", []string{LossMSE, LossMAE, LossHuber}, []string{RMSE, MAE, R2}},
}

// ByScores reports whether a metric is computed from the scores of all nodes, in order.
func ByScores(metric string) bool { return metric == ROCAUC || metric == PRAUC }

// Fit replaces auto by the default for a kind of labels. It returns an error if a loss or a metric
// is not for that kind.
func Fit(kind string, loss, metric *string) error {
	for _, f := range fits {
		if f.kind != kind {
			continue
		}
		for _, c := range []struct {
			name  string
			value *string
			known []string
		}{{"loss", loss, f.losses}, {"metric", metric, f.metrics}} {
			if *c.value == Auto {
				*c.value = c.known[0]
			}
			if !slices.Contains(c.known, *c.value) {
				return fmt.Errorf("--%s %s is not for labels that are %s: use --%s auto, or %s",
					c.name, *c.value, f.words, c.name, strings.Join(c.known, ", "))
			}
		}
		return nil
	}
	return fmt.Errorf("the labels are of kind %q, which no task is for", kind)
}

// KindOf returns the kind that labels are trained as: classes whose names are all numbers are
// trained as numbers if the loss is for numbers.
func KindOf(l *kv.LabelsMeta, loss string) string {
	if l.Kind == KindClass && (loss == LossMSE || loss == LossMAE || loss == LossHuber) &&
		ClassNumbers(l.Classes) != nil {
		return KindTarget
	}
	return l.Kind
}

// ClassNumbers returns the numbers that the names of classes spell; nil if some name spells none.
func ClassNumbers(names []string) []float32 {
	values := make([]float32, len(names))
	for i, name := range names {
		v, err := strconv.ParseFloat(name, 32)
		if err != nil || v-v != 0 {
			return nil
		}
		values[i] = float32(v)
	}
	return values
}

const (
	// measuredLeast and measuredSparse describe classes that may be measured numbers: at least
	// measuredLeast of them, whose range is more than measuredSparse times their count. Numbers
	// that name classes follow one another instead.
	measuredLeast, measuredSparse = 20, 4
)

// Measured reports whether classes look like whole numbers that were measured, such as prices.
func Measured(l *kv.LabelsMeta) bool {
	if l.Kind != KindClass || len(l.Classes) < measuredLeast {
		return false
	}
	values := ClassNumbers(l.Classes)
	return values != nil && float64(slices.Max(values))-float64(slices.Min(values)) >
		measuredSparse*float64(len(values))
}

// Auto as a loss or a metric stands for the default of the kind of labels.
const Auto = "auto"
