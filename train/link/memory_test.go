package link

import (
	"strings"
	"testing"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/train/link/encode"
	"gdb/train/link/rank"
	"gdb/train/setting"
)

// handSettings are of a training whose memory is worked out by hand, and handMeta is its graph:
// batches of 100 edges with 20 negatives and vectors of 10 numbers.
func handSettings(sampling string, negatives int) *Config {
	c := circleConfig("distmult")
	c.Dim, c.Batch, c.Negatives, c.NegativeSampling = 10, 100, negatives, sampling
	return &c
}

func handMeta() *kv.Meta {
	return &kv.Meta{Nodes: 1000, Edges: 700, EdgeTypes: make([]string, 300),
		Features:   []kv.RowsMeta{{Dim: 3}},
		Directions: []string{"in", "out"},
		EdgeSplits: []kv.EdgeSplitMeta{{Name: "train", Count: 500}, {Name: "test", Count: 100}}}
}

// TestStepMemory works out what a step takes: scores with their gradients, and rows with theirs.
func TestStepMemory(t *testing.T) {
	for _, x := range []struct {
		sampling  string
		negatives int
		rows      int64 // of entities that are read
		floats    int64
		device    int64
	}{
		{setting.NegativesUniform, 20, 2 * (100 + 20), 2*100*20 + 2*(800+80)*10,
			(3*240+4*200)*10 + 200*28 + 2*(4*240+200*8)},
		{setting.NegativesBatch, 20, 4 * 100, 2*100*100 + 2*(800+80)*10,
			(3*400+4*200)*10 + 200*108 + 2*(4*400+200*18)},
		{setting.NegativesChunked, 20, 2 * (100 + 10*20), 2*100*20 + 2*(800+80+3*10*20)*10,
			(3*600+4*200)*10 + 200*28 + 2*(4*600+200*8)},
		{setting.NegativesEdge, 20, 2 * 100 * 21, 2*100*20 + 2*(800+80+3*100*20)*10,
			(3*4200+4*200)*10 + 200*28 + 2*(4*4200+200*8)},
		{setting.NegativesUniform, setting.NegativesAll, 2 * 100, 2*100*1000 + 2*(400+2000)*10,
			1000*10 + (3*200+4*100)*10 + 100*2008 + 2*(4*200+100*256)},
	} {
		c := handSettings(x.sampling, x.negatives)
		if got := stepRows(c, 1); got != x.rows {
			t.Errorf("%s, %d negatives: %d rows, want %d", x.sampling, x.negatives, got, x.rows)
		}
		if got, want := stepBytes(c, 1000, 1), 4*x.floats+rank.Bytes(10); got != want {
			t.Errorf("%s, %d negatives: %d bytes, want %d", x.sampling, x.negatives, got, want)
		}
		c.Staleness = 2 // three steps more, with copies of their rows
		want := 4*(4*x.floats) + 3*4*10*x.rows + rank.Bytes(10)
		if got := stepBytes(c, 1000, 1); got != want {
			t.Errorf("%s, %d negatives, staleness: %d bytes, want %d", x.sampling, x.negatives, got,
				want)
		}
		draws := map[string]int64{setting.NegativesUniform: 23, setting.NegativesChunked: 203,
			setting.NegativesEdge: 2000}[x.sampling]
		if got := stepRows(c, 4); x.negatives == 20 && draws > 0 && got != 2*(100+draws) {
			t.Errorf("%s, four pairs of types: %d rows", x.sampling, got)
		}
		if got, want := deviceStepBytes(c, 1000, 1), 4*x.device*9/8+1<<20; got != want {
			t.Errorf("%s, %d negatives: %d bytes of a device, want %d", x.sampling, x.negatives,
				got, want)
		}
	}
}

// TestTrainingMemory works out what a training takes with all vectors in memory, and beside those
// on disk.
func TestTrainingMemory(t *testing.T) {
	c, m := handSettings(setting.NegativesUniform, 20), handMeta()
	step := stepBytes(c, 0, 1)
	// 600 edges, each with two indices.
	want := 3*4*1000*10 + mem.HeapCost(600*(12+2*28)+step)
	if got := memoryBytes(c, m); got != want {
		t.Errorf("%d bytes with all in memory, want %d", got, want)
	}
	for reciprocal, table := range map[bool]int64{false: 12288, true: 24576} { // 12000, 24000
		c.Reciprocal = reciprocal
		want := mem.HeapCost(100*76+step) + 3*table + 3*4096
		if got, err := besideBytes(c, m); err != nil || got != want {
			t.Errorf("reciprocal %v: %d bytes beside, want %d: %v", reciprocal, got, want, err)
		}
	}
	c.Encoder, c.Fanout, c.EncoderInput = "sage", "3", setting.EncoderBoth
	want = 3*40960 + mem.HeapCost(encode.BatchBytes(c, m, 240)) + 600*12 + 1200*28 +
		12288 + 2*(4*700+8*1000)
	if got := encodedBytes(c, m); got != want {
		t.Errorf("%d bytes of an encoder, want %d", got, want)
	}
}

// TestDeviceMemory works out what a training takes of a device.
func TestDeviceMemory(t *testing.T) {
	m := handMeta()
	for name, x := range map[string]struct {
		order, encoder string
		vectors, more  int64
	}{
		"all in memory": {setting.OrderMemory, setting.EncoderNone, 600 + 1000, 0},
		"on disk": {setting.OrderTwoLevel, setting.EncoderNone, 600,
			3 * 4 * 2 * 240 * 10 * 9 / 8},
		"an encoder": {setting.OrderMemory, "sage", 600, 8 * 4 * (10 + 10) * 1000},
	} {
		c := handSettings(setting.NegativesUniform, 20)
		c.Order, c.Encoder, c.Fanout, c.Reciprocal = x.order, x.encoder, "3", true
		parts, err := deviceParts(c, m)
		if err != nil {
			t.Fatal(err)
		}
		step := max(deviceStepBytes(c, 1000, 1),
			rank.DeviceBytes(10, 1000, name == "all in memory"))
		if got, want := parts[0].Bytes, 4*2*10*x.vectors; got != want {
			t.Errorf("%s: vectors take %d bytes, want %d", name, got, want)
		}
		if got := parts[1].Bytes; got != step+x.more {
			t.Errorf("%s: steps take %d bytes, want %d and %d", name, got, step, x.more)
		}
	}
}

// TestTableIsCounted: a table takes its values and as much for each array of state.
func TestTableIsCounted(t *testing.T) {
	budget := mem.NewBudget(0)
	table, err := newTable("rows", 3000, 10, 2, budget)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := budget.Used(), 3*mem.ArenaBytes(4*3000*10); got != want {
		t.Errorf("%d bytes, want %d", got, want)
	}
	if len(table.Values) != 30000 || len(table.State) != 2 || len(table.State[1]) != 30000 {
		t.Errorf("%d values, and %d arrays of state", len(table.Values), len(table.State))
	}
	if err := table.Close(); err != nil || budget.Used() != 0 {
		t.Errorf("%d bytes are held: %v", budget.Used(), err)
	}
}

// TestOpenWithLittleMemory: a training whose parts do not fit one after the other says which does
// not.
func TestOpenWithLittleMemory(t *testing.T) {
	store, found := mustCircle(t, true), map[string]bool{}
	for more := int64(0); more < 4<<20; more += 4096 {
		c := circleConfig("distmult")
		c.Order, c.Memory = setting.OrderMemory, mem.ProcessBytes+more
		tr := newTrainer(store, mustDevice(t), c)
		err := tr.open(t.Context())
		if err == nil {
			break
		}
		for _, what := range []string{"best vectors", "a step"} {
			found[what] = found[what] || strings.Contains(err.Error(), what)
		}
	}
	if !found["best vectors"] || !found["a step"] {
		t.Errorf("not told: %v", found)
	}
}
