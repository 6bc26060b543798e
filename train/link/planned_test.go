package link

import (
	"slices"
	"strings"
	"testing"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/train/setting"
)

// TestPlanInMemory: with all vectors in memory a plan has these, the state of the optimizer and the
// best ones, the program, and all else that memoryBytes counts.
func TestPlanInMemory(t *testing.T) {
	m := mustCircle(t, true).Meta()
	for optimizer, arrays := range map[string]int64{"adagrad": 3, "adam": 4} {
		c := circleConfig("distmult")
		c.Optimizer, c.Order = optimizer, setting.OrderMemory
		p, err := Plan(c, m)
		if err != nil {
			t.Fatal(err)
		}
		rows := arrays * 4 * int64(m.Nodes) * int64(c.Dim)
		if len(p.Memory) != 3 || p.Memory[0].Bytes != mem.ProcessBytes ||
			p.Memory[1].Bytes != rows || p.Memory[1].Bytes+p.Memory[2].Bytes != memoryBytes(&c, m) {
			t.Errorf("%s: %+v, want vectors of %d bytes of %d", optimizer, p.Memory, rows,
				memoryBytes(&c, m))
		}
		if want := c.Memory - mem.ProcessBytes - memoryBytes(&c, m); p.Pool().Left() != want ||
			p.Limit != c.Memory || p.Disk != nil || p.Order != setting.OrderMemory ||
			len(p.Why) != 1 || !strings.Contains(p.Why[0], "fit in memory") {
			t.Errorf("%s: %d bytes are left, want %d: %+v", optimizer, p.Pool().Left(), want, p)
		}
		c.Memory = mem.ProcessBytes + memoryBytes(&c, m) - 1
		if p, err = Plan(c, m); err != nil || p.Pool().Left() != -1 ||
			!strings.Contains(strings.Join(p.Why, ""), "will be refused") {
			t.Errorf("%s, with a byte too little: %+v, %v", optimizer, p, err)
		}
	}
}

// TestPlanOnDisk: with vectors on disk a plan has the sets of the first epoch, in which each bucket
// is trained on once, and what it reads and writes.
func TestPlanOnDisk(t *testing.T) {
	m := mustCircle(t, true).Meta()
	c := diskConfig("distmult")
	p, err := Plan(c, m)
	if err != nil {
		t.Fatal(err)
	}
	d := p.Disk
	if d == nil || d.Partitions != 8 || d.InMemory != 4 || d.Logical != 4 || d.Bias == nil ||
		len(d.Sets) != len(d.Buckets) {
		t.Fatalf("%+v", d)
	}
	buckets, loads, before := 0, 0, []int(nil)
	for i, set := range d.Sets {
		buckets += d.Buckets[i]
		for _, part := range set {
			if i > 0 && !slices.Contains(before, part) {
				loads++
			}
		}
		before = set
	}
	if buckets != 64 || loads != d.Swaps || loads == 0 {
		t.Errorf("%d buckets of 64, %d partitions are loaded after the first set, %d in the plan",
			buckets, loads, d.Swaps)
	}
	train := uint64(0)
	for _, s := range m.EdgeSplits {
		if s.Name == "train" {
			train = s.Count
		}
	}
	plan, err := planOf(&c, m)
	if err != nil {
		t.Fatal(err)
	}
	if d.Edges != plan.EdgeBytes(m) || d.Edges < int64(train)*8 {
		t.Errorf("%d bytes of edges for %d edges, want %d", d.Edges, train, plan.EdgeBytes(m))
	}
	if bytes, err := plan.DiskBytes(m); err != nil || d.Bytes != bytes || d.Read < d.Written {
		t.Errorf("%+v, want files of %d bytes: %v", d, bytes, err)
	}
	if want := batchOf(&c, plan, int(m.Nodes)); d.Batch != want {
		t.Errorf("batches of %d edges, want %d", d.Batch, want)
	}
	c.Batch = 1000 // more than partitions are worth
	if p, err = Plan(c, m); err != nil || p.Disk.Batch >= 1000 ||
		!strings.Contains(strings.Join(p.Why, "\n"), "not 1000") {
		t.Errorf("%+v, %v", p, err)
	}
	c = diskConfig("distmult")
	c.Encoder, c.Fanout = "sage", "3"
	encoded, err := Plan(c, m)
	if err != nil {
		t.Fatal(err)
	}
	planE, err := planOf(&c, m)
	if err != nil {
		t.Fatal(err)
	}
	want := planE.EdgeBytes(m) + neighborBytes(planE, encoded.Disk, m)
	if encoded.Disk.Edges != want {
		t.Errorf("%d bytes of edges with an encoder, want %d", encoded.Disk.Edges, want)
	}
}

// TestNeighborBytes: lists take the buckets of a set that the set before did not have.
func TestNeighborBytes(t *testing.T) {
	m := mustCircle(t, true).Meta()
	c := diskConfig("distmult")
	plan, err := planOf(&c, m)
	if err != nil {
		t.Fatal(err)
	}
	d := &PlannedDisk{Partitions: 8, Sets: [][]int{{0, 1, 2, 3}, {0, 1, 4, 5}, {6, 7}}}
	pairs := 16 + (16 - 4) + 4
	if got, want := neighborBytes(plan, d, m), plan.EdgeBytes(m)*int64(pairs)/64; got != want {
		t.Errorf("%d bytes, want %d of 64 parts of %d, %d", got, pairs, plan.EdgeBytes(m), want)
	}
}

// TestTrainParts: if the training nodes come first, they fill the first partitions.
func TestTrainParts(t *testing.T) {
	for _, c := range []struct {
		nodes, train uint64
		parts, want  int
	}{{100, 30, 10, 3}, {100, 31, 10, 4}, {100, 100, 10, 10}, {105, 104, 10, 10}, {5, 3, 10, 3}} {
		m := &kv.Meta{Nodes: c.nodes, Splits: []kv.SplitMeta{{Name: "val", Count: 90},
			{Name: "train", Count: c.train}}}
		if got := trainParts(m, c.parts); got != c.want {
			t.Errorf("%+v: %d partitions", c, got)
		}
	}
	if got := trainParts(&kv.Meta{Nodes: 100}, 10); got != 1 {
		t.Errorf("%d partitions without training nodes", got)
	}
}

// TestDeviceIsPlanned: of a device the plan lists vectors and steps; an encoder leaves the vectors
// of entities on the host.
func TestDeviceIsPlanned(t *testing.T) {
	c, m := circleConfig("distmult"), &kv.Meta{Nodes: 1 << 20}
	c.Dim, c.Reciprocal, c.Backend, c.Order = 64, false, setting.BackendCUDA, setting.OrderMemory
	c.Fanout = "3"
	for encoder, rows := range map[string]int64{setting.EncoderNone: 1<<20 + 1, "sage": 1} {
		c.Encoder = encoder
		parts, err := deviceParts(&c, m)
		if err != nil || parts[0].Bytes != 2*4*64*rows || parts[1].Bytes <= 0 {
			t.Errorf("encoder %s: %v, %v", encoder, parts, err)
		}
	}
}

// TestEncoderIsPlannedToo: with vectors on disk an encoder takes memory beside all else.
func TestEncoderIsPlannedToo(t *testing.T) {
	m := mustCircle(t, true).Meta()
	c := diskConfig("distmult")
	plain, err := besideBytes(&c, m)
	if err != nil {
		t.Fatal(err)
	}
	if encodedBytes(&c, m) != 0 {
		t.Errorf("%d bytes without an encoder", encodedBytes(&c, m))
	}
	c.Encoder, c.Fanout = "sage", "3"
	encoder := encodedBytes(&c, m)
	if got, err := besideBytes(&c, m); err != nil || encoder <= 0 || got != plain+encoder {
		t.Errorf("%d bytes, want %d and %d of the encoder: %v", got, plain, encoder, err)
	}
}
