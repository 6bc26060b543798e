package train

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"gdb/layout"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/parquet-go/parquet-go"
)

func mustPredict(t *testing.T, s *layout.Store, c PredictConfig, path string) []byte {
	t.Helper()
	w, err := NewPredictionWriter(s.FS(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := Predict(context.Background(), s, mustDevice(t), c, w); err != nil {
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
func TestPredictInLittleMemory(t *testing.T) {
	s := mustBuild(t, planted(false))
	mustRun(t, s, testConfig())
	want := mustPredict(t, s, PredictConfig{Run: "t"}, "all.csv")
	tr, err := openTrained(t.Context(), s, mustDevice(t), opening{run: "t"})
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	f := tr.in.inference(tr.be, tr.model, tr.scratchDir("x-"))
	f.OnDisk, f.RowsMax = true, 70
	got.WriteString("id,prediction\n")
	err = f.Run(context.Background(), nil, func(nodes []layout.NodeID, y []float32) error {
		for i, v := range nodes {
			fmt.Fprintf(&got, "%d,%s\n", v, tr.in.task.Label(y[i*4:i*4+4]))
		}
		return nil
	})
	if err := errors.Join(err, tr.Close()); err != nil {
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

func TestNpy(t *testing.T) {
	fs := vfs.NewMem()
	for _, integers := range []bool{false, true} {
		h := PredictionHeader{Classes: []string{"0", "17"}, Probabilities: true, Nodes: 2,
			IntegerIDs: integers, LongestID: 3}
		p := &Predictions{IDs: []string{"7", "-12"}, Labels: []string{"17", "0"},
			Probabilities: []float32{0.25, 0.75, 1, 0}}
		want, width := "('id', '<i8'), ('prediction', '<i8'), ", 24
		if !integers {
			h.Classes, p.Labels, p.IDs = []string{"it's", "ü"}, []string{"ü", "it's"},
				[]string{"é1", "b"}
			want, width = "('id', '<U3'), ('prediction', '<U4'), ", 36
		}
		w := &predictionTable{outputFile: &outputFile{fs: fs, path: "p.npy"}}
		if err := errors.Join(w.Begin(h), w.Write(p), w.Commit()); err != nil {
			t.Fatal(err)
		}
		b, err := readAll(fs, "p.npy")
		if err != nil {
			t.Fatal(err)
		}
		n := 12 + int(binary.LittleEndian.Uint32(b[8:]))
		if n%64 != 0 || !strings.Contains(string(b[:n]), want) || len(b) != n+2*width ||
			!strings.Contains(string(b[:n]), "'shape': (2,)") {
			t.Errorf("%d bytes, header %q", len(b), b[:n])
		}
		if first := binary.LittleEndian.Uint32(b[n:]); integers && first != 7 ||
			!integers && first != 'é' {
			t.Errorf("the first record begins with %d", first)
		}
	}
}

func TestUnknownFormat(t *testing.T) {
	_, err := NewPredictionWriter(vfs.NewMem(), "out.xlsx")
	if err == nil || !strings.Contains(err.Error(), "use .csv, .parquet or .npy") {
		t.Error(err)
	}
}

// failingWriter fails in the middle.
type failingWriter struct {
	PredictionWriter
	left int
}

func (w *failingWriter) Write(p *Predictions) error {
	if w.left--; w.left < 0 {
		return io.ErrShortWrite
	}
	return w.PredictionWriter.Write(p)
}

func TestFailedPredictionLeavesNothing(t *testing.T) {
	s := mustBuild(t, planted(false))
	mustRun(t, s, testConfig())
	w, err := NewPredictionWriter(s.FS(), "out.csv")
	if err != nil {
		t.Fatal(err)
	}
	err = Predict(context.Background(), s, mustDevice(t), PredictConfig{Run: "t"},
		&failingWriter{PredictionWriter: w})
	if !errors.Is(err, io.ErrShortWrite) {
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
