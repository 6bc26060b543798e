package train

import (
	"reflect"
	"testing"

	"gdb/train/runs"
)

// TestTheTestIsKept: run.json has what eval computes of the test split, of classes and of numbers,
// also after the run was resumed with nothing left to do.
func TestTheTestIsKept(t *testing.T) {
	for _, numbers := range []bool{false, true} {
		g, c := planted(false), testConfig()
		if numbers {
			g = plantedNumbers()
		}
		s := mustBuild(t, g)
		c.Epochs = 2
		mustRun(t, s, c)
		want, err := Evaluate(t.Context(), s, mustDevice(t), EvalConfig{Run: "t"})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			file, err := runs.Open(s, "t").ReadFile()
			if err != nil {
				t.Fatal(err)
			}
			if got, err := Tested(&file); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("kept %+v, %v; eval says %+v", got, err, want)
			}
			mustRun(t, s, resumed("t"))
		}
	}
}
