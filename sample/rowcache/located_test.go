package rowcache

import (
	"slices"
	"testing"

	"gdb/internal/mem"
	"gdb/sample/sampletest"
)

// TestLocated: rows that features tell the places of are those that they gather, and count as
// often; memory that is held is not given back.
func TestLocated(t *testing.T) {
	const nodes, dim, hot = 500, 6, 80
	rows := &sampletest.Rows{Count: nodes, Dim: dim}
	some := shuffled(nodes)[:200]
	for name, open := range map[string]func(b *mem.Budget) (Located, error){
		"static": func(b *mem.Budget) (Located, error) {
			return New(t.Context(), rows, NewStatic(nodesFrom(0, hot)),
				Options{Bytes: Bytes(hot, dim, 0), Budget: b})
		},
		"all": func(b *mem.Budget) (Located, error) {
			return NewResident(t.Context(), rows, nodes, 1, b)
		},
		"none": func(*mem.Budget) (Located, error) { return NewDirect(rows), nil },
	} {
		budget := mem.NewBudget(0)
		f, err := open(budget)
		if err != nil {
			t.Fatal(err)
		}
		want, numbers := make([]float32, len(some)*dim), make([]uint32, len(some))
		if err := f.Gather(t.Context(), some, want); err != nil {
			t.Fatal(err)
		}
		before := f.Stats()
		f.Hold(true)
		memory, first := f.Memory()
		held := mem.View[float32](memory[min(first, len(memory)):])
		if err := f.Locate(some, numbers); err != nil {
			t.Fatal(err)
		}
		found := 0
		for i, row := range numbers {
			if row == NoRow {
				continue
			}
			found++
			if !slices.Equal(held[int(row)*dim:][:dim], want[i*dim:(i+1)*dim]) {
				t.Fatalf("%s: row %d of node %d has other values", name, row, some[i])
			}
		}
		after := f.Stats()
		if after.Requests-before.Requests != uint64(len(some)) ||
			after.Hits-before.Hits != uint64(found) || before.Hits != uint64(found) {
			t.Errorf("%s: %d rows were found, counted before %+v, then %+v", name, found, before,
				after)
		}
		if c, ok := f.(*Cache); ok && c.shrink(1<<10) {
			t.Errorf("%s: memory that is held is given back", name)
		}
		if err := f.Close(); err != nil || budget.Used() != 0 {
			t.Errorf("%s: after close %d bytes are counted, %v", name, budget.Used(), err)
		}
	}
}
