package group

import (
	"math/rand/v2"
	"sync"
	"testing"

	"gdb/shell/cypher/ast"
	"gdb/shell/cypher/eval"
	"gdb/shell/cypher/vector"
)

// TestTable holds that keys are numbered in the order in which they come.
func TestTable(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	tab, want := NewTable(), map[uint64]int32{}
	for range 50000 {
		key := r.Uint64N(20000) << (8 * r.IntN(5))
		next := int32(len(want))
		n, known := want[key]
		if !known {
			n, want[key] = next, next
		}
		if got := tab.Number(key); got != n {
			t.Fatalf("key %d: number %d, want %d", key, got, n)
		}
	}
}

// column is rows of one variable.
type column struct{ v *vector.Vector }

func (c column) Len() int                     { return len(c.v.Nodes) + len(c.v.Ints) }
func (c column) Vector(string) *vector.Vector { return c.v }
func (c column) Scope(int) *eval.Scope        { return nil }

// TestDistinct holds counts of different values of groups, of nodes and of numbers, also merged,
// and that the memory of its tables and bits is counted.
func TestDistinct(t *testing.T) {
	for _, c := range []struct {
		groups, nodes int
		numbers, bits bool
	}{{1, 5000, false, true}, {40, 5000, false, false}, {1, 1 << 30, false, false},
		{7, 300, true, false}} {
		r := rand.New(rand.NewPCG(uint64(c.groups), uint64(c.nodes)))
		counted := int64(0)
		env := &vector.Env{Rows: &sync.Mutex{}, Row: &eval.Env{Grow: func(n int64) error {
			counted += n
			return nil
		}}}
		call := &ast.Call{Name: "count", Distinct: true, Args: []ast.Expr{&ast.Var{Name: "x"}}}
		seen, of := map[[2]int]bool{}, make([]int64, c.groups)
		take := func(a Aggregate) {
			v := &vector.Vector{Kind: vector.Node}
			if c.numbers {
				v.Kind = vector.Int
			}
			var groups []int32
			times := make([]int64, 4000)
			for i := range times {
				g, x := r.IntN(c.groups), r.IntN(c.nodes)
				if !seen[[2]int{g, x}] {
					seen[[2]int{g, x}] = true
					of[g]++
				}
				groups, times[i] = append(groups, int32(g)), 1
				if c.numbers {
					v.Ints = append(v.Ints, int64(x))
				} else {
					v.Nodes = append(v.Nodes, uint32(x))
				}
			}
			if err := a.Add(Rows{column{v}, times}, groups, c.groups); err != nil {
				t.Fatal(err)
			}
		}
		a, b := New(call, env), New(call, env)
		for range 3 {
			take(a)
			take(b)
		}
		to := make([]int32, c.groups)
		for i := range to {
			to[i] = int32(i)
		}
		counted -= bytesOf(b)
		if err := a.Merge(b, to); err != nil {
			t.Fatal(err)
		}
		for g, want := range of {
			if got, err := a.Result(int32(g)); err != nil || got != want {
				t.Errorf("%v: group %d has %v, %v; want %d", c, g, got, err, want)
			}
		}
		if d := a.(*distinct); !c.numbers && counted != bytesOf(a) || (d.bits != nil) != c.bits {
			t.Errorf("%v: %d bytes counted, %d held, %d words of bits", c, counted, bytesOf(a),
				len(d.bits))
		}
	}
}

// bytesOf returns the memory of the nodes of count(DISTINCT).
func bytesOf(a Aggregate) int64 {
	d := a.(*distinct)
	n := 8 * int64(len(d.bits))
	if d.nodes.counted {
		n += placeBytes * int64(len(d.nodes.keys))
	}
	return n
}
