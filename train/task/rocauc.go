package task

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gdb/internal/mem"
	"gdb/layout/ingest/extsort"

	"gdb/train/setting"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// ScoreBytes is the memory in which scores are sorted: 1.5 million of them. More go through files.
const ScoreBytes = 12 << 20

// Scores computes two areas of each class, exactly, and their means. That under the ROC curve is
// the chance that a node of the class has a higher score than a node that is not, where a tie
// counts half. That under the curve of precision over recall is the mean, over the nodes of the
// class, of the precision among all nodes that score as high: the average precision (Davis and
// Goadrich, "The Relationship Between Precision-Recall and ROC Curves"). Of two classes only the
// second is scored. It sorts a word for each node and class, in memory if all fit in ScoreBytes,
// else in files:
//
//	class (31) | score (32, falling, as an integer) | whether the node is of the class (1)
type Scores struct {
	words  []uint64
	arena  *mem.Arena
	sorter *extsort.Words // nil if words are enough
	opt    extsort.Options
}

// NewScores makes room for most words. dir is a directory for files, which is made if needed and
// removed by Close.
func NewScores(fs vfs.FS, dir string, budget *mem.Budget, most uint64) (*Scores, error) {
	s := &Scores{opt: extsort.Options{FS: fs, Dir: dir, Prefix: "scores", Width: 1,
		Memory: ScoreBytes, Budget: budget}}
	var err error
	if most <= ScoreBytes/8 {
		if s.arena, err = mem.NewArena(budget, "scores", int64(most*8)); err != nil {
			return nil, err
		}
		s.words = mem.View[uint64](s.arena.Bytes())[:0]
		return s, nil
	}
	if err := errors.Join(fs.RemoveAll(dir), fs.MkdirAll(dir, 0o755)); err != nil {
		return nil, fmt.Errorf("train: make %s for scores: %w", dir, err)
	}
	if s.sorter, err = extsort.NewWords(s.opt); err != nil {
		return nil, errors.Join(err, fs.RemoveAll(dir))
	}
	return s, nil
}

// Close frees the memory and removes the files.
func (s *Scores) Close() error {
	if s.sorter == nil {
		return s.arena.Free()
	}
	err := errors.Join(s.sorter.Abort(), s.opt.FS.RemoveAll(s.opt.Dir))
	if err != nil {
		return fmt.Errorf("train: remove scores: %w", err)
	}
	return nil
}

// add records the score of a node for a class; of says whether the node has the class.
func (s *Scores) add(class int, score float32, of bool) error {
	if math.IsNaN(float64(score)) {
		return fmt.Errorf("a score is not a number: %w: lower --lr", setting.ErrDiverged)
	}
	word := uint64(class)<<33 | uint64(^ordered(score))<<1
	if of {
		word |= 1
	}
	if s.sorter == nil {
		s.words = append(s.words, word)
		return nil
	}
	return s.sorter.Add([]uint64{word})
}

// ordered maps numbers to integers in the same order. Both zeros map to one integer.
func ordered(x float32) uint32 {
	b := math.Float32bits(x)
	if x == 0 {
		b = 0
	}
	if b>>31 == 1 {
		return ^b
	}
	return b | 1<<31
}

// multi adds a node of multi-labels. Its logits are the scores of the labels that are known.
func (s *Scores) multi(logits, truth []float32) error {
	for k, v := range logits {
		if truth[k] != truth[k] {
			continue
		}
		if err := s.add(k, v, truth[k] > 0); err != nil {
			return err
		}
	}
	return nil
}

// class adds a node with one class. The score of a class is the logarithm of its odds: the logit
// minus the logarithm of the sum of the others' exponentials. It orders nodes as the probability
// does, which would round to 1 for many. Of two classes the second is added, since the odds of the
// first are the inverse. A node without a label is not added.
func (s *Scores) class(logits []float32, label int32) error {
	if label < 0 {
		return nil
	}
	top := int(argmax(logits))
	sum, rest, second := 0.0, 0.0, math.Inf(-1)
	for k, v := range logits {
		sum += math.Exp(float64(v - logits[top]))
		if k != top {
			second = max(second, float64(v))
		}
	}
	for k, v := range logits {
		if k != top {
			rest += math.Exp(float64(v) - second)
		}
	}
	for k, v := range logits {
		if k == 0 && len(logits) == 2 {
			continue
		}
		odds := float64(v) - second - math.Log(rest)
		if k != top { // the largest is part of what is left, so that little is cancelled
			odds = float64(v-logits[top]) - math.Log(sum-math.Exp(float64(v-logits[top])))
		}
		if err := s.add(k, float32(odds), int32(k) == label); err != nil {
			return err
		}
	}
	return nil
}

// means sorts the scores and returns the mean areas over the classes that some nodes have and
// others do not.
func (s *Scores) means(ctx context.Context) (roc, pr float64, err error) {
	a := &areas{}
	if s.sorter == nil {
		slices.Sort(s.words)
		a.add(s.words)
		return a.means()
	}
	runs, err := s.sorter.Finish()
	if err != nil {
		return 0, 0, fmt.Errorf("train: sort scores: %w", err)
	}
	err = extsort.Merge(ctx, s.opt, runs, func(words []uint64) error {
		a.add(words)
		return nil
	})
	if err != nil {
		return 0, 0, fmt.Errorf("train: sort scores: %w", err)
	}
	return a.means()
}

// areas computes areas from sorted words. Twice the area under the ROC curve times positives times
// negatives is an integer: each negative counts two for each positive above it and one for each
// positive of equal score. It is at most 2^63.
type areas struct {
	last     uint64 // the last word without its lowest bit: class and score
	some     bool
	pos, neg uint64 // nodes of the class, or not, with higher scores than the last
	tiedPos  uint64 // nodes with the last score
	tiedNeg  uint64
	twice    uint64
	precise  float64 // sum over the positives of the precision at their scores
	roc, pr  float64 // sums over the classes
	classes  int
}

func (a *areas) add(words []uint64) {
	for _, w := range words {
		if key := w &^ 1; !a.some || key != a.last {
			a.endScore()
			if a.some && key>>33 != a.last>>33 {
				a.endClass()
			}
			a.last, a.some = key, true
		}
		a.tiedPos += w & 1
		a.tiedNeg += 1 - w&1
	}
}

func (a *areas) endScore() {
	a.twice += a.tiedNeg * (2*a.pos + a.tiedPos)
	a.pos, a.neg = a.pos+a.tiedPos, a.neg+a.tiedNeg
	if a.tiedPos > 0 {
		a.precise += float64(a.tiedPos) * float64(a.pos) / float64(a.pos+a.neg)
	}
	a.tiedPos, a.tiedNeg = 0, 0
}

func (a *areas) endClass() {
	if a.pos > 0 && a.neg > 0 {
		a.roc += float64(a.twice) / (2 * float64(a.pos) * float64(a.neg))
		a.pr += a.precise / float64(a.pos)
		a.classes++
	}
	a.pos, a.neg, a.twice, a.precise = 0, 0, 0, 0
}

func (a *areas) means() (roc, pr float64, err error) {
	a.endScore()
	a.endClass()
	if a.classes == 0 {
		return 0, 0, fmt.Errorf("%w: roc-auc and pr-auc need a class that some nodes have and "+
			"some have not", ErrNothing)
	}
	return a.roc / float64(a.classes), a.pr / float64(a.classes), nil
}
