package bulk

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"gdb/internal/mem"
	"gdb/sample"
)

// stageLog is a stage that holds at most rows rows, of nodes with odd numbers, and takes no memory.
type stageLog struct {
	rows   int
	err    error
	staged map[sample.NodeID]bool
	calls  int
	drops  int
}

func (s *stageLog) Ready(ctx context.Context) error { return ctx.Err() }

func (s *stageLog) Absent(nodes, to []sample.NodeID) []sample.NodeID {
	for _, v := range nodes {
		if v%2 == 1 {
			to = append(to, v)
		}
	}
	return to
}

func (s *stageLog) Fit(int64) int { return s.rows }

func (s *stageLog) Stage(_ context.Context, lists [][]sample.NodeID) error {
	s.staged = map[sample.NodeID]bool{}
	s.calls++
	for _, v := range slices.Concat(lists...) {
		s.staged[v] = true
	}
	return s.err
}

func (s *stageLog) Drop() error {
	s.staged = nil
	s.drops++
	return nil
}

// missing is how many rows of a batch are to be staged, and are not.
func (s *stageLog) missing(nodes []sample.NodeID) (absent, missing int) {
	for _, v := range s.Absent(nodes, nil) {
		if absent++; !s.staged[v] {
			missing++
		}
	}
	return absent, missing
}

// The rows of a batch are staged when it is taken and until the group begins anew; with more room
// in fewer parts.
func TestRowsAreStaged(t *testing.T) {
	f := newFixture(t)
	before := 1 << 30
	for _, rows := range []int{2000, 12_000, 1 << 30} {
		s := &stageLog{rows: rows}
		budget := mem.NewBudget(0)
		g, _ := f.group(t, sample.Config{Fanout: []int{5, 5}, Seed: 2}, 5<<20, 2<<20, 0, budget, s)
		begun, used := 0, budget.Used()
		var d sample.Dense
		for step := uint64(0); step < g.cfg.End; step++ {
			epoch, batch := step/g.cfg.PerEpoch, step%g.cfg.PerEpoch
			begins := g.Begins(epoch, batch)
			if begins {
				begun++
			}
			calls := s.calls
			ok, err := g.take(t.Context(), epoch, batch, &d)
			if err != nil || !ok {
				t.Fatal(ok, err)
			}
			if begins != (s.calls > calls) {
				t.Errorf("%d rows, step %d: begins %v, staged %d times", rows, step, begins,
					s.calls-calls)
			}
			if absent, missing := s.missing(d.NodeIDs); absent == 0 || missing > 0 {
				t.Errorf("%d rows, step %d: %d of %d are not staged", rows, step, missing, absent)
			}
			if len(s.staged) > rows {
				t.Errorf("%d rows: %d are staged", rows, len(s.staged))
			}
		}
		if begun == 0 || begun >= before {
			t.Errorf("%d rows: staged %d times, with less room %d", rows, begun, before)
		}
		before = begun
		if err := g.Close(); err != nil || s.staged != nil || budget.Used() != used {
			t.Error(err, len(s.staged), budget.Used()-used)
		}
	}
}

// Where a batch has no place alone, or there is no memory, rows are left to be read one by one.
func TestRowsThatDoNotFit(t *testing.T) {
	f := newFixture(t)
	for name, s := range map[string]*stageLog{
		"no room":   {rows: 1},
		"no memory": {rows: 1 << 30, err: &mem.LimitError{}},
	} {
		g, _ := f.group(t, sample.Config{Fanout: []int{5, 5}, Seed: 2}, 5<<20, 2<<20, 0, nil, s)
		var d sample.Dense
		for step := range g.cfg.PerEpoch {
			if ok, err := g.take(t.Context(), 0, step, &d); !ok || err != nil {
				t.Fatal(name, ok, err)
			}
			if s.rows == 1 && len(s.staged) > 0 {
				t.Errorf("%s: %d are staged", name, len(s.staged))
			}
			if s.rows == 1 && s.calls != int(step)+1 {
				t.Errorf("%s: staged %d times for %d batches", name, s.calls, step+1)
			}
		}
	}
}

// An error of reading ahead reaches who takes the batch.
func TestStageErrors(t *testing.T) {
	broken := errors.New("broken")
	s := &stageLog{rows: 1 << 30, err: broken}
	c := sample.Config{Fanout: []int{3}, Seed: 2}
	g, _ := newFixture(t).group(t, c, 5<<20, 2<<20, 0, nil, s)
	_, err := g.take(t.Context(), 0, 0, &sample.Dense{})
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "read ahead for batches") {
		t.Errorf("error %v", err)
	}
}
