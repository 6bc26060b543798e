package train

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"gdb/sample"
	"gdb/sample/loader"
	"gdb/train/runs"
	"gdb/train/task"

	"github.com/RoaringBitmap/roaring/v2"
)

// splits are the nodes that a run trains on and is evaluated on.
type splits struct {
	train     []sample.NodeID
	val, test *roaring.Bitmap // test is nil if the store has none
	sets      runs.Sets       // sums of the store's splits
	evalMost  int64           // number of nodes of the larger of val and test
}

// loadSplits loads the splits of a store. If it has no val, some nodes of train validate, unless
// nothing is evaluated.
func loadSplits(ctx context.Context, c *checked, in *inputs) (*splits, error) {
	all, err := in.loadSets(ctx, &c.cfg, runs.SetNames, c.cfg.Split)
	if err != nil {
		return nil, err
	}
	s := &splits{sets: setsOf(all)}
	train, val, test := &all[0], &all[1], &all[2]
	if s.train, err = train.Nodes("train", in.Budget); err != nil {
		return nil, err
	}
	train.Set = nil // its nodes are listed
	s.val, err = val.Set, val.Err
	switch {
	case isMissing(err) && c.alone:
		s.val, err = roaring.New(), nil
	case errors.Is(err, loader.ErrNoSplit):
		err = s.takeVal(c, in, "the store has no val")
	case errors.Is(err, loader.ErrEmptySplit):
		err = s.takeVal(c, in, "the store's val has no labeled node")
	}
	if err != nil {
		return nil, err
	}
	s.evalMost = int64(s.val.GetCardinality())
	if s.test = test.Set; isMissing(test.Err) {
		return s, nil // the result says that there is no test
	}
	if test.Err == nil {
		s.evalMost = max(s.evalMost, int64(s.test.GetCardinality()))
	}
	return s, test.Err
}

// loadSets loads splits of the store, or makes them by the times of seeds.
func (in *inputs) loadSets(ctx context.Context, c *Config, bases []string,
	column string) ([]loader.Split, error) {
	if c.SplitTimes != nil {
		return in.times.Splits(bases, c.SplitTimes, in.Budget)
	}
	return loader.LoadSplits(ctx, in.Store, bases, column, in.Budget)
}

// setsOf returns sums of the splits of runs.SetNames. Splits that the store lacks are left out.
func setsOf(splits []loader.Split) runs.Sets {
	sets := runs.Sets{}
	for i, s := range splits {
		if s.Err == nil {
			sets[runs.SetNames[i]] = runs.SumOf(s.Set)
		}
	}
	return sets
}

// isMissing reports whether err says that a split does not exist, or has no nodes.
func isMissing(err error) bool {
	return errors.Is(err, loader.ErrNoSplit) || errors.Is(err, loader.ErrEmptySplit)
}

// valShare sets how many nodes of train validate where the store has no val: one in valShare.
const valShare = 10

// takeVal takes validation nodes out of the nodes to train on, the same ones for the same seed. why
// is the reason that the user is told.
func (s *splits) takeVal(c *checked, in *inputs, why string) error {
	all := len(s.train)
	if err := in.Budget.Reserve("nodes to validate", int64(all)/valShare*8); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	s.val = roaring.New()
	kept := s.train[:0]
	rnd := rand.New(rand.NewPCG(c.cfg.Seed, valShare))
	for i, v := range s.train {
		if rnd.IntN(all-i) < (all+valShare-1)/valShare-int(s.val.GetCardinality()) {
			s.val.Add(uint32(v))
			continue
		}
		kept = append(kept, v)
	}
	if s.train = kept; len(kept) == 0 {
		return fmt.Errorf("train: %s, and too few nodes to train on to take some from: ingest "+
			"again with --split val=FILE, or with more nodes in train", why)
	}
	c.loop.Note(fmt.Sprintf("%s: %d of the %d nodes to train on validate", why,
		s.val.GetCardinality(), all))
	return nil
}

// learnLabels finds what the task has to know of the training nodes' labels: class weights, which
// it writes to the devices, or the scale of numbers, which it returns.
func learnLabels(ctx context.Context, in *inputs, s *splits, on *replicas) (*task.Scale, error) {
	if err := s.checkVal(ctx, in.Labels); err != nil {
		return nil, err
	}
	if c, ok := in.task.(*task.Classes); ok && c.Weights.Len() > 0 {
		w, err := task.Balanced(ctx, in.Labels, s.train)
		if err != nil {
			return nil, err
		}
		if err := on.useWeights(w); err != nil {
			return nil, err
		}
	}
	if !in.Labels.Numbers() {
		return nil, nil
	}
	scale, err := task.ScaleOf(ctx, in.Labels, s.train)
	return &scale, err
}

// valChunk is how many validation nodes are read at a time to find one with a label.
const valChunk = 4096

// checkVal returns an error if no node of val has a label, which would otherwise be found only
// after the first epoch. With multi-labels, splits have only labeled nodes.
func (s *splits) checkVal(ctx context.Context, labels *sample.Labels) error {
	if s.val.IsEmpty() || labels.Multi() {
		return nil
	}
	nodes, it := make([]uint32, valChunk), s.val.ManyIterator()
	classes, numbers := make([]int32, valChunk), make([]float32, valChunk)
	for n := it.NextMany(nodes); n > 0; n = it.NextMany(nodes) {
		ids := make([]sample.NodeID, n)
		for i, v := range nodes[:n] {
			ids[i] = sample.NodeID(v)
		}
		known := func(i int) bool { return classes[i] >= 0 }
		err := error(nil)
		if labels.Numbers() {
			known = func(i int) bool { return numbers[i] == numbers[i] }
			err = labels.Values(ctx, ids, numbers)
		} else {
			err = labels.Of(ctx, ids, classes)
		}
		if err != nil {
			return fmt.Errorf("read labels: %w", err)
		}
		for i := range ids {
			if known(i) {
				return nil
			}
		}
	}
	return fmt.Errorf("none of the %d nodes of val has a label, so nothing tells which epoch is "+
		"best: %w: label some of them, or ingest without a split val, and some nodes of train "+
		"validate", s.val.GetCardinality(), task.ErrNothing)
}
