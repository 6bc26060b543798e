package train

import (
	"bytes"
	"context"
	"encoding/csv"
	"math"
	"strconv"
	"strings"
	"testing"

	"gdb/layout"
)

// TestCalibrate: the temperature is kept in the run; predictions are by it where that is asked for,
// evaluations say what it changes, and weights of another epoch have none.
func TestCalibrate(t *testing.T) {
	g := planted(false)
	s, c := mustBuild(t, g), testConfig()
	c.Epochs = 2 // before all predictions are right
	mustRun(t, s, c)
	asked := PredictConfig{Run: "t", Split: "test", Probabilities: true, Calibrated: true,
		Out: "none.csv"}
	if err := Predict(t.Context(), s, mustDevice(t), asked); err == nil ||
		!strings.Contains(err.Error(), "--calibrate fits one") {
		t.Errorf("without a temperature: %v", err)
	}
	p := mustOpenPredictor(t, s, false)
	if _, err := p.Predict(t.Context(), []layout.NodeID{1}, true); err == nil ||
		!strings.Contains(err.Error(), "--calibrate fits one") {
		t.Errorf("served without a temperature: %v", err)
	}
	_, err := p.PredictUnseen(t.Context(), []UnseenNode{{Calibrated: true}})
	if err == nil || !strings.Contains(err.Error(), "--calibrate fits one") || p.Close() != nil {
		t.Errorf("a new node without a temperature: %v", err)
	}
	if err := PredictNodes(t.Context(), s, mustDevice(t), "t", true, []layout.NodeID{1}, 0,
		nil); err == nil || !strings.Contains(err.Error(), "--calibrate fits one") {
		t.Errorf("asked without a temperature: %v", err)
	}
	r, err := Calibrate(t.Context(), s, mustDevice(t), EvalConfig{Run: "t"})
	if err != nil {
		t.Fatal(err)
	}
	if !(r.LossAfter < r.LossBefore) || r.Nodes != uint64(len(g.Splits["val"])) {
		t.Errorf("fitted %+v", r)
	}
	rows := func(p PredictConfig, path string) [][]string {
		all, err := csv.NewReader(bytes.NewReader(mustPredict(t, s, p, path))).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		return all[1:]
	}
	number := func(text string) float64 {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	all := rows(PredictConfig{Run: "t", Probabilities: true, Calibrated: true}, "all.csv")
	comparePredictor(t, s, all)
	without := rows(PredictConfig{Run: "t", Split: "test", Probabilities: true}, "a.csv")
	for i, row := range rows(asked, "b.csv") {
		if row[1] != without[i][1] {
			t.Errorf("node %s is %s, and was %s", row[0], row[1], without[i][1])
		}
		for k := range row[3:] { // odds to the power of 1/temperature
			odds := math.Log(number(row[k+3]) / number(row[2]))
			was := math.Log(number(without[i][k+3]) / number(without[i][2]))
			if math.Abs(odds-was/r.Temperature) > 1e-3*(1+math.Abs(was)) {
				t.Errorf("node %s: odds %g, want %g / %g", row[0], odds, was, r.Temperature)
			}
		}
	}
	eval, err := Evaluate(context.Background(), s, mustDevice(t), EvalConfig{Run: "t"})
	if err != nil {
		t.Fatal(err)
	}
	if c := eval.Curves.Calibrated; c == nil || c.Temperature != r.Temperature ||
		c.ECE == eval.Curves.ECE {
		t.Errorf("the evaluation says %+v", c)
	}
	r.Epoch++ // as of weights that came later
	if tr, err := openTrained(t.Context(), s, mustDevice(t), opening{run: "t"}); err != nil {
		t.Fatal(err)
	} else if err = r.Write(tr.dir); err != nil || tr.Close() != nil {
		t.Fatal(err)
	}
	eval, err = Evaluate(context.Background(), s, mustDevice(t), EvalConfig{Run: "t"})
	if err != nil || eval.Curves.Calibrated != nil {
		t.Errorf("a temperature of other weights is used: %v", err)
	}
}

// comparePredictor compares what is predicted by a temperature with rows of Predict: again and
// again, of single nodes, and without it, after it was asked for.
func comparePredictor(t *testing.T, s *layout.Store, want [][]string) {
	t.Helper()
	p := mustOpenPredictor(t, s, false)
	defer p.Close()
	nodes := []layout.NodeID{3, 9, 14}
	got, err := p.Predict(t.Context(), nodes, true)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := p.Predict(t.Context(), nodes, false)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range nodes {
		if text := strings.Join(want[v][1:], ","); rowText(got[i]) != text ||
			rowText(plain[i]) == text {
			t.Errorf("node %d is %s, and plainly %s, want %s", v, rowText(got[i]),
				rowText(plain[i]), text)
		}
	}
	var at int
	err = PredictNodes(t.Context(), s, mustDevice(t), "t", true, nodes, 0,
		func(_ layout.NodeID, prediction any, probability float64) error {
			if probability != got[at].Probability(p.Labels()) || prediction != got[at].Value {
				t.Errorf("node %d is %v with %v, want %+v", nodes[at], prediction, probability,
					got[at])
			}
			at++
			return nil
		})
	if err != nil || at != len(nodes) {
		t.Errorf("%d nodes, %v", at, err)
	}
}
