package task

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"gdb/internal/mem"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// plainROCAUC is the definition: all pairs of a node of the class and a node that is not.
func plainROCAUC(score [][]float64, of [][]bool) (float64, bool) {
	sum, classes := 0.0, 0
	for k := range score[0] {
		won, pairs := 0.0, 0
		for i := range score {
			for j := range score {
				if !of[i][k] || of[j][k] {
					continue
				}
				pairs++
				switch {
				case score[i][k] > score[j][k]:
					won++
				case score[i][k] == score[j][k]:
					won += 0.5
				}
			}
		}
		if pairs > 0 {
			sum, classes = sum+won/float64(pairs), classes+1
		}
	}
	return sum / float64(classes), classes > 0
}

// plainPRAUC is the definition: the mean over nodes of a class of the precision at their scores.
func plainPRAUC(score [][]float64, of [][]bool) float64 {
	sum, classes := 0.0, 0
	for k := range score[0] {
		precise, positives := 0.0, 0
		for i := range score {
			if !of[i][k] {
				continue
			}
			hit, said := 0, 0
			for j := range score {
				if score[j][k] >= score[i][k] {
					said++
					if of[j][k] {
						hit++
					}
				}
			}
			precise, positives = precise+float64(hit)/float64(said), positives+1
		}
		if positives > 0 && positives < len(score) {
			sum, classes = sum+precise/float64(positives), classes+1
		}
	}
	return sum / float64(classes)
}

// TestROCAUC compares with the definition, in memory and through files.
func TestROCAUC(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for trial := range 40 {
		nodes, classes := 1+r.IntN(60), 1+r.IntN(5)
		most := uint64(nodes * classes)
		if trial%2 == 1 {
			most = math.MaxUint64 // as if there were too many for memory
		}
		fs := vfs.NewMem()
		s, err := NewScores(fs, "scores", mem.NewBudget(0), most)
		if err != nil {
			t.Fatal(err)
		}
		score, of := make([][]float64, nodes), make([][]bool, nodes)
		for i := range nodes {
			logits, truth := make([]float32, classes), make([]float32, classes)
			for k := range classes {
				logits[k] = float32(r.IntN(9)-4) / 4 // ties, both signs, zero
				if logits[k] == 0 && r.IntN(2) == 0 {
					logits[k] = float32(math.Copysign(0, -1))
				}
				truth[k] = float32(r.IntN(2 + k))
				score[i] = append(score[i], float64(logits[k]))
				of[i] = append(of[i], truth[k] > 0)
			}
			if err := s.multi(logits, truth); err != nil {
				t.Fatal(err)
			}
		}
		want, some := plainROCAUC(score, of)
		got, pr, err := s.means(context.Background())
		wantPR := plainPRAUC(score, of)
		if some && (err != nil || math.Abs(got-want) > 1e-12) {
			t.Errorf("%d nodes, %d classes: %g, want %g, %v", nodes, classes, got, want, err)
		}
		if some && math.Abs(pr-wantPR) > 1e-12 {
			t.Errorf("%d nodes, %d classes: precision %g, want %g", nodes, classes, pr, wantPR)
		}
		if !some && !errors.Is(err, ErrNothing) {
			t.Errorf("no class with both outcomes: %g, %v", got, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := fs.Stat("scores"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("files were left behind: %v", err)
		}
	}
}

// TestROCAUCOfClasses scores one class a node as its probability does.
func TestROCAUCOfClasses(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for _, classes := range []int{2, 4} {
		checkScoresOf(t, r, classes)
	}
}

func checkScoresOf(t *testing.T, r *rand.Rand, classes int) {
	const nodes = 80
	s, err := NewScores(vfs.NewMem(), "scores", mem.NewBudget(0), uint64(nodes*classes))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var score [][]float64
	var of [][]bool
	for range nodes {
		logits, label := make([]float32, classes), int32(r.IntN(classes+1))-1
		sum := 0.0
		for k := range logits {
			logits[k] = float32(r.NormFloat64())
			sum += math.Exp(float64(logits[k]))
		}
		if err := s.class(logits, label); err != nil {
			t.Fatal(err)
		}
		if label < 0 {
			continue
		}
		var p []float64
		var is []bool
		for k, v := range logits {
			p, is = append(p, math.Exp(float64(v))/sum), append(is, int32(k) == label)
		}
		if classes == 2 { // the second class stands for both
			p, is = p[1:], is[1:]
		}
		score, of = append(score, p), append(of, is)
	}
	want, _ := plainROCAUC(score, of)
	got, pr, err := s.means(context.Background())
	if err != nil || math.Abs(got-want) > 1e-12 || math.Abs(pr-plainPRAUC(score, of)) > 1e-12 {
		t.Errorf("%d classes: %g, want %g; %g, want %g; %v", classes, got, want, pr,
			plainPRAUC(score, of), err)
	}
	bad := []float32{1, float32(math.NaN()), 0, 0}[:classes]
	if err := s.class(bad, 0); err == nil || s.multi(bad, make([]float32, classes)) == nil {
		t.Error("a score that is no number is taken")
	}
}
