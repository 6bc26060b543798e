package train

import (
	"context"
	"strings"
	"testing"

	"gdb/train/task"
)

// TestROCAUCOfRuns trains by roc-auc, and asks for it where a run had another metric.
func TestROCAUCOfRuns(t *testing.T) {
	for _, multi := range []bool{false, true} {
		s := mustBuild(t, planted(multi))
		c := testConfig()
		c.Metric, c.Run = task.ROCAUC, "auc"
		res := mustRun(t, s, c)
		if res.Metric != task.ROCAUC || res.Test == nil || *res.Test < 0.9 || *res.Test > 1 {
			t.Errorf("multi %v: %s, by %s", multi, res, res.Metric)
		}
		got, err := Evaluate(context.Background(), s, mustDevice(t), EvalConfig{Run: "auc"})
		if err != nil || got.Metric != task.ROCAUC || got.Value != *res.Test {
			t.Errorf("multi %v: eval %+v, %v; the run had %v", multi, got, err, *res.Test)
		}
		c.Metric, c.Run, c.Epochs = "auto", "other", 1
		mustRun(t, s, c)
		got, err = Evaluate(context.Background(), s, mustDevice(t),
			EvalConfig{Run: "other", Metric: task.ROCAUC})
		if err != nil || got.Metric != task.ROCAUC || got.Value == got.MicroF1 {
			t.Errorf("multi %v: eval by roc-auc %+v, %v", multi, got, err)
		}
		_, err = Evaluate(context.Background(), s, mustDevice(t),
			EvalConfig{Run: "other", Metric: "auc"})
		if err == nil || !strings.Contains(err.Error(), "roc-auc") {
			t.Errorf("an unknown metric: %v", err)
		}
		if _, err := s.FS().Stat(s.Path("runs", "auc", "tmp-scores")); err == nil {
			t.Error("scores were left behind")
		}
	}
}
