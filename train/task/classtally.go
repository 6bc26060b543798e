package task

import (
	"context"

	"gdb/internal/mem"
	"gdb/sample"
)

// ClassTally counts predicted classes against labels.
type ClassTally struct {
	*Counts
	task   *Classes
	labels *sample.Labels
	scores *Scores     // for roc-auc and pr-auc; else nil
	choice *choice     // for choosing thresholds; else nil
	curves *curveTally // for curves; else nil
	least  float64     // the precision at which recall is highest; 0 chooses by F1
	lossSum

	// classes and bits are the labels of the nodes that Add counts.
	classes []int32
	bits    []float32
}

// NewTally returns a tally that counts from zero.
func (c *Classes) NewTally(labels *sample.Labels, scores *Scores) Tally {
	return &ClassTally{Counts: newCounts(c.Outputs()), task: c, labels: labels, scores: scores}
}

// Finish computes roc-auc and pr-auc, which need all predictions.
func (t *ClassTally) Finish(ctx context.Context) (err error) {
	if t.scores != nil {
		t.rocAUC, t.prAUC, err = t.scores.means(ctx)
	}
	return err
}

// Add counts the predictions for some nodes.
func (t *ClassTally) Add(ctx context.Context, nodes []sample.NodeID, logits []float32) error {
	n := t.task.Outputs()
	if err := CheckOutput(nodes, logits); err != nil {
		return err
	}
	if t.task.Multi {
		t.bits = mem.Resized(t.bits, len(nodes)*n)
		if err := t.labels.Bits(ctx, nodes, t.bits); err != nil {
			return err
		}
		for i := range nodes {
			row, truth := logits[i*n:(i+1)*n], t.bits[i*n:(i+1)*n]
			t.multi(row, truth, t.task.Thresholds)
			for k, set := range truth {
				if set == set {
					t.lossSum.add(binaryCrossEntropy(row[k], set))
				}
			}
			if t.choice != nil {
				t.choice.add(row, truth)
			}
			if t.curves != nil {
				t.curves.multi(row, truth)
			}
			if t.scores != nil {
				if err := t.scores.multi(row, truth); err != nil {
					return err
				}
			}
		}
		return nil
	}
	t.classes = mem.Resized(t.classes, len(nodes))
	if err := t.labels.Of(ctx, nodes, t.classes); err != nil {
		return err
	}
	for i, label := range t.classes {
		row := logits[i*n : (i+1)*n]
		t.class(t.task.predicted(row), label)
		if label >= 0 && t.choice != nil {
			t.choice.add([]float32{row[1] - row[0]}, []float32{float32(label)})
		}
		if label >= 0 {
			t.lossSum.add(crossEntropy(row, label))
		}
		if label >= 0 && t.curves != nil {
			t.curves.class(row, label)
		}
		if t.scores != nil {
			if err := t.scores.class(row, label); err != nil {
				return err
			}
		}
	}
	return nil
}

// Metrics returns all metrics but roc-auc and pr-auc.
func (t *ClassTally) Metrics() (*ClassMetrics, error) {
	c := t.Counts
	m := &ClassMetrics{Classes: c.Scores(t.task.Names), Confusion: c.Confusion()}
	for k := range m.Classes {
		if t.task.Multi || t.task.Thresholds != nil {
			m.Classes[k].Threshold = probabilityOf(thresholdAt(t.task.Thresholds, k))
		}
	}
	if t.curves != nil {
		m.Curves = t.curves.result(t.task.Names)
	}
	var err error
	for _, one := range []struct {
		name string
		to   *float64
	}{{Accuracy, &m.Accuracy}, {MicroF1, &m.MicroF1}, {MacroF1, &m.MacroF1}} {
		if *one.to, err = c.Metric(one.name); err != nil {
			return nil, err
		}
	}
	return m, nil
}
