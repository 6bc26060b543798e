package train

import (
	"context"
	"testing"

	"gdb/train/run"
	"gdb/train/runs"
	"gdb/train/setting"
)

// TestStepAfterEvaluation: a sampled evaluation leaves nothing of its steps in memory, so that
// steps of training have room, also where they are larger.
func TestStepAfterEvaluation(t *testing.T) {
	c := resumeConfig()
	c.Epochs, c.Hidden, c.EvalEvery, c.EvalMode = 2, 512, 2, setting.EvalSampled
	c.Threads, c.Memory = 1, 256<<20
	var held []int64
	s := mustBuild(t, plantedTypesFrom(plantedNodes/8))
	_, err := Run(context.Background(), s, mustDevice(t), c, func(e run.Event) {
		if e.Epoch != nil {
			held = append(held, e.Epoch.(*runs.Epoch).Held)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(held) != 2 || held[1] > held[0]-1<<19 {
		t.Errorf("%d bytes are held after steps of training, and after an evaluation", held)
	}
}
