package train

import (
	"testing"

	"gdb/internal/bug"
)

// stepAllocations returns how many allocations a step on a batch takes on one thread, without
// preparing it for a device.
func stepAllocations(t *testing.T, c Config) float64 {
	t.Helper()
	s := mustBuild(t, planted(false))
	noteProfiles(t, s)
	c.Cache, c.Threads = "none", 1
	l, err := Open(t.Context(), s, mustDevice(t), c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
	e, err := l.Epoch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b, err := e.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	steps := l.s.replicas.all[0]
	prepare := func() {
		for i := range b.X { // a step leaves its own results there
			b.X[i] = 1
		}
		if err := steps.prepare(b); err != nil {
			t.Fatal(err)
		}
	}
	step := func() {
		prepare()
		if _, err := steps.lossOf(b, nil); err != nil {
			t.Fatal(err)
		}
	}
	for range 4 { // memory grows, and a device makes graphs
		step()
	}
	n := testing.AllocsPerRun(30, step) - testing.AllocsPerRun(30, prepare)
	b.Release()
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	return n
}

// TestStepAllocations: what a step allocates is bounded by its operations, whatever the batch has:
// mostly the functions that kernels give to a pool of threads, of which a product has eight. gat
// has products for each head.
func TestStepAllocations(t *testing.T) {
	if bug.Checking {
		t.Skip("checks take allocations of their own")
	}
	for model, most := range map[string]float64{"sage": 110, "gcn": 120, "gat": 480} {
		var n [2]float64
		for i, batch := range []int{10, 40} {
			c := testConfig()
			c.Model, c.Batch = model, batch
			n[i] = stepAllocations(t, c)
		}
		if n[0] > most || n[1] > n[0]*3/2 {
			t.Errorf("a step of %s takes %g allocations, of four times the seeds %g, want %g at "+
				"most", model, n[0], n[1], most)
		}
		t.Log(model, n)
	}
}
