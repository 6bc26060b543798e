//go:build cuda && cgo && linux

package devicesample

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"gdb/compute/backend"
	"gdb/compute/backend/cuda"
	driver "gdb/internal/cuda"
	"gdb/internal/cuda/cudatest"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/topology"
	"gdb/sample"
	"gdb/sample/sampletest"
)

// mustOpenDevice gives the test a device.
func mustOpenDevice(t *testing.T) (backend.Device, *cudatest.Emulator, *mem.Budget) {
	t.Helper()
	emulator := cudatest.Start(t, "../../compute/backend/cuda/kernels/kernels.cu")
	budget := mem.NewBudget(0)
	be, err := cuda.Open(backend.Options{Workers: 1, Budget: budget})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := be.Close(); err != nil && !errors.Is(err, driver.ErrLost) {
			t.Error(err)
		}
		if n, m := budget.Used(), emulator.Count("allocated_bytes"); n != 0 || m != 0 {
			t.Errorf("after Close %d bytes are counted, and the device has %d", n, m)
		}
	})
	return be.Device(), emulator, budget
}

// randomGraph has lists of all kinds: empty, short, hubs, the same edge several times.
func randomGraph(r *rand.Rand, nodes int) *sampletest.Graph {
	lists := make([][]layout.NodeID, nodes)
	for v := range lists {
		n := r.IntN(12)
		switch r.IntN(10) {
		case 0:
			n = 0
		case 1:
			n = r.IntN(2 * nodes)
		}
		for range n {
			lists[v] = append(lists[v], layout.NodeID(r.IntN(nodes)))
		}
		slices.Sort(lists[v])
	}
	return sampletest.FromLists(lists...)
}

// trial is samples of a graph that both draw.
type trial struct {
	topos  []topology.Reader
	config sample.Config
	draws  backend.DrawConfig
	seeds  []sample.NodeID
}

// wideDevice takes 64 bits for offsets, as large graphs need.
type wideDevice struct{ backend.Device }

func (d wideDevice) Neighbors(all []backend.Neighbors) (backend.NeighborLists, error) {
	for i := range all {
		all[i].Wide = true
	}
	return d.Device.Neighbors(all)
}

func newTrial(r *rand.Rand) *trial {
	nodes := 1 + r.IntN(500)
	c := &trial{topos: []topology.Reader{randomGraph(r, nodes)}}
	c.config.Degrees = r.IntN(2) == 0
	if r.IntN(3) == 0 {
		c.topos = append(c.topos, randomGraph(r, nodes))
		c.config.Degrees = false
	}
	for range 1 + r.IntN(4) {
		c.config.Fanout = append(c.config.Fanout, []int{1, 2, 10, 33, 70, sample.All}[r.IntN(6)])
	}
	c.config.Seed = r.Uint64()
	for _, v := range r.Perm(nodes)[:1+r.IntN(min(nodes, 40))] {
		c.seeds = append(c.seeds, sample.NodeID(v))
	}
	edges := 5000
	if r.IntN(4) == 0 {
		edges = 20000
	}
	c.draws = backend.DrawConfig{Fanout: c.config.Fanout, Degrees: c.config.Degrees,
		Seeds: len(c.seeds), Nodes: nodes, Edges: edges}
	return c
}

// host draws batches of the trial on the host.
func (c *trial) host(t *testing.T) *sample.Samplers {
	t.Helper()
	host, err := sample.NewSamplers(Workers, func() (*sample.Sampler, error) {
		return sample.NewSampler(c.topos, c.config)
	})
	if err != nil {
		t.Fatal(err)
	}
	return host
}

// compare draws batches on both, and returns how many were drawn on the device.
func (c *trial) compare(t *testing.T, on backend.Device, budget *mem.Budget) uint64 {
	t.Helper()
	g, err := Open(t.Context(), on, c.topos, c.draws, c.config.Seed, budget)
	if err != nil {
		t.Fatal(err)
	}
	host, d := c.host(t), g.Drawer(c.host(t))
	defer func() {
		if d.Close() != nil || host.Close() != nil || g.Close() != nil {
			t.Error("close fails")
		}
	}()
	var got, want sample.Batch
	for i := range uint64(3) {
		got.Epoch, got.Index, got.Seeds = i/2, i, c.seeds
		want.Epoch, want.Index, want.Seeds = i/2, i, c.seeds
		if err := d.Draw(t.Context(), int(i%Workers), &got); err != nil {
			t.Fatal(err)
		}
		if err := host.Draw(t.Context(), 0, &want); err != nil {
			t.Fatal(err)
		}
		if field := differs(&got.Dense, &want.Dense); field != "" {
			t.Fatalf("%d directions, fanout %v, %d seeds, %d nodes, batch %d: %s differs",
				len(c.topos), c.config.Fanout, len(got.Seeds), c.draws.Nodes, i, field)
		}
		c.seeds = c.seeds[:1+len(c.seeds)/2]
	}
	drawn, again := g.Lap()
	if drawn+again != 3 {
		t.Errorf("%d batches drawn, %d again", drawn, again)
	}
	return drawn
}

// differs names the first array in which two samples differ, "" for none.
func differs(a, b *sample.Dense) string {
	v, w := reflect.ValueOf(*a), reflect.ValueOf(*b)
	for _, f := range reflect.VisibleFields(v.Type()) {
		if x := v.FieldByIndex(f.Index); x.Kind() == reflect.Slice &&
			fmt.Sprint(x) != fmt.Sprint(w.FieldByIndex(f.Index)) {
			return f.Name
		}
	}
	return ""
}

// TestDevice draws batches of many random graphs on the device and on the host: all arrays are
// equal. Few are larger than the device's bounds.
func TestDevice(t *testing.T) {
	on, _, budget := mustOpenDevice(t)
	drawn, trials := uint64(0), 60
	if testing.Short() {
		trials = 12
	}
	for i := range trials {
		on := on
		if i%4 == 0 {
			on = wideDevice{on}
		}
		drawn += newTrial(rand.New(rand.NewPCG(1, uint64(i)))).compare(t, on, budget)
	}
	if drawn < uint64(2*trials) {
		t.Errorf("%d of %d batches were drawn on the device", drawn, 3*trials)
	}
}

// TestWrongSeeds: the host's sampler says what is wrong, in the same words.
func TestWrongSeeds(t *testing.T) {
	on, _, budget := mustOpenDevice(t)
	c := newTrial(rand.New(rand.NewPCG(1, 3)))
	g, err := Open(t.Context(), on, c.topos, c.draws, c.config.Seed, budget)
	if err != nil {
		t.Fatal(err)
	}
	host := c.host(t)
	d := g.Drawer(host)
	for _, seeds := range [][]sample.NodeID{{}, {c.seeds[0], c.seeds[0]}, {1 << 31}} {
		b := sample.Batch{Seeds: seeds}
		want, got := host.Draw(t.Context(), 0, &b), d.Draw(t.Context(), 0, &b)
		if want == nil || got == nil || want.Error() != got.Error() {
			t.Errorf("seeds %v: %v, on the host %v", seeds, got, want)
		}
	}
	if drawn, again := g.Lap(); drawn != 0 || again != 0 {
		t.Errorf("%d batches drawn, %d again", drawn, again)
	}
	if err := errors.Join(d.Close(), g.Close()); err != nil {
		t.Error(err)
	}
}

// TestFaults: a call of the driver that fails is an error, and leaves no memory counted.
func TestFaults(t *testing.T) {
	c := newTrial(rand.New(rand.NewPCG(1, 3)))
	for _, knob := range []string{"fail_alloc", "fail_lock", "fail_launch", "fail_copy"} {
		for n := range int64(3) {
			t.Run(fmt.Sprint(knob, n), func(t *testing.T) {
				on, emulator, budget := mustOpenDevice(t)
				emulator.Set(t, knob, n+1)
				err := c.draw(t, on, budget)
				if err == nil && !(knob == "fail_lock" && n >= Workers) {
					t.Error("no error")
				}
			})
		}
	}
}

// draw draws a batch on the device.
func (c *trial) draw(t *testing.T, on backend.Device, budget *mem.Budget) error {
	g, err := Open(t.Context(), on, c.topos, c.draws, c.config.Seed, budget)
	if err != nil {
		return err
	}
	d := g.Drawer(c.host(t))
	err = d.Draw(t.Context(), 0, &sample.Batch{Seeds: c.seeds})
	return errors.Join(err, d.Close(), g.Close())
}
