package rowfile_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/layout/rowfile"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestPack reads rows of every type of floats packed, gathered, scanned and decoded: values are
// those that are read as float32, rounded after they were scaled; behind an odd width is a zero.
func TestPack(t *testing.T) {
	for _, dtype := range []string{"f32", "f16", "bf16"} {
		for _, dim := range []int{1, 7, 8} {
			for _, scaled := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/dim=%d/scaled=%v", dtype, dim, scaled),
					func(t *testing.T) { checkPack(t, dtype, dim, scaled) })
			}
		}
	}
}

func checkPack(t *testing.T, dtype string, dim int, scaled bool) {
	const nodes = 40
	g := layouttest.Graph{Nodes: nodes, NoCatalog: true, Dim: dim, DType: dtype}
	for i := range nodes * dim {
		g.Features = append(g.Features, float32(math.Sin(float64(i)))*float32(i%9))
	}
	s := layouttest.Build(t, vfs.NewMem(), "s", g)
	scale := rowfile.Scale{}
	for k := range dim {
		scale.Mean = append(scale.Mean, float32(k)/3)
		scale.Inverse = append(scale.Inverse, 1.7)
	}
	whole, packed := mustRows(t, s, mem.NewBudget(0)), mustRows(t, s, mem.NewBudget(0))
	defer whole.Close()
	defer packed.Close()
	if scaled {
		whole.ScaleColumns(&scale)
		packed.ScaleColumns(&scale)
	}
	packed.Pack()
	words := rowfile.PackedDim(dim)
	if packed.Meta().Dim != words || packed.Width() != dim || !packed.Packed() {
		t.Fatalf("%d words of a row, width %d", packed.Meta().Dim, packed.Width())
	}
	want, got := make([]float32, nodes*dim), make([]float32, nodes*words)
	some := []layout.NodeID{5, 0, 5, 11}
	for _, read := range []func(r *rowfile.Reader, out []float32) error{
		func(r *rowfile.Reader, out []float32) error {
			return r.Scan(context.Background(), 0, nodes, out)
		},
		func(r *rowfile.Reader, out []float32) error {
			return r.Gather(context.Background(), some, nil, out)
		},
	} {
		for i := range got {
			got[i] = float32(math.NaN())
		}
		if err := read(whole, want); err != nil {
			t.Fatal(err)
		}
		if err := read(packed, got); err != nil {
			t.Fatal(err)
		}
		for row := range some {
			checkPacked(t, got[row*words:(row+1)*words], want[row*dim:(row+1)*dim])
		}
	}
}

// checkPacked holds a packed row against values.
func checkPacked(t *testing.T, got, want []float32) {
	t.Helper()
	values := make([]float32, len(want))
	rowfile.Unpack(values, got, len(want))
	for i, v := range want {
		// half of the last of the bits that are kept
		if d := math.Abs(float64(values[i] - v)); !(d <= math.Abs(float64(v))/256) ||
			math.Float32bits(values[i])&0xffff != 0 {
			t.Fatalf("value %d is %g, want %g", i, values[i], v)
		}
	}
	last := math.Float32bits(got[len(got)-1]) >> 16
	if len(want)%2 != 0 && last != 0 {
		t.Fatalf("behind %d values is %04x", len(want), last)
	}
}
