//go:build cuda && cgo && linux

package cuda

import (
	"slices"
	"testing"

	"gdb/compute/backend"
	"gdb/internal/cuda/cudatest"
	"gdb/internal/mem"
)

// TestGroupedSteps runs steps of equal sizes with other values, other rates and other keys, and now
// and then one of another size: launched at once they give the bits that they give one by one.
func TestGroupedSteps(t *testing.T) {
	emulator := cudatest.Start(t, "kernels/kernels.cu")
	var all [2][][]float32
	var losses [2][]backend.Loss
	var counts [2]backend.Launches
	for i, plain := range []bool{true, false} {
		be, err := Open(backend.Options{Workers: 1, Budget: mem.NewBudget(0), Plain: plain})
		if err != nil {
			t.Fatal(err)
		}
		g := be.(*gpu)
		launched := emulator.Count("launches") + emulator.Count("graph_launches")
		all[i], losses[i] = groupedSteps(t, g)
		counts[i] = g.Launches()
		launched = emulator.Count("launches") + emulator.Count("graph_launches") - launched
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		calls := int64(counts[i].Calls)
		if emulator.Emulated() && (launched > calls || launched < calls/2) {
			t.Errorf("the emulator counted %d launches, and the backend %d calls", launched, calls)
		}
	}
	for i, want := range all[0] {
		if !slices.Equal(mem.BytesOf(want), mem.BytesOf(all[1][i])) {
			t.Errorf("step %d gives other bits at once: %v, one by one %v", i, all[1][i][:4],
				want[:4])
		}
	}
	if !slices.Equal(losses[0], losses[1]) {
		t.Errorf("losses are %v, one by one %v", losses[1], losses[0])
	}
	if !(counts[0].Busy > 0 && counts[1].Busy > 0) {
		t.Error("the device never worked")
	}
	t.Logf("one by one %+v, at once %+v", counts[0], counts[1])
	if counts[0].Graphs != 0 || counts[1].Graphs < 20 || counts[1].Calls > counts[0].Calls*6/10 ||
		counts[1].Operations != counts[0].Operations {
		t.Errorf("one by one %+v, at once %+v", counts[0], counts[1])
	}
}

// groupedSteps takes steps of Adam on a layer with dropout, and returns its weights after each.
func groupedSteps(t *testing.T, g *gpu) (weights [][]float32, losses []backend.Loss) {
	t.Helper()
	const cols, classes = 8, 4
	var p [4]backend.Tensor
	for i := range p {
		var err error
		if p[i], err = g.Params("weights", cols*classes); err != nil {
			t.Fatal(err)
		}
	}
	o := newTrial(t, g, "steps")
	g.Write(p[0], o.values(cols*classes))
	for step := range 40 {
		rows := 50
		if step%13 == 12 {
			rows = 37
		}
		mustBegin(t, g)
		x := g.Host(o.values(rows*cols-cols*(step%3)), rows, cols)
		calls{g}.Dropout(x, backend.Dropout{Rate: 0.3, First: step, Key: uint64(step)})
		l := backend.Lists{Off: []uint32{0}, Rows: rows}
		for range rows / 4 {
			for range 4 {
				l.Idx = append(l.Idx, uint32(o.r.IntN(rows)))
			}
			l.Off = append(l.Off, uint32(len(l.Idx)))
		}
		s := g.Segments(l)
		sums, logits := g.Scratch(s.Lists, cols), g.Scratch(s.Lists, classes)
		calls{g}.lists("pull-mean", sums, s, x)
		w, dw := p[0].View(0, cols, classes), p[1].View(0, cols, classes)
		calls{g}.MatMul(logits, sums, w, false)
		labels := make([]int32, s.Lists)
		for i := range labels {
			labels[i] = int32(o.r.IntN(classes))
		}
		backend.SoftmaxCrossEntropy(g, logits, logits, tensor{}, labels)
		calls{g}.MatMulTA(dw, sums, logits, false)
		moments := backend.Moments{M: p[2], V: p[3]}
		backend.Adam(g, p[0], p[1], moments, backend.AdamStep{Step: step + 1,
			Rate: 0.1 / float32(step+1), Beta1: 0.9, Beta2: 0.999, Eps: 1e-8})
		if err := g.Err(); err != nil {
			t.Fatal(err)
		}
		got := make([]float32, cols*classes)
		g.Read(got, p[0])
		weights = append(weights, got)
		losses = g.Losses(losses)
	}
	return weights, losses
}

// TestCaptureIsRefused: where the driver makes no graphs, steps are done one by one.
func TestCaptureIsRefused(t *testing.T) {
	g, emulator := mustOpenGPU(t, mem.NewBudget(0))
	emulator.Set(t, "fail_capture", 1)
	before := g.Launches()
	if weights, _ := groupedSteps(t, g); len(weights) != 40 || g.About().Groups {
		t.Errorf("%d steps, and groups: %v", len(weights), g.About().Groups)
	}
	if l := g.Launches().Sub(before); l.Graphs != 0 || l.Calls != l.Operations {
		t.Errorf("%+v", l)
	}
}
