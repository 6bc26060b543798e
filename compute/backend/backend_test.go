package backend

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"gdb/internal/mem"
)

func mustOpen(t *testing.T, budget *mem.Budget) *cpu {
	t.Helper()
	be, err := OpenCPU(Options{Workers: 2, Budget: budget})
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
			x := c.Scratch(1+min(round, 3)*100, 7+i)
			if err := c.Err(); err != nil {
				t.Fatal(err)
			}
			for k := range c.values(x) {
				c.values(x)[k] = float32(i)
			}
			all = append(all, x)
		}
		for i, x := range all { // nothing overlaps
			for _, v := range c.values(x) {
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
	if c.Scratch(1<<10, 1<<10); !errors.As(c.Err(), &limit) {
		t.Errorf("scratch beyond the budget: %v", c.Err())
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
	Zero(c, row)
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
	a := c.Scratch(2, 3)
	defer func() {
		r, ok := recover().(string)
		if !ok || !strings.Contains(r, "BUG: product of shapes (2,3)") {
			t.Errorf("a product of shapes that do not fit: %v", r)
		}
	}()
	c.Run(&Op{Name: "product", Fits: func(o *Operands) bool {
		return o.In[0].Cols == o.In[1].Rows
	}}, &Operands{Out: a, In: [4]Tensor{a, a}})
}

// TestErrorsStay: after an error operations do nothing until the next step, which begins without
// it;
// parameters are written all the same.
func TestErrorsStay(t *testing.T) {
	c := mustOpen(t, mem.NewBudget(1<<20))
	p, err := c.Params("weights", 6)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Begin(); err != nil {
		t.Fatal(err)
	}
	big := c.Scratch(1<<10, 1<<10)
	first, small := c.Err(), c.Scratch(2, 3)
	Zero(c, big)
	Copy(c, small, small)
	SoftmaxCrossEntropy(c, small, small, Tensor{}, []int32{0, 1})
	Adam(c, p, p, Moments{p, p}, AdamStep{Step: 1, Rate: 1})
	c.Read(make([]float32, big.Len()), big)
	c.Write(p, []float32{1, 2, 3, 4, 5, 6})
	var limit *mem.LimitError
	if c.Err() != first || !errors.As(first, &limit) || len(c.Losses(nil)) != 0 {
		t.Errorf("%v, then %v", first, c.Err())
	}
	if err := c.Begin(); err != nil || c.Err() != nil {
		t.Errorf("the next step begins with %v, %v", err, c.Err())
	}
	got := make([]float32, 6)
	if c.Read(got, p); got[5] != 6 {
		t.Errorf("parameters are %v", got)
	}
}

// TestTables: equal memory is one tensor, which sees what the caller changes.
func TestTables(t *testing.T) {
	c := mustOpen(t, mem.NewBudget(0))
	x := []float32{1, 2, 3, 4, 5, 6}
	a := c.Table(x, 3, 2)
	if err := c.Begin(); err != nil {
		t.Fatal(err)
	}
	x[5] = 7
	got := make([]float32, 2)
	if c.Read(got, a.Slice(2, 1)); c.Table(x, 3, 2) != a || got[0] != 5 || got[1] != 7 {
		t.Errorf("the last row is %v, the table %+v and then %+v", got, a, c.Table(x, 3, 2))
	}
}

// TestReference: an operation without a kernel is done by its reference, in float32 and bfloat16.
func TestReference(t *testing.T) {
	c := mustOpen(t, mem.NewBudget(0))
	if err := c.Begin(); err != nil {
		t.Fatal(err)
	}
	square := &Op{Name: "square", Ref: func(p *Plain) {
		for i, v := range p.From[0].V {
			p.To.V[i] = v * v
		}
	}}
	x := c.Host([]float32{1, -2, 3, 4}, 2, 2)
	half := c.Scratch(1, 2).Halved().View(0, 2, 2)
	c.Run(square, &Operands{Out: half, In: [4]Tensor{x}})
	c.Run(square, &Operands{Out: x, In: [4]Tensor{half}})
	got := make([]float32, 4)
	if c.Read(got, x); !slices.Equal(got, []float32{1, 16, 81, 256}) || c.Err() != nil {
		t.Errorf("squares of squares are %v, %v", got, c.Err())
	}
}
