package bench

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"gdb/blockdev"
	"gdb/blockdev/devtest"
	"gdb/internal/files"
	"gdb/internal/rng"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/layout/rowfile"
	"gdb/layout/topology"
	"gdb/train"
	"gdb/train/setting"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// mustStore builds a store of random edges with a hub on the disk, where files can be mapped.
func mustStore(t *testing.T, nodes, dim int, uuid byte) *layout.Store {
	t.Helper()
	draw := rng.NewStream(4)
	g := layouttest.Graph{Nodes: nodes, Dim: dim, Classes: []string{"a", "b"}, UUID: kv.UUID{uuid},
		Partitions: 4, Splits: map[string][]layout.NodeID{}}
	for v := range nodes {
		g.Labels = append(g.Labels, int32(v%2))
		for range dim {
			g.Features = append(g.Features, float32(draw.Float64()))
		}
		for range v % 7 {
			src := layout.NodeID(draw.Below(uint64(nodes)))
			g.Edges = append(g.Edges, layouttest.Edge{Src: src, Dst: layout.NodeID(v)})
		}
		g.Edges = append(g.Edges, layouttest.Edge{Src: layout.NodeID(v), Dst: 3})
		name := []string{"train", "val", "test"}[draw.Below(3)]
		g.Splits[name] = append(g.Splits[name], layout.NodeID(v))
	}
	return layouttest.Build(t, vfs.Default, t.TempDir()+"/store", g)
}

func mustOpenDevice(t *testing.T) blockdev.Device {
	t.Helper()
	return devtest.Open(t, blockdev.Options{})
}

func trainJob(s *layout.Store, system, model string) TrainJob {
	c := setting.Default()
	c.Fanout, c.Hidden, c.Batch, c.Epochs, c.Threads = []int{4, 3}, 8, 20, 2, 2
	c.Memory = 1 << 30
	p := TrainPoint{Config: c}
	c, err := p.config(system)
	if err != nil {
		panic(err)
	}
	if system != "memory" {
		c.FeatureCache = 8 << 10 // the graph is small
	}
	return TrainJob{Store: s.Path(), System: system, Model: model, Config: c}
}

// TestTrainSystems: all systems load the same batches.
func TestTrainSystems(t *testing.T) {
	s, ctx := mustStore(t, 500, 5, 1), context.Background()
	if _, err := makeCSC(ctx, s, mustOpenDevice(t)); err != nil {
		t.Fatal(err)
	}
	var crc, loss any
	for _, model := range []string{"none", "sage"} {
		for _, name := range []string{"mmap", "none", "static", "sieve", "belady", "auto",
			"memory"} {
			row, err := TrainSystem(ctx, trainJob(s, name, model))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			epochs := row["epochs"].([]Row)
			if crc == nil {
				crc = row["batches_crc"]
			}
			if loss == nil {
				loss = epochs[1]["loss"]
			}
			if row["batches_crc"] != crc || epochs[1]["loss"] != loss {
				t.Errorf("%s: batches %v and loss %v, want %v and %v", name, row["batches_crc"],
					epochs[1]["loss"], crc, loss)
			}
			if len(epochs) != 2 || row["epoch_s"].(float64) <= 0 {
				t.Errorf("%s: %d epochs, %v s", name, len(epochs), row["epoch_s"])
			}
			sum := epochs[0]["epoch_s"].(float64) + epochs[1]["epoch_s"].(float64)
			if math.Abs(sum/2-row["epoch_s"].(float64)) > 1e-6 {
				t.Errorf("%s: the mean of %v is %v", name, epochs, row["epoch_s"])
			}
			sum += row["open_s"].(float64)
			if math.Abs(sum-row["total_s"].(float64)) > 1e-6 {
				t.Errorf("%s: in all %v s, want %v", name, row["total_s"], sum)
			}
			if (row["compute_s"] == nil) != (model == "none") {
				t.Errorf("%s with model %s: compute_s %v", name, model, row["compute_s"])
			}
			if (row["hit_ratio"] == nil) != (name == "mmap") || name == "memory" &&
				row["hit_ratio"] != 1.0 {
				t.Errorf("%s: hit_ratio %v", name, row["hit_ratio"])
			}
		}
	}
}

// TestMacroSystem: macro-batches are measured too, with reads that are slowed down.
func TestMacroSystem(t *testing.T) {
	s := mustStore(t, 400, 5, 1)
	job := trainJob(s, "macro", "sage")
	job.Config.PartitionsInMemory, job.Pace = 1, blockdev.Pace{Reads: 1e4}
	row, err := TrainSystem(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	if row["batches"].(int) < 4 || row["epoch_s"].(float64) <= 0 {
		t.Errorf("%v batches, epoch %v s", row["batches"], row["epoch_s"])
	}
}

func TestSameBatches(t *testing.T) {
	row := func(system, crc string) Row { return Row{"system": system, "batches_crc": crc} }
	note, err := sameBatches([]Row{row("macro", "z"), row("mmap", "a"), {"system": "static"},
		row("auto", "a")})
	if err != nil || note != "2 systems loaded the same batches (checksum a)" {
		t.Errorf("%q, %v", note, err)
	}
	if note, err := sameBatches([]Row{row("mmap", "a")}); note != "" || err != nil {
		t.Errorf("one system: %q, %v", note, err)
	}
	_, err = sameBatches([]Row{row("mmap", "a"), row("static", "a"), row("auto", "b")})
	if want := "auto loaded other batches (checksum b) than mmap"; err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("error %v", err)
	}
}

// TestHalfHoldsTwice: a cache of rows that are read as bfloat16 has the hits of one of float32 that
// is twice as large.
func TestHalfHoldsTwice(t *testing.T) {
	s := mustStore(t, 2000, 400, 1)
	hits := func(precision string, bytes int64) float64 {
		job := trainJob(s, "static", "none")
		job.Config.Precision, job.Config.FeatureCache = precision, bytes
		row, err := TrainSystem(context.Background(), job)
		if err != nil {
			t.Fatal(err)
		}
		return row["hit_ratio"].(float64)
	}
	const bytes = 256 << 10
	half, once, twice := hits("bf16", bytes), hits("f32", bytes), hits("f32", 2*bytes)
	if twice < 1.3*once || half < 0.9*twice {
		t.Errorf("%.3f of the rows are found in bf16, %.3f in float32, %.3f in twice the memory",
			half, once, twice)
	}
}

func TestTrainRefuses(t *testing.T) {
	good := setting.Default()
	bad := good
	bad.Fanout = nil
	half := good
	half.Precision = "bf16"
	at := func(configs ...train.Config) (points []TrainPoint) {
		for _, c := range configs {
			points = append(points, TrainPoint{Config: c})
		}
		return points
	}
	for _, c := range []struct {
		opt  TrainOptions
		want string
	}{
		{TrainOptions{Systems: []string{"mmap", "dgl"}, Model: "none", Points: at(good)},
			`unknown system "dgl": known are mmap, none`},
		{TrainOptions{Model: "none", Points: at(good)}, "no --systems"},
		{TrainOptions{Systems: []string{"mmap"}, Model: "gin", Points: at(good)},
			"want none or sage"},
		{TrainOptions{Systems: []string{"auto"}, Model: "none", Points: at(good, bad)},
			"system auto"},
		{TrainOptions{Systems: []string{"auto", "mmap"}, Model: "none", Points: at(half)},
			"mmap reads float32"},
		{TrainOptions{Systems: []string{"macro"}, Model: "none", Points: at(good)},
			"macro has batches of its own"},
		{TrainOptions{Systems: []string{"auto", "mmap"}, Model: "none", Points: at(good),
			Pace: blockdev.Pace{Reads: 9}}, "mmap reads by page faults"},
	} {
		if err := c.opt.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
}

// TestMappedReadsWhatTheStoreHas compares the baseline's readers with the store's own.
func TestMappedReadsWhatTheStoreHas(t *testing.T) {
	ctx := context.Background()
	for _, dim := range []int{3, 128, 300} {
		s, dev := mustStore(t, 2000, dim, 1), mustOpenDevice(t)
		if _, err := makeCSC(ctx, s, dev); err != nil {
			t.Fatal(err)
		}
		m, err := openMapped(s, 5)
		if err != nil {
			t.Fatal(err)
		}
		want, err := topology.Open(ctx, s, dev, layout.In, topology.Options{Resident: true})
		if err != nil {
			t.Fatal(err)
		}
		nodes := make([]layout.NodeID, 2000)
		for i := range nodes {
			nodes[i] = layout.NodeID(1999 - i)
		}
		compareLists(t, m, want, nodes)
		rows, err := rowfile.Open(ctx, s, dev, s.Meta().Features[0], nil)
		if err != nil {
			t.Fatal(err)
		}
		x, y := make([]float32, 2000*dim), make([]float32, 2000*dim)
		if err := rows.Gather(ctx, nodes, nil, x); err != nil {
			t.Fatal(err)
		}
		if err := (mappedRows{m}).Gather(ctx, nodes, y); err != nil || !slices.Equal(x, y) {
			t.Errorf("dim %d: other features, %v", dim, err)
		}
		for _, c := range []func() error{rows.Close, want.Close, m.Close} {
			if err := c(); err != nil {
				t.Error(err)
			}
		}
	}
}

func compareLists(t *testing.T, got, want topology.Reader, nodes []layout.NodeID) {
	t.Helper()
	ctx := context.Background()
	if got.Nodes() != want.Nodes() || got.Edges() != want.Edges() {
		t.Errorf("%d nodes and %d edges, want %d and %d", got.Nodes(), got.Edges(), want.Nodes(),
			want.Edges())
	}
	a, b := got.NewSession(), want.NewSession()
	defer a.Release()
	defer b.Release()
	deg := make([]uint32, len(nodes))
	if err := a.Degrees(ctx, nodes, deg); err != nil {
		t.Fatal(err)
	}
	off, pos := []uint32{0}, []uint32{}
	for _, d := range deg {
		for k := range d { // from the last to the first
			pos = append(pos, d-1-k)
		}
		off = append(off, uint32(len(pos)))
	}
	x, y := make([]layout.NodeID, len(pos)), make([]layout.NodeID, len(pos))
	if err := a.Gather(ctx, off, pos, x); err != nil {
		t.Fatal(err)
	}
	deg2 := make([]uint32, len(nodes))
	if err := b.Degrees(ctx, nodes, deg2); err != nil {
		t.Fatal(err)
	}
	if err := b.Gather(ctx, off, pos, y); err != nil {
		t.Fatal(err)
	}
	la, err := a.Lists(ctx, nodes)
	if err != nil {
		t.Fatal(err)
	}
	lb, err := b.Lists(ctx, nodes)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(deg, deg2) || !slices.Equal(x, y) || !slices.Equal(la.Nbrs, lb.Nbrs) ||
		!slices.Equal(la.Off, lb.Off) {
		t.Error("other lists")
	}
	if err := a.Degrees(ctx, []layout.NodeID{layout.NodeID(want.Nodes())}, deg[:1]); err == nil {
		t.Error("a node that is not there has a degree")
	}
}

func TestCSCIsMadeOnce(t *testing.T) {
	s, dev, ctx := mustStore(t, 300, 2, 1), mustOpenDevice(t), context.Background()
	paths, err := makeCSC(ctx, s, dev)
	if err != nil {
		t.Fatal(err)
	}
	stat := func() time.Time {
		info, err := s.FS().Stat(paths[1])
		if err != nil {
			t.Fatal(err)
		}
		return info.ModTime()
	}
	first := stat()
	if _, err := makeCSC(ctx, s, dev); err != nil || stat() != first {
		t.Errorf("made again: %v", err)
	}
	other := fmt.Sprintf(`{"store":%q,"nodes":300,"edges":1}`, kv.UUID{9})
	if err := files.WriteAtomic(s.FS(), s.Path(cscDir, cscDone), []byte(other)); err != nil {
		t.Fatal(err)
	}
	if _, err := makeCSC(ctx, s, dev); err != nil || stat() == first {
		t.Errorf("arrays of another store were kept: %v", err)
	}
}

func TestTunerTakesTheFastest(t *testing.T) {
	var applied int32
	now := time.Unix(0, 0)
	tu := newTuner([]int{16, 32, 64}, func(n int32) { applied = n })
	tu.now, tu.since = func() time.Time { return now }, now
	for i := range 12 {
		cost := []time.Duration{3, 1, 2}[i%3]
		if i < 3 {
			cost = time.Duration(i) // a cold start that counts for nothing
		}
		now = now.Add(cost)
		tu.next()
	}
	if tu.choose(); applied != 32 {
		t.Errorf("chose %d, want 32", applied)
	}
	if tu = newTuner([]int{16, 32}, func(n int32) { applied = n }); true {
		tu.choose()
	}
	if applied != 16 {
		t.Errorf("chose %d without a measurement, want the first", applied)
	}
}
