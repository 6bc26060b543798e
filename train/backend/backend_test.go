package backend

import (
	"errors"
	"strings"
	"testing"

	"gdb/internal/mem"
)

func mustOpen(t *testing.T, budget *mem.Budget) *cpu {
	t.Helper()
	be, err := Open("cpu", Options{Workers: 2, Budget: budget})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := be.Close(); err != nil {
			t.Error(err)
		}
		if n := budget.Used(); n != 0 {
			t.Errorf("%d bytes are still counted after Close", n)
		}
	})
	return be.(*cpu)
}

func TestOpen(t *testing.T) {
	if _, err := Open("tpu", Options{}); err == nil || !strings.Contains(err.Error(),
		"known is cpu") {
		t.Errorf("tpu: %v", err)
	}
}

// TestScratchSettles takes the memory of steps that grow, then that of the largest again and
// again: the arenas become one, and no more is mapped.
func TestScratchSettles(t *testing.T) {
	budget := mem.NewBudget(0)
	c := mustOpen(t, budget)
	steady := int64(0)
	for round := range 8 {
		if err := c.Begin(); err != nil {
			t.Fatal(err)
		}
		var all []Tensor
		for i := range 10 {
			x, err := c.Scratch(1+min(round, 3)*100, 7+i)
			if err != nil {
				t.Fatal(err)
			}
			for k := range x.host {
				x.host[k] = float32(i)
			}
			all = append(all, x)
		}
		for i, x := range all { // nothing overlaps
			for _, v := range x.host {
				if v != float32(i) {
					t.Fatalf("round %d: tensor %d was overwritten", round, i)
				}
			}
		}
		switch {
		case round == 5:
			steady = budget.Used()
		case round > 5 && budget.Used() != steady:
			t.Errorf("round %d holds %d bytes, before %d", round, budget.Used(), steady)
		}
	}
	if len(c.scratch.chunks) != 1 {
		t.Errorf("scratch is in %d pieces", len(c.scratch.chunks))
	}
	if err := c.Trim(); err != nil || budget.Used() != 0 {
		t.Errorf("%d bytes after Trim, %v", budget.Used(), err)
	}
}

func TestBudgetIsKept(t *testing.T) {
	budget := mem.NewBudget(1 << 20)
	c := mustOpen(t, budget)
	var limit *mem.LimitError
	if _, err := c.Params("weights", 1<<20); !errors.As(err, &limit) {
		t.Errorf("parameters beyond the budget: %v", err)
	}
	if _, err := c.Scratch(1<<10, 1<<10); !errors.As(err, &limit) {
		t.Errorf("scratch beyond the budget: %v", err)
	}
	if _, err := c.Params("weights", 1<<10); err != nil {
		t.Errorf("parameters within the budget: %v", err)
	}
}

func TestViewsShareValues(t *testing.T) {
	c := mustOpen(t, mem.NewBudget(0))
	p, err := c.Params("weights", 24)
	if err != nil {
		t.Fatal(err)
	}
	c.Write(p, []float32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20,
		21, 22, 23})
	row := p.View(4, 5, 4).Slice(2, 1)
	got := make([]float32, 4)
	if c.Read(got, row); got[0] != 12 || got[3] != 15 || row.Rows != 1 || row.Cols != 4 {
		t.Errorf("row 2 of the view at 4 is %v", got)
	}
	c.Zero(row)
	all := make([]float32, 24)
	if c.Read(all, p); all[12] != 0 || all[15] != 0 || all[11] != 11 || all[16] != 16 {
		t.Errorf("after clearing the view: %v", all)
	}
}

func TestShapesAreChecked(t *testing.T) {
	c := mustOpen(t, mem.NewBudget(0))
	if err := c.Begin(); err != nil {
		t.Fatal(err)
	}
	a, err := c.Scratch(2, 3)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if r, ok := recover().(string); !ok || !strings.Contains(r, "BUG: MatMul") {
			t.Errorf("a product of shapes that do not fit: %v", r)
		}
	}()
	c.MatMul(a, a, a, false)
}
