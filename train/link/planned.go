package link

import (
	"fmt"
	"slices"

	"gdb/compute/backend"
	"gdb/compute/backend/cuda"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout/edgefile"
	"gdb/layout/partition"
	"gdb/train/link/paged"
	"gdb/train/runs"
	"gdb/train/setting"
)

// Planned describes what a training would do, for people to read.
type Planned struct {
	// Order is memory, beta, tlbeta, dispersed or sequential.
	Order string `json:"order"`
	// Limit is the memory of the process, and Memory lists what takes it.
	Limit  int64        `json:"memory_bytes"`
	Memory []mem.Part   `json:"memory"`
	Disk   *PlannedDisk `json:"disk,omitempty"` // nil if vectors are in memory
	// Device lists what is taken of a device, for --backend cuda; nil without.
	Device []mem.Part `json:"device,omitempty"`
	// Why gives the reasons, one line each.
	Why []string `json:"why,omitempty"`
}

// PlannedDisk describes an epoch with vectors on disk: the first one, assuming that all buckets
// have the same size.
type PlannedDisk struct {
	Partitions int   `json:"partitions"`
	InMemory   int   `json:"partitions_in_memory"`
	Logical    int   `json:"logical_partitions"`
	Batch      int   `json:"batch"` // edges in a step
	Bytes      int64 `json:"bytes"` // the most that files of vectors take
	// Sets lists the partitions that are in memory together. Swaps is how many are loaded after the
	// first set, and Buckets how many edge buckets are trained on with each set.
	Sets    [][]int `json:"sets"`
	Buckets []int   `json:"buckets"`
	Swaps   int     `json:"swaps"`
	Read    int64   `json:"read_bytes"`
	Written int64   `json:"written_bytes"`
	Edges   int64   `json:"edge_bytes"`
	// Bias is the Edge Permutation Bias, for orders of links.
	Bias *float64 `json:"epb,omitempty"`
}

// Pool returns the memory of the process, and what takes it.
func (p *Planned) Pool() *mem.Pool { return &mem.Pool{Bytes: p.Limit, Parts: p.Memory} }

// Plan describes what a training would do, without running any of it. The order may also be one of
// setting.BufferedOrders.
func Plan(c Config, m *kv.Meta) (*Planned, error) {
	if err := edgefile.Check(m); err != nil {
		return nil, err
	}
	var plan *paged.Plan
	var err error
	if slices.Contains(setting.BufferedOrders, c.Order) {
		plan, err = planOf(&c, m)
	} else if err = checkDecoder(&c, m); err == nil {
		plan, err = MakePlan(&c, m)
	}
	if err != nil {
		return nil, err
	}
	out := &Planned{Order: c.Order, Limit: c.Memory}
	if cuda.Chosen(c.Backend, c.Device) == backend.CUDA {
		if out.Device, err = deviceParts(&c, m); err != nil {
			return nil, err
		}
	}
	if plan == nil {
		return out, out.inMemory(&c, m)
	}
	out.Memory, out.Why = plan.Parts, plan.Lines
	if out.Disk, err = plannedDisk(plan, m); err != nil {
		return nil, err
	}
	if c.Encodes() {
		out.Disk.Edges += neighborBytes(plan, out.Disk, m)
	}
	if out.Disk.Batch = batchOf(&c, plan, int(m.Nodes)); out.Disk.Batch < c.Batch {
		out.Why = append(out.Why, fmt.Sprintf("batches of %d edges, not %d: an entity is in one "+
			"as often as it would be with all in memory", out.Disk.Batch, c.Batch))
	}
	return out, nil
}

// inMemory fills in the plan of a training with all vectors in memory.
func (p *Planned) inMemory(c *Config, m *kv.Meta) error {
	arrays := int64(2 + len(runs.LinkState(c.Optimizer)))
	rows := arrays * 4 * int64(m.Nodes) * int64(c.Dim)
	p.Memory = []mem.Part{{Name: "program", Bytes: mem.ProcessBytes},
		{Name: "vectors", Bytes: rows},
		{Name: "edges, steps", Bytes: memoryBytes(c, m) - rows}}
	p.Why = []string{"all vectors, the state of the optimizer and the best ones fit in memory"}
	if p.Pool().Left() < 0 {
		p.Why = []string{fmt.Sprintf("vectors do not fit in memory, and --order %s, or settings "+
			"that need all of them, keeps them there: the run will be refused", c.Order)}
	}
	return nil
}

// plannedDisk works out the first epoch.
func plannedDisk(plan *paged.Plan, m *kv.Meta) (*PlannedDisk, error) {
	o, err := partition.NewOrder(plan.Order)
	if err != nil {
		return nil, err
	}
	d := &PlannedDisk{Partitions: plan.Order.Parts, InMemory: plan.Order.Capacity,
		Logical: plan.Order.Logical}
	if d.Bytes, err = plan.DiskBytes(m); err != nil {
		return nil, err
	}
	sets := o.Epoch(0)
	parts := int64(d.Partitions)
	partBytes, err := plan.PartBytes(m)
	if err != nil {
		return nil, err
	}
	bytes := plan.EdgeBytes(m)
	links := plan.Order.Policy != partition.Dispersed && plan.Order.Policy != partition.Sequential
	cost := sets.Cost(partBytes, func(partition.Bucket) int64 { return bytes / (parts * parts) },
		links)
	d.Swaps, d.Read, d.Written, d.Edges = cost.Swaps, cost.ReadBytes, cost.WriteBytes,
		cost.EdgeBytes
	if links { // each bucket is read once, when it is trained on
		bias := sets.Bias(nil)
		d.Edges, d.Bias = bytes, &bias
	}
	for i := range sets.Sets() {
		d.Sets = append(d.Sets, sets.Partitions(i))
		d.Buckets = append(d.Buckets, len(sets.Buckets(i)))
	}
	return d, nil
}

// neighborBytes returns how many bytes of edges an epoch reads for the lists of an encoder: for
// each set the buckets that the set before did not have.
func neighborBytes(plan *paged.Plan, d *PlannedDisk, m *kv.Meta) int64 {
	pairs, before := 0, []int(nil)
	for _, set := range d.Sets {
		stay := 0
		for _, part := range set {
			if slices.Contains(before, part) {
				stay++
			}
		}
		pairs += len(set)*len(set) - stay*stay
		before = set
	}
	return plan.EdgeBytes(m) * int64(pairs) / int64(d.Partitions*d.Partitions)
}

// trainParts returns how many partitions the training nodes fill if they come first, as with
// order.Sequential.
func trainParts(m *kv.Meta, parts int) int {
	for _, s := range m.Splits {
		if s.Name == "train" {
			each := max(1, m.Nodes/uint64(parts))
			return int(min(uint64(parts), (s.Count+each-1)/each))
		}
	}
	return 1
}
