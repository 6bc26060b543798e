package train

import (
	"strings"
	"testing"

	"gdb/compute/backend"
	"gdb/train/run"
	"gdb/train/runs"
	"gdb/train/setting"
)

// TestPrecisionOfARun: a run says its precision and goes on in it, a resumption in another is
// refused unless it says so, evaluations have the run's unless they say another, and the CPU does
// not compute in tf32.
func TestPrecisionOfARun(t *testing.T) {
	c := testConfig()
	c.Precision, c.Hidden, c.Epochs = setting.BFloat16, 32, 1
	s := mustBuild(t, planted(false))
	mustRun(t, s, c)
	old, err := runs.Load(s, c.Run)
	if err != nil || old.Precision != setting.BFloat16 {
		t.Fatalf("run.json has precision %q, %v", old.Precision, err)
	}
	mustRun(t, s, resumed(c.Run))
	other := old
	other.Resume, other.Precision, other.Epochs = c.Run, setting.Float32, 2
	_, err = Run(t.Context(), s, mustDevice(t), other, nil)
	if err == nil || !strings.Contains(err.Error(), "precision f32: it began with bf16") {
		t.Errorf("resumed in another precision: %v", err)
	}
	other.ChangePrecision = true
	note := ""
	if _, err = Run(t.Context(), s, mustDevice(t), other, func(e run.Event) {
		if e.Started != nil {
			note = e.Started.Note
		}
	}); err != nil || !strings.Contains(note, "began in bf16 and goes on in f32") {
		t.Errorf("resumed in another precision that is asked for: %q, %v", note, err)
	}
	c.Run, c.Resume, c.Precision, c.Backend = "tf32", "", setting.TF32, backend.CPU
	_, err = Run(t.Context(), s, mustDevice(t), c, nil)
	if err == nil || !strings.Contains(err.Error(), "--backend cuda, or --precision f32") {
		t.Errorf("tf32 on the CPU: %v", err)
	}
}

// TestHalfEvaluations: an evaluation of a run in half precision, exact and sampled over whole
// lists, is near that in float32, and the same to the bit where its precision is asked for.
func TestHalfEvaluations(t *testing.T) {
	c := testConfig()
	c.Precision, c.Hidden, c.Epochs, c.Model = setting.BFloat16, 32, 3, "gcn"
	s := mustBuild(t, planted(false))
	mustRun(t, s, c)
	value := func(precision, mode string) float64 {
		t.Helper()
		e := EvalConfig{Run: c.Run, Split: "val", Mode: mode}
		e.Precision = precision
		res, err := Evaluate(t.Context(), s, mustDevice(t), e)
		if err != nil {
			t.Fatal(err)
		}
		return res.Value
	}
	for _, mode := range []string{"exact", "sampled"} {
		half, whole := value("", mode), value(setting.Float32, mode)
		if d := half - whole; d < -0.05 || d > 0.05 {
			t.Errorf("%s: %g in half precision, %g in float32", mode, half, whole)
		}
		if again := value(setting.BFloat16, mode); again != half {
			t.Errorf("%s: %g, the run's own precision has %g", mode, again, half)
		}
	}
}
