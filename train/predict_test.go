package train

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gdb/internal/tables"
	"gdb/layout"
	"gdb/layout/layouttest"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/parquet-go/parquet-go"
)

func mustPredict(t *testing.T, s *layout.Store, c PredictConfig, path string) []byte {
	t.Helper()
	c.Out = path
	if err := Predict(context.Background(), s, mustDevice(t), c); err != nil {
		t.Fatal(err)
	}
	b, err := readAll(s.FS(), path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.FS().Stat(path + ".tmp"); err == nil {
		t.Error("the temporary file was left behind")
	}
	return b
}

func TestPredictMatchesTheTest(t *testing.T) {
	g := planted(false)
	s := mustBuild(t, g)
	res := mustRun(t, s, testConfig())
	b := mustPredict(t, s, PredictConfig{Run: "t", Split: "test", Probabilities: true}, "out.csv")
	rows, err := csv.NewReader(bytes.NewReader(b)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(rows[0], "|"); got != "id|prediction|p:ash|p:birch|p:cedar|p:fir; red" {
		t.Fatalf("columns %s", got)
	}
	right := 0
	for i, row := range rows[1:] {
		v, err := strconv.Atoi(row[0])
		if err != nil || layout.NodeID(v) != g.Splits["test"][i] {
			t.Fatalf("row %d is of node %s, want %d", i, row[0], g.Splits["test"][i])
		}
		sum, best := 0.0, 0
		for k, text := range row[2:] {
			p, err := strconv.ParseFloat(text, 32)
			if err != nil {
				t.Fatal(err)
			}
			if top, _ := strconv.ParseFloat(row[2+best], 32); p > top {
				best = k
			}
			sum += p
		}
		if math.Abs(sum-1) > 1e-5 || row[1] != g.Classes[best] {
			t.Fatalf("row %v: probabilities sum to %g, the largest is of %s", row, sum,
				g.Classes[best])
		}
		if g.Labels[v] >= 0 && row[1] == g.Classes[g.Labels[v]] {
			right++
		}
	}
	labeled := 0
	for _, v := range g.Splits["test"] {
		if g.Labels[v] >= 0 {
			labeled++
		}
	}
	if got := float64(right) / float64(labeled); got != *res.Test {
		t.Errorf("predictions are right for %g, the test said %g", got, *res.Test)
	}
	eval, err := Evaluate(context.Background(), s, mustDevice(t), EvalConfig{Run: "t"})
	if err != nil || eval.Value != *res.Test || eval.Nodes != uint64(labeled) {
		t.Errorf("evaluation %+v, %v; the test said %g over %d", eval, err, *res.Test, labeled)
	}
}

// TestPredictInLittleMemory holds predictions with all in memory against those with hidden states
// in files, which a small memory forces.
// TestPredictNodes holds that single nodes get what Predict gives them, in any order.
func TestPredictNodes(t *testing.T) {
	s := mustBuild(t, planted(false))
	mustRun(t, s, testConfig())
	b := mustPredict(t, s, PredictConfig{Run: "t", Probabilities: true}, "out.csv")
	rows, err := csv.NewReader(bytes.NewReader(b)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var got []layout.NodeID
	err = PredictNodes(t.Context(), s, mustDevice(t), "t", false, []layout.NodeID{9, 3, 9}, 0,
		func(v layout.NodeID, prediction any, probability float64) error {
			got = append(got, v)
			row := rows[1+v]
			at := slices.Index(rows[0], "p:"+row[1])
			want, err := strconv.ParseFloat(row[at], 32)
			if prediction != row[1] || err != nil || float32(probability) != float32(want) {
				t.Errorf("node %d is %v with %v, want %s", v, prediction, probability, row)
			}
			return nil
		})
	if err != nil || !slices.Equal(got, []layout.NodeID{3, 9}) {
		t.Errorf("predicted %v, %v", got, err)
	}
}

func TestPredictInLittleMemory(t *testing.T) {
	s := mustBuild(t, planted(false))
	mustRun(t, s, testConfig())
	want := mustPredict(t, s, PredictConfig{Run: "t"}, "all.csv")
	tr, err := openTrained(t.Context(), s, mustDevice(t), opening{run: "t"})
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	p, err := tr.in.task.Predictions(false, false)
	if err != nil {
		t.Fatal(err)
	}
	table, err := tables.NewWriter(&got, ".csv", append([]tables.Column{{Name: "id",
		Kind: tables.Int64}}, p.Columns()...), 0)
	if err != nil {
		t.Fatal(err)
	}
	f := tr.inference(tr.in, newScratch(tr.in, tr.dir, "x-"))
	f.OnDisk, f.RowsMax = true, 70
	err = f.Run(context.Background(), nil, func(nodes []layout.NodeID, y []float32) error {
		for i, v := range nodes {
			table.Int64(int64(v))
			p.Write(table, y[i*4:i*4+4])
			if err := table.EndRow(); err != nil {
				return err
			}
		}
		return nil
	})
	if err := errors.Join(err, table.Close(), tr.Close()); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Error("predictions differ when hidden states are in files")
	}
	names, err := s.FS().List(s.Path("runs", "t"))
	if err != nil || strings.Contains(fmt.Sprint(names), "x-") {
		t.Errorf("hidden states were left behind: %v, %v", names, err)
	}
}

func TestParquet(t *testing.T) {
	s := mustBuild(t, planted(true))
	mustRun(t, s, testConfig())
	want, err := csv.NewReader(bytes.NewReader(
		mustPredict(t, s, PredictConfig{Run: "t", Probabilities: true}, "out.csv"))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	b := mustPredict(t, s, PredictConfig{Run: "t", Probabilities: true}, "out.parquet")
	type row struct {
		ID         string  `parquet:"id"`
		Prediction string  `parquet:"prediction"`
		Birch      float32 `parquet:"p:birch"`
	}
	rows, err := parquet.Read[row](bytes.NewReader(b), int64(len(b)))
	if err != nil || len(rows) != len(want)-1 {
		t.Fatalf("%d rows, want %d, %v", len(rows), len(want)-1, err)
	}
	for i, r := range rows {
		p, err := strconv.ParseFloat(want[i+1][3], 32)
		if err != nil || r.ID != want[i+1][0] || r.Prediction != want[i+1][1] ||
			r.Birch != float32(p) {
			t.Fatalf("row %+v, want %v, %v", r, want[i+1], err)
		}
	}
}

func TestUnknownFormat(t *testing.T) {
	err := Predict(t.Context(), nil, nil, PredictConfig{Out: "out.xlsx"})
	if err == nil || !strings.Contains(err.Error(), "use .csv, .parquet or .npy") {
		t.Error(err)
	}
}

// TestFailedPredictionLeavesNothing has the first write to the file fail.
func TestFailedPredictionLeavesNothing(t *testing.T) {
	g := planted(false)
	broken := errors.New("no more")
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileWrite && strings.HasPrefix(op.Path, "out.csv") {
			return broken
		}
		return nil
	}))
	s := layouttest.Build(t, fs, "s", g)
	mustRun(t, s, testConfig())
	err := Predict(t.Context(), s, mustDevice(t), PredictConfig{Run: "t", Out: "out.csv"})
	if !errors.Is(err, broken) {
		t.Error(err)
	}
	for _, name := range []string{"out.csv", "out.csv.tmp"} {
		if _, err := s.FS().Stat(name); err == nil {
			t.Errorf("%s was left behind", name)
		}
	}
}

func TestEvaluateSampledWithAllIsExact(t *testing.T) {
	s := mustBuild(t, planted(false))
	c := testConfig()
	c.Fanout = []int{-1, -1}
	mustRun(t, s, c)
	exact, err := Evaluate(context.Background(), s, mustDevice(t), EvalConfig{Run: "t"})
	if err != nil {
		t.Fatal(err)
	}
	sampled, err := Evaluate(context.Background(), s, mustDevice(t),
		EvalConfig{Run: "t", Mode: "sampled"})
	if err != nil || !reflect.DeepEqual(exact, sampled) {
		t.Errorf("exact %+v, sampled %+v, %v", exact, sampled, err)
	}
	_, err = Evaluate(context.Background(), s, mustDevice(t),
		EvalConfig{Run: "t", Split: "nope"})
	if err == nil || !strings.Contains(err.Error(), `"nope"`) {
		t.Errorf("an unknown split: %v", err)
	}
}
