package train

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"gdb/layout"
	"gdb/train/setting"
	"gdb/train/task"
)

// TestNotANumber: a feature that is NaN or infinite never gives a result that looks like one of
// numbers. A node alone has it: training, evaluation and prediction fail as soon as they need it.
func TestNotANumber(t *testing.T) {
	for i, split := range []string{"train", "val", "test", ""} {
		for k, mode := range []string{"exact", setting.EvalSampled} {
			multi := (i+k)%2 == 1
			t.Run(fmt.Sprintf("%s,%s,%v", split, mode, multi), func(t *testing.T) {
				notANumber(t, split, mode, multi)
			})
		}
	}
}

func notANumber(t *testing.T, split, mode string, multi bool) {
	g := planted(multi)
	bad := layout.NodeID(g.Nodes)
	g.Nodes++
	g.Features = append(g.Features, make([]float32, plantedDim)...)
	one := &g.Features[len(g.Features)-1]
	*one = float32(math.NaN())
	if multi {
		*one = float32(math.Inf(1))
		g.Multi = append(g.Multi, g.Multi[0])
	} else {
		g.Labels = append(g.Labels, 0)
	}
	if split != "" {
		g.Splits[split] = append(g.Splits[split], bad)
	}
	s, c := mustBuild(t, g), testConfig()
	c.Epochs, c.EvalMode = 2, mode
	_, err := Run(context.Background(), s, mustDevice(t), c, nil)
	want := fmt.Sprintf("node #%d", bad)
	switch {
	case split == "train":
		if err == nil || !strings.Contains(err.Error(), "NaN") {
			t.Errorf("training: %v", err)
		}
		return
	case split != "":
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("evaluation: %v", err)
		}
		return
	case err != nil:
		t.Fatal(err)
	}
	err = Predict(context.Background(), s, mustDevice(t), PredictConfig{Run: c.Run,
		Out: "out.csv"})
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("prediction: %v", err)
	}
	if _, err := s.FS().Stat("out.csv"); err == nil {
		t.Error("a file of predictions was written")
	}
}

func TestCheckOutput(t *testing.T) {
	nodes, big := []layout.NodeID{7, 9}, float32(math.MaxFloat32)
	if err := task.CheckOutput(nodes, []float32{1, -big, 0, big}); err != nil {
		t.Error(err)
	}
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		err := task.CheckOutput(nodes, []float32{1, 2, float32(v), 3})
		if err == nil || !strings.Contains(err.Error(), "node #9 is ") {
			t.Errorf("%g: %v", v, err)
		}
	}
}
