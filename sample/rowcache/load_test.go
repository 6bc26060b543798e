package rowcache

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/sample/sampletest"
)

// askedRows notes what is gathered.
type askedRows struct {
	sampletest.Rows
	mu    sync.Mutex
	asked [][]layout.NodeID
}

func (r *askedRows) GatherParts(ctx context.Context, nodes []layout.NodeID, at []uint32,
	out []float32, _ func([]uint64)) error {
	r.mu.Lock()
	r.asked = append(r.asked, slices.Clone(nodes))
	r.mu.Unlock()
	return r.Rows.Gather(ctx, nodes, at, out)
}

// TestPreload: rows are loaded in the order of the file, all together or in parts where there is
// less memory; each slot gets its row.
func TestPreload(t *testing.T) {
	const seed, nodes, dim = 3, 40000, 64
	var hot []layout.NodeID
	for _, v := range rand.New(rand.NewPCG(seed, seed)).Perm(nodes)[:nodes*3/4] {
		hot = append(hot, layout.NodeID(v))
	}
	opt := Options{Bytes: 16 << 20, Budget: mem.NewBudget(0)}
	base := int64(0)
	for _, spare := range []int64{1 << 30, 1 << 17, 20 << 10, 8 << 10, 8<<10 - 1} {
		if base > 0 {
			opt.Budget = mem.NewBudget(base + spare)
		}
		rows := &askedRows{Rows: sampletest.Rows{Count: nodes, Dim: dim}}
		f, err := New(t.Context(), rows, NewStatic(hot), opt)
		var full *mem.LimitError
		if spare < 8<<10 {
			if !errors.As(err, &full) || opt.Budget.Used() != 0 {
				t.Fatalf("%d bytes to spare: %v, %d are counted", spare, err, opt.Budget.Used())
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		base = max(base, opt.Budget.Used())
		out, want := make([]float32, len(hot)*dim), make([]float32, len(hot)*dim)
		if err := errors.Join(f.Gather(t.Context(), hot, out),
			rows.Rows.Gather(t.Context(), hot, nil, want)); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(out, want) || f.Stats().Hits != uint64(len(hot)) {
			t.Errorf("%d bytes to spare: wrong rows, or %d of %d hits", spare, f.Stats().Hits,
				len(hot))
		}
		apart := 0
		for _, asked := range rows.asked {
			if !slices.IsSorted(asked) {
				t.Errorf("%d bytes to spare: rows are not read in the order of the file", spare)
			}
			for i := range asked[1:] {
				apart += int(asked[i+1] - asked[i])
			}
		}
		passes := (apart + nodes/2) / nodes // over the file
		if passes > 1 != (spare < 8*int64(len(hot))) {
			t.Errorf("%d bytes to spare: %d passes over the file", spare, passes)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestLoadFails: the first error ends a load, and names it.
func TestLoadFails(t *testing.T) {
	bad, hot := layout.NodeID(33000), make([]layout.NodeID, 35000)
	for i := range hot {
		hot[i] = layout.NodeID(len(hot) - 1 - i)
	}
	for name, open := range map[string]func(*sampletest.Rows) error{
		"resident": func(rows *sampletest.Rows) error {
			_, err := NewResident(t.Context(), rows, uint64(rows.Count), 2, nil)
			return err
		},
		"static": func(rows *sampletest.Rows) error {
			_, err := New(t.Context(), rows, NewStatic(hot),
				Options{Bytes: 32 << 20})
			return err
		},
	} {
		rows := &sampletest.Rows{Count: 40000, Dim: 64, Fail: &bad}
		if err := open(rows); err == nil || !strings.Contains(err.Error(), fmt.Sprint(bad)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
