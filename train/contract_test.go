package train_test

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"strconv"
	"testing"

	"gdb/blockdev"
	"gdb/layout"
	"gdb/train"
	"gdb/train/plan"
	"gdb/train/setting"
)

// contractConfig are settings that train in a second.
func contractConfig() setting.Node {
	c := setting.Default()
	c.Run, c.Hidden, c.LR, c.Epochs, c.Memory, c.Threads = "r", 16, 0.01, 3, 512<<20, 2
	return c
}

func mustCora(t *testing.T) (*layout.Store, blockdev.Device) {
	t.Helper()
	store, err := coraStore(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dev, err := blockdev.Open(blockdev.Options{Backend: blockdev.Memory})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	return store, dev
}

// TestPlanFromOutside: a plan fits its memory, a memory that is too small is refused with one that
// suffices, the same settings are planned the same again, and a run has the plan.
func TestPlanFromOutside(t *testing.T) {
	store, dev := mustCora(t)
	c := contractConfig()
	p, err := train.MakePlan(t.Context(), store, dev, c)
	if err != nil || p.Left() < 0 || p.Memory != c.Memory {
		t.Fatalf("%v, %v", p, err)
	}
	again, err := train.MakePlan(t.Context(), store, dev, c)
	if err != nil || again.String() != p.String() {
		t.Errorf("planned\n%v, then\n%v, %v", p, again, err)
	}
	res, err := train.Run(t.Context(), store, dev, c, nil)
	if err != nil || res.Planned == nil || res.Planned.Batches != p.Forecast.Batches {
		t.Errorf("the run was planned as %+v, %v", res, err)
	}
	for c.Memory = 1; ; {
		_, err := train.MakePlan(t.Context(), store, dev, c)
		var small *plan.TooSmallError
		if err == nil {
			break
		}
		if !errors.As(err, &small) || small.Least <= c.Memory {
			t.Fatalf("of %d bytes: %v", c.Memory, err)
		}
		c.Memory = small.Least
	}
}

// TestFinishedRunFromOutside: what is evaluated, predicted and embedded of a run that is done
// agrees with what the run tested, and what cannot be says so and writes nothing.
func TestFinishedRunFromOutside(t *testing.T) {
	store, dev := mustCora(t)
	res, err := train.Run(t.Context(), store, dev, contractConfig(), nil)
	if err != nil {
		t.Fatal(err)
	}
	eval, err := train.Evaluate(t.Context(), store, dev, train.EvalConfig{Run: "r"})
	if err != nil || eval.Value != *res.Test || eval.Epoch != res.BestEpoch ||
		eval.Split != "test" {
		t.Errorf("evaluated %+v, %v; the run tested %+v", eval, err, res)
	}
	err = train.Predict(t.Context(), store, dev, train.PredictConfig{Run: "r", Out: "p.csv",
		Probabilities: true})
	if err != nil {
		t.Fatal(err)
	}
	rows, classes := mustTable(t, store, "p.csv"), len(eval.Names())
	if uint64(len(rows)) != 1+store.Meta().Nodes || len(rows[0]) != 2+classes {
		t.Errorf("%d rows of %d columns", len(rows), len(rows[0]))
	}
	for _, row := range rows[1:] {
		best := 2
		for k := range classes {
			if mustFloat(t, row[2+k]) > mustFloat(t, row[best]) {
				best = 2 + k
			}
		}
		if rows[0][best] != "p:"+row[1] {
			t.Fatalf("node %s is predicted %s, most probable is %s", row[0], row[1], rows[0][best])
		}
	}
	err = train.Embed(t.Context(), store, dev, train.EmbedConfig{Run: "r", Out: "v.csv"})
	if err != nil {
		t.Fatal(err)
	}
	vectors := mustTable(t, store, "v.csv")
	if len(vectors) != len(rows) || len(vectors[0]) != 1+16 || vectors[1][0] != rows[1][0] {
		t.Errorf("%d vectors, %v", len(vectors), vectors[0])
	}
	for what, failed := range map[string]error{
		"no such run": train.Predict(t.Context(), store, dev, train.PredictConfig{Run: "s",
			Out: "n.csv"}),
		"unknown format": train.Predict(t.Context(), store, dev, train.PredictConfig{Run: "r",
			Out: "n.x"}),
		"no such split": train.Predict(t.Context(), store, dev, train.PredictConfig{Run: "r",
			Split: "none", Out: "n.csv"}),
		"no run to embed": train.Embed(t.Context(), store, dev, train.EmbedConfig{Run: "s",
			Out: "n.csv"}),
	} {
		if failed == nil {
			t.Error(what + " is no error")
		}
	}
	for _, name := range []string{"n.csv", "n.x", "n.csv.tmp"} {
		if _, err := store.FS().Stat(name); err == nil {
			t.Errorf("%s was left behind", name)
		}
	}
}

func mustTable(t *testing.T, store *layout.Store, name string) [][]string {
	t.Helper()
	f, err := store.FS().Open(name)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(f)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(b)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func mustFloat(t *testing.T, text string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
