package train

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"gdb/layout"
	"gdb/train/runs"
)

// scratchNames are the files of evaluations and predictions in a run's directory.
func scratchNames(t *testing.T, s *layout.Store, run string) (found []string) {
	t.Helper()
	names, err := s.FS().List(runs.Open(s, run).Path())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if strings.HasPrefix(n, evalJob) || strings.HasPrefix(n, predictJob) {
			found = append(found, n)
		}
	}
	slices.Sort(found)
	return found
}

// TestDeadScratch: what killed predictions and evaluations left goes with the next one, or when the
// run is resumed; what is in use stays.
func TestDeadScratch(t *testing.T) {
	s, c := mustBuild(t, planted(false)), resumeConfig()
	mustRun(t, s, c)
	dir := runs.Open(s, c.Run)
	for name, again := range map[string]func(){
		"predict": func() { mustPredict(t, s, PredictConfig{Run: c.Run}, "all.csv") },
		"eval": func() {
			_, err := Evaluate(context.Background(), s, mustDevice(t), EvalConfig{Run: c.Run})
			if err != nil {
				t.Fatal(err)
			}
		},
		"resume": func() { mustRun(t, s, resumed(c.Run)) },
	} {
		for _, left := range []string{"eval-1", "eval-2-scores", "predict-3", "predict-4"} {
			if err := s.FS().MkdirAll(dir.Path(left), 0o755); err != nil {
				t.Fatal(err)
			}
			err := writeSynced(s.FS(), s.FS().PathJoin(dir.Path(left), "x.rows"), []byte{1})
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := writeSynced(s.FS(), dir.Path("eval-5.lock"), nil); err != nil {
			t.Fatal(err)
		}
		used, err := s.FS().Lock(dir.Path("predict-4.lock"))
		if err != nil {
			t.Fatal(err)
		}
		again()
		if got := scratchNames(t, s, c.Run); !slices.Equal(got,
			[]string{"predict-4", "predict-4.lock"}) {
			t.Errorf("after %s: %v", name, got)
		}
		if err := used.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := removeDead(dir); err != nil {
		t.Fatal(err)
	}
	if got := scratchNames(t, s, c.Run); len(got) != 0 {
		t.Errorf("left: %v", got)
	}
}

// TestScratchIsClaimed: hidden states in files are locked while they are in use, and gone after.
func TestScratchIsClaimed(t *testing.T) {
	s, ctx := mustBuild(t, planted(false)), context.Background()
	mustRun(t, s, testConfig())
	tr, err := openTrained(ctx, s, mustDevice(t), opening{run: "t"})
	if err != nil {
		t.Fatal(err)
	}
	f := tr.inference(tr.in, newScratch(tr.in, tr.dir, evalJob))
	f.OnDisk, f.RowsMax = true, 70
	looked := false
	err = f.Run(ctx, nil, func([]layout.NodeID, []float32) error {
		if !looked {
			looked = true
			before := scratchNames(t, s, "t")
			if err := removeDead(tr.dir); err != nil || len(before) != 2 ||
				!slices.Equal(before, scratchNames(t, s, "t")) {
				t.Errorf("in use: %v, then %v, %v", before, scratchNames(t, s, "t"), err)
			}
		}
		return nil
	})
	if err := errors.Join(err, tr.Close()); err != nil || !looked {
		t.Fatal(err)
	}
	if got := scratchNames(t, s, "t"); len(got) != 0 {
		t.Errorf("left: %v", got)
	}
}
