package train

import (
	"bytes"
	"encoding/csv"
	"math"
	"slices"
	"strconv"
	"testing"

	"gdb/layout"

	"github.com/RoaringBitmap/roaring/v2"
)

// mustEmbed is the table that Embed writes.
func mustEmbed(t *testing.T, s *layout.Store, run string) [][]string {
	t.Helper()
	err := Embed(t.Context(), s, mustDevice(t), EmbedConfig{Run: run, Out: run + ".csv"})
	if err != nil {
		t.Fatal(err)
	}
	b, err := readAll(s.FS(), run+".csv")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(b)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestEmbed holds that every node has a vector of the last hidden layer, after its activation, and
// that a model of one layer gives what it predicts from.
func TestEmbed(t *testing.T) {
	g := planted(false)
	s := mustBuild(t, g)
	c := testConfig()
	mustRun(t, s, c)
	rows := mustEmbed(t, s, "t")
	if len(rows) != 1+g.Nodes || len(rows[0]) != 1+c.Hidden {
		t.Fatalf("%d rows of %d columns, want %d nodes of %d values", len(rows)-1, len(rows[0]),
			g.Nodes, c.Hidden)
	}
	positive := 0
	for i, row := range rows[1:] {
		if row[0] != strconv.Itoa(i) {
			t.Fatalf("row %d is of node %s", i, row[0])
		}
		for _, text := range row[1:] {
			v, err := strconv.ParseFloat(text, 32)
			if err != nil || v < 0 {
				t.Fatalf("row %d has %q: the last hidden layer ends with ReLU", i, text)
			}
			if v > 0 {
				positive++
			}
		}
	}
	if positive == 0 {
		t.Fatal("all vectors are zeros")
	}
	c.Run, c.Model, c.Fanout = "one", "sgc", []int{10}
	mustRun(t, s, c)
	rows = mustEmbed(t, s, "one")
	predicted, err := csv.NewReader(bytes.NewReader(mustPredict(t, s, PredictConfig{Run: "one",
		Probabilities: true}, "p.csv"))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range rows[1:] {
		sum, exps := 0.0, make([]float64, len(row)-1)
		for k, text := range row[1:] {
			v, err := strconv.ParseFloat(text, 32)
			if err != nil {
				t.Fatal(err)
			}
			exps[k] = math.Exp(v)
			sum += exps[k]
		}
		for k, e := range exps {
			p, err := strconv.ParseFloat(predicted[1+i][2+k], 32)
			if err != nil || math.Abs(p-e/sum) > 1e-4 {
				t.Fatalf("node %d, class %d: predicted %v, the vector says %v", i, k, p, e/sum)
			}
		}
	}
}

// TestEmbedNodes gives some nodes the vectors that Embed writes of them, and no others, whether
// the rest of the graph is needed for them or not.
func TestEmbedNodes(t *testing.T) {
	g := planted(false)
	s := mustBuild(t, g)
	mustRun(t, s, testConfig())
	rows := mustEmbed(t, s, "t")[1:]
	half := roaring.New()
	half.AddRange(0, uint64(g.Nodes/2))
	for _, nodes := range []*roaring.Bitmap{roaring.BitmapOf(0, 7, uint32(g.Nodes-1)), half} {
		var got []uint32
		err := EmbedNodes(t.Context(), s, mustDevice(t), EmbedConfig{Run: "t"}, nodes,
			func(v layout.NodeID, row []float32) {
				got = append(got, uint32(v))
				for k, x := range row {
					want, err := strconv.ParseFloat(rows[v][1+k], 32)
					if err != nil || x != float32(want) {
						t.Errorf("node %d has %g in column %d, want %s", v, x, k, rows[v][1+k])
					}
				}
			})
		if err != nil || !slices.Equal(got, nodes.ToArray()) {
			t.Errorf("%v: nodes %d, want %d", err, got, nodes.ToArray())
		}
	}
}
