package program

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"gdb/compute/backend"
)

// fitsBackend notes which sizes of operands each operation takes one larger, with "+", and one
// smaller, with "-".
type fitsBackend struct {
	backend.Backend
	taken map[string]map[string]bool
}

func (f *fitsBackend) Run(op *backend.Op, o *backend.Operands) {
	f.Backend.Run(op, o)
	if op.Fits == nil {
		return
	}
	if f.taken[op.Name] == nil {
		f.taken[op.Name] = map[string]bool{}
	}
	other := *o
	try := func(name string, size *int) {
		for sign, by := range map[string]int{"+": 1, "-": -1} {
			was := *size
			if *size += by; was > 0 && op.Fits(&other) {
				f.taken[op.Name][name+sign] = true
			}
			*size = was
		}
	}
	try("rows", &other.Out.Rows)
	try("cols", &other.Out.Cols)
	for i := range other.In {
		try(fmt.Sprintf("in%d.rows", i), &other.In[i].Rows)
		try(fmt.Sprintf("in%d.cols", i), &other.In[i].Cols)
	}
	for i := range other.Extra {
		try(fmt.Sprintf("extra%d.rows", i), &other.Extra[i].Rows)
		try(fmt.Sprintf("extra%d.cols", i), &other.Extra[i].Cols)
	}
	try("lists", &other.Lists.Lists)
	try("entries", &other.Lists.Entries)
	try("nodes", &other.Lists.Rows)
}

// TestShapesThatDoNotFit: an operation refuses operands of which one size differs from what the
// others say, except the sizes in freeSizes.
func TestShapesThatDoNotFit(t *testing.T) {
	f := &fitsBackend{taken: map[string]map[string]bool{}}
	models := maps.Clone(testModels)
	models["wide"], models["sage"] = wideLayers, sageLayers
	for _, m := range models {
		for _, o := range []Options{{}, {Half: true}, {FuseAttention: true, Half: true},
			{Without: Passes{Elements: true, Sums: true, Dead: true}}} {
			b := newBench(t, m, o)
			f.Backend = b.be
			b.be, b.machine = f, NewMachine(f, &b.params, nil)
			b.loss(t, true)
			b.program = Make(&b.params, m, Options{Layers: 2, Features: testCols})
			b.loss(t, false)
		}
	}
	for name, taken := range f.taken {
		var got []string
		for size := range taken {
			name, sign := size[:len(size)-1], size[len(size)-1]
			switch both := taken[name+"+"] && taken[name+"-"]; {
			case !both:
				got = append(got, size)
			case sign == '+':
				got = append(got, name)
			}
		}
		slices.Sort(got)
		if got := strings.Join(got, " "); got != freeSizes[name] {
			t.Errorf("%s takes other sizes of %q, want of %q", name, got, freeSizes[name])
		}
	}
}

// freeSizes are the sizes about which the other operands say nothing, such as the rows of a table
// that entries name: an operation takes them one larger and one smaller, or only the one.
var freeSizes = map[string]string{
	"add":               "in0.cols in0.rows in1.rows rows",
	"attend":            "entries in0.rows in1.rows nodes",
	"attend-to-rows":    "cols in0.cols in1.cols in2.cols in2.rows in3.cols in3.rows",
	"attend-to-scores":  "in0.cols in0.rows in1.cols in1.rows nodes",
	"batch-norm":        "in1.cols in1.rows in2.cols in2.rows",
	"batch-norm-grad":   "in2.cols in2.rows in3.cols in3.rows",
	"column-sum":        "in0.rows",
	"columns":           "cols in0.cols",
	"columns-grad":      "cols in0.cols",
	"dots":              "in0.cols in1.cols in1.rows nodes",
	"elu":               "in1.cols in1.rows",
	"elu-grad":          "in0.cols in0.rows",
	"embed":             "in0.rows rows",
	"entries-to-lists":  "cols in0.cols nodes",
	"entries-to-rows":   "cols in0.cols lists",
	"entry-dot":         "in0.cols in1.cols in1.rows nodes",
	"gelu-grad":         "in0.cols in0.rows",
	"layer-norm":        "in2.cols in2.rows",
	"layer-norm-grad":   "in2.cols in2.rows in3.cols in3.rows",
	"leaky-relu-grad":   "in0.cols in0.rows",
	"norm-apply":        "in1.cols in1.rows in2.cols in2.rows",
	"product":           "in0.rows nodes",
	"pull-max":          "entries in0.rows nodes",
	"pull-mean":         "entries in0.rows nodes",
	"pull-sum":          "entries in0.rows nodes",
	"pull-weighted":     "in0.rows nodes",
	"push-max":          "cols entries",
	"push-mean":         "cols entries in0.cols",
	"push-sum":          "cols entries in0.cols",
	"push-weighted":     "cols entries in0.cols in1.cols in1.rows",
	"relu-grad":         "in0.cols in0.rows",
	"row-scale":         "cols in0.cols in0.rows",
	"scores":            "cols in0.rows nodes",
	"scores-grad":       "entries in0.cols in0.rows lists nodes",
	"scores2":           "cols in0.cols in0.rows nodes",
	"scores2-to-lists":  "cols in0.cols in1.cols in1.rows in2.cols in2.rows nodes",
	"scores2-to-rows":   "cols in0.cols in1.cols in1.rows in2.cols in3.cols in3.rows",
	"segment-matmul":    "entries in0.cols+ nodes",
	"segment-matmul-ta": "entries in0.cols+ nodes",
	"segment-matmul-tb": "cols+ entries nodes",
	"softmax":           "cols in0.cols in0.rows lists nodes",
	"softmax-grad":      "entries in0.cols in0.rows lists nodes",
	"spread":            "nodes",
	"type-bias":         "in1.rows",
	"type-bias-relu":    "in1.rows",
	"type-matmul":       "in0.cols+",
	"type-matmul-t":     "cols+",
	"type-matmul-ta":    "in0.cols+",
	"type-matmul-tb":    "cols+",
	"type-rows":         "in0.rows",
	"type-rows-grad":    "rows",
	"type-shares":       "cols",
}
