package task

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gdb/kv"
)

// Names of the metrics: of classes, and of numbers.
const (
	Accuracy = "accuracy"
	MicroF1  = "micro-f1"
	MacroF1  = "macro-f1"
	ROCAUC   = "roc-auc"

	RMSE = "rmse" // root of the mean squared error
	MAE  = "mae"  // mean absolute error
	R2   = "r2"   // 1 less the squared errors over those of the mean of the labels
)

// Names of the losses. Those of numbers are of standardized labels.
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

// fits are the losses and metrics of a kind of labels, of each the default first.
var fits = []struct {
	kind, words     string
	losses, metrics []string
}{
	{KindClass, "classes", []string{LossSoftmax}, []string{Accuracy, MicroF1, MacroF1, ROCAUC}},
	{KindMulti, "several classes a node", []string{LossBCE},
		[]string{MicroF1, Accuracy, MacroF1, ROCAUC}},
	{KindTarget, "numbers", []string{LossMSE, LossMAE, LossHuber}, []string{RMSE, MAE, R2}},
}

// Fit replaces auto by the default of a kind of labels, and fails if a loss or a metric is not one
// of that kind.
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

// KindOf is what labels are trained as: classes that all are numbers are numbers by a loss of
// these.
func KindOf(l *kv.LabelsMeta, loss string) string {
	if l.Kind == KindClass && (loss == LossMSE || loss == LossMAE || loss == LossHuber) &&
		ClassNumbers(l.Classes) != nil {
		return KindTarget
	}
	return l.Kind
}

// ClassNumbers are the numbers that names of classes spell; nil if some spell none.
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
	// measuredLeast is the least number of classes that may be measured numbers, and measuredSparse
	// how many times as far as their number they reach then: numbers of classes follow one another.
	measuredLeast, measuredSparse = 20, 4
)

// Measured says whether classes look like whole numbers that were measured, such as prices.
func Measured(l *kv.LabelsMeta) bool {
	if l.Kind != KindClass || len(l.Classes) < measuredLeast {
		return false
	}
	values := ClassNumbers(l.Classes)
	return values != nil && float64(slices.Max(values))-float64(slices.Min(values)) >
		measuredSparse*float64(len(values))
}

// Auto as a loss or a metric is the default of the labels.
const Auto = "auto"

// Losses are the names of all losses, and Metrics those of all metrics.
func Losses() (names []string) {
	for _, f := range fits {
		names = append(names, f.losses...)
	}
	return names
}

// Metrics are the names of all metrics.
func Metrics() []string { return []string{Accuracy, MicroF1, MacroF1, ROCAUC, RMSE, MAE, R2} }
