package search

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

func TestRungs(t *testing.T) {
	for _, c := range []struct {
		trials, epochs, every int
		want                  string
		cost                  int
	}{
		{20, 60, 1, "[{20 7} {7 20} {3 60}]", 140 + 7*13 + 3*40},
		{9, 30, 1, "[{9 10} {3 30}]", 90 + 60},
		{27, 30, 4, "[{27 4} {9 12} {3 30}]", 27*4 + 9*8 + 3*18},
		{4, 30, 1, "[{4 10} {3 30}]", 40 + 60},
		{3, 30, 1, "[{3 30}]", 90},
		{20, 1, 1, "[{20 1}]", 20},
		{20, 2, 1, "[{20 1} {3 2}]", 23},
		{20, 10, 10, "[{20 10}]", 200},
	} {
		rungs := Rungs(c.trials, c.epochs, c.every)
		if got := fmt.Sprint(rungs); got != c.want || Cost(rungs) != c.cost {
			t.Errorf("%d trials, %d epochs, evaluated every %d: %s of %d epochs, want %s of %d",
				c.trials, c.epochs, c.every, got, Cost(rungs), c.want, c.cost)
		}
	}
}

// curves are trials whose value in an epoch is known: Values[trial] from epoch From[trial] on.
type curves struct {
	value, late []float64 // before epoch 10, and from then on
	fails       map[int]string
	less        bool // less is better
	log         []string
	err         error
}

func (c *curves) Better(a, b float64) bool { return a > b != c.less }

func (c *curves) Train(_ context.Context, trials []int, epochs int, told func(Outcome)) error {
	for _, trial := range trials {
		o, err := c.train(trial, epochs)
		if err != nil {
			return err
		}
		told(o)
	}
	return nil
}

func (c *curves) train(trial, epochs int) (Outcome, error) {
	c.log = append(c.log, fmt.Sprintf("%d:%d", trial, epochs))
	o := Outcome{Trial: trial, Epochs: epochs, Best: c.value[trial], BestEpoch: epochs}
	if epochs >= 10 {
		o.Best = c.late[trial]
	}
	if why := c.fails[trial]; why != "" {
		o = Outcome{Trial: trial, Failed: why}
	}
	return o, c.err
}

// run returns the trials from the best on, and what was trained.
func (c *curves) run(t *testing.T, rungs []Rung) (order, trained string) {
	t.Helper()
	all, err := Run(t.Context(), rungs, c, func(Rung, *Outcome) {})
	if !errors.Is(err, c.err) {
		t.Fatal(err)
	}
	var numbers []int
	for _, o := range all {
		numbers = append(numbers, o.Trial)
	}
	return fmt.Sprint(numbers), fmt.Sprint(c.log)
}

func TestRun(t *testing.T) {
	rungs := []Rung{{5, 3}, {3, 9}, {2, 27}}
	c := &curves{value: []float64{.1, .5, .4, .2, .3}, late: []float64{.9, .6, .7, .9, .9}}
	order, trained := c.run(t, rungs)
	if order != "[2 1 4 3 0]" || trained != "[0:3 1:3 2:3 3:3 4:3 1:9 2:9 4:9 1:27 2:27]" {
		t.Errorf("order %s, trained %s", order, trained)
	}
	c = &curves{value: c.value, late: c.late, less: true}
	if order, trained = c.run(t, rungs); order != "[0 3 4 2 1]" {
		t.Errorf("less is better: order %s, trained %s", order, trained)
	}
}

// TestRunWithoutValues: a trial that was not evaluated yet stands behind all that were, also where
// less is better.
func TestRunWithoutValues(t *testing.T) {
	all := []Outcome{{Trial: 0}, {Trial: 1, Failed: "diverged"}, {Trial: 2, Best: 3, BestEpoch: 1},
		{Trial: 3, Best: 2, BestEpoch: 1}}
	sortBest(all, &curves{less: true})
	if got := fmt.Sprint(all[0].Trial, all[1].Trial, all[2].Trial, all[3].Trial); got != "3 2 0 1" {
		t.Errorf("order %s", got)
	}
}

// TestRunWithFailures: a trial that failed does not go on, even where there is room.
func TestRunWithFailures(t *testing.T) {
	c := &curves{value: []float64{.9, .5, .5, .2}, late: []float64{.9, .5, .5, .2},
		fails: map[int]string{0: "diverged", 3: "diverged"}}
	order, trained := c.run(t, []Rung{{4, 3}, {3, 30}})
	if order != "[1 2 0 3]" || trained != "[0:3 1:3 2:3 3:3 1:30 2:30]" {
		t.Errorf("order %s, trained %s", order, trained)
	}
	c = &curves{value: make([]float64, 4), late: make([]float64, 4), err: errors.New("disk")}
	if _, trained := c.run(t, []Rung{{4, 3}}); trained != "[0:3]" {
		t.Errorf("after an error trained %s", trained)
	}
}
