package loader_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/ingest"
	"gdb/layout/ingest/source"
	"gdb/layout/layouttest"
	"gdb/layout/topology"
	"gdb/sample"
	"gdb/sample/loader"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// ratedUsers and ratedItems are the nodes of ratedStore, users first.
const ratedUsers, ratedItems = 30, 20

// rated is an edge of ratedStore. price is NaN for null.
type rated struct {
	src, dst int
	price    float64
	weight   float64
	time     int64
}

func ratedEdges() (buys, sees []rated) {
	for u := range ratedUsers {
		for k := range 5 {
			i := (u*7 + k*3) % ratedItems
			e := rated{u, i, float64(100*u+i) + 0.5, float64(u+k) - 9, int64(u*31%17 + 10*k)}
			if (u+i)%5 == 0 {
				e.price = math.NaN()
			}
			buys = append(buys, e)
			sees = append(sees, rated{u, (u + k*k + 1) % ratedUsers, math.NaN(), float64(k - u),
				int64(u*13%19 + 9*k)})
		}
	}
	return buys, sees
}

// ratedStore is a typed store of users who buy items, at a price, and see users. Both relations
// have weights, times and reverses.
func ratedStore(t *testing.T) *layout.Store {
	t.Helper()
	fs, files := vfs.NewMem(), map[string]string{"users": "id,x\n", "items": "id,x\n",
		"buys": "src,dst,weight,time,price,note\n", "sees": "src,dst,weight,time\n"}
	for u := range ratedUsers {
		files["users"] += fmt.Sprint(u, ",1\n")
	}
	for i := range ratedItems {
		files["items"] += fmt.Sprint(i, ",1\n")
	}
	buys, sees := ratedEdges()
	for _, e := range buys {
		price := fmt.Sprint(e.price)
		if e.price != e.price {
			price = ""
		}
		files["buys"] += fmt.Sprint(e.src, ",", e.dst, ",", e.weight, ",", e.time, ",", price,
			",n\n")
	}
	for _, e := range sees {
		files["sees"] += fmt.Sprint(e.src, ",", e.dst, ",", e.weight, ",", e.time, "\n")
	}
	for name, text := range files {
		layouttest.WriteFile(t, fs, name+".csv", []byte(text))
	}
	o := source.Options{Memory: 128 << 20, Reverse: true, WeightCol: "buys.weight,sees.weight",
		TimeCol: "buys.time,sees.time",
		NodeTables: []source.NodeTable{{Type: "user", File: "users.csv"},
			{Type: "item", File: "items.csv"}},
		Relations: []source.Relation{{Src: "user", Name: "buys", Dst: "item", File: "buys.csv"},
			{Src: "user", Name: "sees", Dst: "user", File: "sees.csv"}}}
	if _, err := ingest.Run(t.Context(), fs, ingest.Options{Options: o, Out: "s.gdb"}); err != nil {
		t.Fatal(err)
	}
	s, err := layout.Open(t.Context(), fs, "s.gdb")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestEdgeColumns: each drawn edge comes with its own weight and price, whichever way round it was
// drawn and however lists are read, scaled by the edges before a time; and with the logarithm of
// what its list had before the seed.
func TestEdgeColumns(t *testing.T) {
	const cut = 30
	s := ratedStore(t)
	for _, opt := range []topology.Options{{Resident: true}, {CacheBytes: 1 << 20}} {
		src := loader.NewSource(s, layouttest.Device(t), mem.NewBudget(0))
		edges, err := loader.LoadEdges(t.Context(), src, []string{"sees"})
		if err != nil {
			t.Fatal(err)
		}
		src.Seeding = edges
		columns, err := src.OpenEdgeColumns(t.Context(), []string{"weight", "price", "degree"})
		if err != nil {
			t.Fatal(err)
		}
		before := int64(cut)
		scale, err := columns.Measure(t.Context(), &before)
		if err != nil {
			t.Fatal(err)
		}
		columns.Scale(scale)
		opt.Budget = src.Budget
		if err := src.OpenGraph(t.Context(), opt); err != nil {
			t.Fatal(err)
		}
		sampler, err := src.Sampler(&loader.Config{Fanout: []int{3, 4}, Seed: 5})
		if err != nil {
			t.Fatal(err)
		}
		check := newRatedCheck(s, cut)
		var d sample.Dense
		for batch := range uint64(6) {
			seeds := []sample.NodeID{sample.NodeID(20 * batch), sample.NodeID(149 - batch)}
			if err := sampler.Sample(t.Context(), 0, batch, seeds, &d); err != nil {
				t.Fatal(err)
			}
			check.batch(t, &d)
		}
		if check.prices < 50 || check.nulls < 10 {
			t.Errorf("only %d prices and %d nulls were drawn", check.prices, check.nulls)
		}
		sampler.Close()
		if err := src.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// ratedCheck knows what batches of ratedStore have.
type ratedCheck struct {
	names           []string
	lists           map[[2]int][]rated // by relation and node
	mean, deviation [2]float64         // of weights and prices
	prices, nulls   int
}

func newRatedCheck(s *layout.Store, cut int64) *ratedCheck {
	c := &ratedCheck{names: s.Meta().EdgeTypes, lists: map[[2]int][]rated{}}
	buys, sees := ratedEdges()
	var sums, squares, n [2]float64
	for r, name := range c.names {
		of, item := sees, 0
		if strings.HasSuffix(name, "buys") {
			of, item = buys, ratedUsers
		}
		for _, e := range of {
			e.dst += item
			if strings.HasPrefix(name, "rev_") {
				e.src, e.dst = e.dst, e.src
			}
			c.lists[[2]int{r, e.dst}] = append(c.lists[[2]int{r, e.dst}], e)
			for k, x := range []float64{e.weight, e.price} {
				if e.time < cut && x == x {
					n[k], sums[k], squares[k] = n[k]+1, sums[k]+x, squares[k]+x*x
				}
			}
		}
	}
	for k := range n {
		c.mean[k] = sums[k] / n[k]
		c.deviation[k] = math.Sqrt(squares[k]/n[k] - c.mean[k]*c.mean[k])
	}
	return c
}

func (c *ratedCheck) batch(t *testing.T, d *sample.Dense) {
	t.Helper()
	first := d.NodeIDOffsets[1]
	for i := range d.Inner() {
		node, at := d.NodeIDs[first+uint32(i)], d.Times[first+uint32(i)]
		for k := d.NbrOffsets[i]; k < d.NbrOffsets[i+1]; k++ {
			want, degree := rated{time: math.MaxInt64}, 0
			for _, e := range c.lists[[2]int{int(d.Types[k]), int(node)}] {
				if e.time > at {
					continue
				}
				if degree++; e.src == int(d.Nbrs[k]) {
					want = e
				}
			}
			if want.time > at {
				t.Fatalf("an edge from %d to %d was drawn as of %d", d.Nbrs[k], node, at)
			}
			c.prices++
			if want.price != want.price {
				want.price = c.mean[1]
				c.nulls++
			}
			for j, x := range []float64{(want.weight - c.mean[0]) / c.deviation[0],
				(want.price - c.mean[1]) / c.deviation[1], math.Log1p(float64(degree))} {
				if got := d.Columns[int(k)*3+j]; math.Abs(float64(got)-x) > 1e-4 {
					t.Fatalf("%s, %d to %d: column %d is %g, want %g", c.names[d.Types[k]],
						d.Nbrs[k], node, j, got, x)
				}
			}
		}
	}
}

// TestEdgeColumnsAreRefused: names that edges do not have, and columns that are no numbers.
func TestEdgeColumnsAreRefused(t *testing.T) {
	s := ratedStore(t)
	for name, want := range map[string]string{
		"cost": `edges have no column "cost": there are degree, weight, price, note`,
		"note": "column note has values of type string",
	} {
		src := loader.NewSource(s, layouttest.Device(t), mem.NewBudget(0))
		_, err := src.OpenEdgeColumns(t.Context(), []string{name})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
		if err := src.Close(); err != nil || src.Budget.Used() != 0 {
			t.Errorf("%s: %d bytes are still counted: %v", name, src.Budget.Used(), err)
		}
	}
}
