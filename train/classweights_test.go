package train

import (
	"math"
	"strings"
	"testing"

	"gdb/train/setting"
	"gdb/train/task"
)

// TestClassWeights: a training derives class weights from its own nodes, without validation nodes.
func TestClassWeights(t *testing.T) {
	for _, multi := range []bool{false, true} {
		g, c := planted(multi), testConfig()
		c.ClassWeights = setting.WeightsBalanced
		counts, nodes := make([]float64, plantedClasses), 0.0
		for _, v := range g.Splits["train"] {
			switch {
			case multi && g.Multi[v] == nil || !multi && g.Labels[v] < 0:
				continue
			case multi:
				for _, k := range g.Multi[v] {
					counts[k]++
				}
			default:
				counts[g.Labels[v]]++
			}
			nodes++
		}
		l, err := Open(t.Context(), mustBuild(t, g), mustDevice(t), c)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]float32, plantedClasses)
		l.s.steps.be.Read(got, l.s.in.task.(*task.Classes).Weights)
		for k, n := range counts {
			want := nodes / (plantedClasses * n)
			if multi {
				want = (nodes - n) / n
			}
			if math.Abs(float64(got[k])-want) > 1e-6*want {
				t.Errorf("multi %v: class %d has weight %v, want %v", multi, k, got[k], want)
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestClassWeightsTellRareClasses: a class that one in ten train nodes has is found more often.
func TestClassWeightsTellRareClasses(t *testing.T) {
	g := planted(false)
	kept, rare := g.Splits["train"][:0], 0
	for _, v := range g.Splits["train"] {
		if g.Labels[v] == 2 {
			if rare++; rare%9 != 0 {
				continue
			}
		}
		kept = append(kept, v)
	}
	g.Splits["train"] = kept
	recall := map[string]float64{}
	for _, weights := range []string{setting.WeightsNone, setting.WeightsBalanced} {
		s, c := mustBuild(t, g), testConfig()
		c.ClassWeights, c.Epochs = weights, 3
		mustRun(t, s, c)
		got, err := Evaluate(t.Context(), s, mustDevice(t), EvalConfig{Run: "t"})
		if err != nil {
			t.Fatal(err)
		}
		recall[weights] = got.Classes[2].Recall
	}
	if recall[setting.WeightsBalanced] < recall[setting.WeightsNone]+0.1 {
		t.Errorf("recall of the rare class: %v", recall)
	}
}

func TestClassWeightsResume(t *testing.T) {
	c := resumeConfig()
	c.ClassWeights = setting.WeightsBalanced
	checkResumes(t, planted(false), c)
	checkAnyCache(t, planted(true), c)
}

func TestClassWeightsOfNumbers(t *testing.T) {
	c := testConfig()
	c.ClassWeights = setting.WeightsBalanced
	_, err := Run(t.Context(), mustBuild(t, plantedNumbers()), mustDevice(t), c, nil)
	if err == nil || !strings.Contains(err.Error(), "--class-weights is for classes") {
		t.Errorf("weights of numbers: %v", err)
	}
	c = testConfig()
	c.ClassWeights = "sqrt"
	if err := c.Validate(); err == nil {
		t.Errorf("unknown weights: %v", err)
	}
}
