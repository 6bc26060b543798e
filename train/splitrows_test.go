package train

import (
	"testing"

	"gdb/train/setting"
)

// TestSplitRows: exact evaluation has rows whole where all of them could be in memory, and
// otherwise batches have pieces as they have where evaluation is sampled.
func TestSplitRows(t *testing.T) {
	s := mustBuild(t, plantedTypesFrom(plantedNodes/8))
	const whole = 4 * plantedDim * plantedNodes
	for _, c := range []struct {
		mode   string
		memory int64
		split  bool
	}{{"exact", whole, false}, {"exact", whole - 1, true}, {setting.EvalSampled, whole, true}} {
		cfg := resumeConfig()
		cfg.Model, cfg.EvalMode = "hsage", c.mode
		in := newInputs(s, mustDevice(t), &cfg)
		if err := in.OpenRows(t.Context()); err != nil {
			t.Fatal(err)
		}
		cfg.Memory = c.memory
		if in.splitRows(&cfg); (in.Split != nil) != c.split {
			t.Errorf("evaluation %s, %d bytes: pieces %v, want %v", c.mode, c.memory,
				in.Split != nil, c.split)
		}
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	}
}
