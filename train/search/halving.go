package search

import (
	"context"
	"slices"
)

const (
	// share is the part of the trials that goes on after a rung, and how many times as many epochs
	// they have trained after the next.
	share = 3
	// finalists is how many trials train to the end: the best after few epochs need not be the
	// best at the end.
	finalists = 3
)

// Rung is a part of a search: its trials train until each has trained for Epochs in all.
type Rung struct{ Trials, Epochs int }

// Rungs returns the parts of a search of some trials, of which the last ones train for all epochs.
// Each part ends with an evaluation: every is how many epochs lie between two.
func Rungs(trials, epochs, every int) []Rung {
	rungs := []Rung{{Trials: trials, Epochs: epochs}}
	for n := trials; n > finalists; {
		n = (n + share - 1) / share
		n = max(n, finalists)
		rungs = append(rungs, Rung{Trials: n, Epochs: epochs})
	}
	for i := len(rungs) - 2; i >= 0; i-- {
		e := (rungs[i+1].Epochs + share - 1) / share
		rungs[i].Epochs = min((e+every-1)/every*every, epochs)
	}
	return slices.CompactFunc(rungs, func(a, b Rung) bool { return a.Epochs == b.Epochs })
}

// Cost returns how many epochs the rungs take in all, if no trial ends earlier.
func Cost(rungs []Rung) (epochs int) {
	before := 0
	for _, r := range rungs {
		epochs += r.Trials * (r.Epochs - before)
		before = r.Epochs
	}
	return epochs
}

// Outcome is what a trial reached.
type Outcome struct {
	// Trial is its number, from 0.
	Trial  int
	Epochs int // that it has trained
	// Best is the best value of the metric, and BestEpoch its epoch; 0 if there is none yet.
	Best      float64
	BestEpoch int
	// Failed says why the trial ended without one that counts; "" if it did not.
	Failed string
}

// Trainer trains trials.
type Trainer interface {
	// Train trains trials until each has trained for a number of epochs, or ends earlier, and tells
	// what each reached, in any order. An error ends the search; a trial that fails by its own
	// settings is an outcome.
	Train(ctx context.Context, trials []int, epochs int, told func(Outcome)) error
	// Better reports whether a value of the metric is better than another.
	Better(a, b float64) bool
}

// Run trains trials by rungs and returns the outcome of each, the best first: those that trained
// longer stand before others. told is called as a rung begins, and after each trial of it.
func Run(ctx context.Context, rungs []Rung, t Trainer,
	told func(Rung, *Outcome)) ([]Outcome, error) {
	all := make([]Outcome, rungs[0].Trials)
	for i := range all {
		all[i].Trial = i
	}
	for k, r := range rungs {
		n := r.Trials
		if k > 0 {
			n = min(n, trained(all))
		}
		told(Rung{Trials: n, Epochs: r.Epochs}, nil)
		going := all[:n]
		slices.SortFunc(going, func(a, b Outcome) int { return a.Trial - b.Trial })
		var trials []int
		for _, o := range going {
			trials = append(trials, o.Trial)
		}
		if err := t.Train(ctx, trials, r.Epochs, func(o Outcome) {
			going[slices.Index(trials, o.Trial)] = o
			told(r, &o)
		}); err != nil {
			return all, err
		}
		sortBest(going, t)
	}
	return all, nil
}

// trained counts the trials that did not fail: they stand before those that did.
func trained(all []Outcome) (n int) {
	for n < len(all) && all[n].Failed == "" {
		n++
	}
	return n
}

// sortBest sorts the best first, and what failed last. Of equal ones the first trial stands first.
func sortBest(all []Outcome, t Trainer) {
	rank := func(o Outcome) int {
		switch {
		case o.Failed != "":
			return 2
		case o.BestEpoch == 0:
			return 1
		}
		return 0
	}
	slices.SortStableFunc(all, func(a, b Outcome) int {
		switch {
		case rank(a) != rank(b):
			return rank(a) - rank(b)
		case rank(a) > 0 || a.Best == b.Best:
			return a.Trial - b.Trial
		case t.Better(a.Best, b.Best):
			return -1
		}
		return 1
	})
}
