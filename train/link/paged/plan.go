package paged

import (
	"fmt"
	"math"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/edgefile"
	"gdb/layout/partition"
	"gdb/train/link/entities"
)

const (
	// tripleBytes is what an edge takes in memory. The edges of two parts are in memory: of the
	// part that is trained on, and of the next.
	tripleBytes = 12
	// streamBytes is the size of the buffers with which edges are read.
	streamBytes = 8 << 20
)

// Want says what to plan for. Where Parts, Capacity or Logical is 0 the rules choose it.
type Want struct {
	Policy                   partition.Policy // "" is order.TwoLevel
	Parts, Capacity, Logical int
	// Dim is the number of columns of vectors, and State how many more arrays of that size the
	// optimizer keeps.
	Dim, State int
	// Extra is how many bytes a row of the buffer takes in addition, and EdgeExtra how many an edge
	// between the partitions in memory takes.
	Extra, EdgeExtra int
	// TrainParts returns, for order.Sequential, how many of a number of partitions have the
	// training nodes.
	TrainParts func(parts int) int
	Seed       uint64
	// EdgeSeconds is how long computing an edge is assumed to take.
	EdgeSeconds float64
	// Memory is how many bytes the plan may take in all, as the budget of a process counts them.
	Memory int64
}

// edgeBytes returns what an edge between the partitions in memory takes.
func (w *Want) edgeBytes() int64 { return 2*tripleBytes + int64(w.EdgeExtra) }

// Plan says how a training goes through its partitions.
type Plan struct {
	Order  partition.OrderSpec
	Frames int // partitions that memory has room for: a set, and what enters next
	// EdgesOnce is how many edges a part has at most.
	EdgesOnce int
	Parts     []mem.Part // of the memory
	// Lines give the reasons for the choice.
	Lines []string

	dim, state int
}

// NewPlan chooses what was not given, by the rules of order.Choose, so that all of it
// fits in memory.
func NewPlan(m *kv.Meta, w Want) (*Plan, error) {
	if w.Policy == "" {
		w.Policy = partition.TwoLevel
	}
	if w.Memory <= 0 {
		return nil, fmt.Errorf("train: steps and relations leave no memory for partitions: %s are "+
			"missing; give more memory, or a smaller --batch or fewer "+
			"--negatives", mem.FormatSize(-w.Memory))
	}
	edges := m.SplitEdges("train")
	f := partition.Facts{Nodes: m.Nodes, RowBytes: 4 * int64(w.Dim) * int64(1+w.State),
		Edges:      edges,
		EdgeBytes:  int64(edgefile.EdgeBytes(len(m.EdgeTypes) > 0)),
		EdgeMemory: mem.HeapCost(w.edgeBytes()), Memory: w.Memory,
		BlockBytes: layout.PageBytes, Prefetch: true,
		NodeTask: w.Policy == partition.Dispersed || w.Policy == partition.Sequential,
		OneByOne: w.Policy == partition.Beta || w.Policy == partition.Sequential, Parts: w.Parts,
		Capacity: w.Capacity, Logical: w.Logical, EdgeSeconds: w.EdgeSeconds}
	const tries = 30
	for try := 0; ; try++ {
		c, err := partition.ChooseOrder(f)
		if err != nil {
			return nil, err
		}
		p, err := planOf(m, &w, &c, edges)
		if err != nil {
			return nil, err
		}
		over := p.Bytes() - w.Memory
		if over <= 0 {
			return p, nil
		}
		if f.Memory -= over; f.Memory <= 0 || try == tries {
			return nil, fmt.Errorf("train: the partitions, their edges and an evaluation take %s, "+
				"and %s are left for them: give more memory, or take vectors of fewer columns",
				mem.FormatSize(p.Bytes()), mem.FormatSize(w.Memory))
		}
	}
}

// planOf returns the plan for a choice.
func planOf(m *kv.Meta, w *Want, c *partition.Choice, edges uint64) (*Plan, error) {
	p := &Plan{Order: partition.OrderSpec{Policy: w.Policy, Parts: c.Parts, Capacity: c.Capacity,
		Logical: c.Logical, Seed: w.Seed}, Lines: c.Lines, dim: w.Dim, state: w.State}
	if w.TrainParts != nil {
		p.Order.TrainParts = w.TrainParts(c.Parts)
	}
	if c.InMemory {
		p.Order.Policy = partition.InMemory
	}
	if _, err := partition.NewOrder(p.Order); err != nil {
		return nil, err
	}
	switch p.Order.Policy {
	case partition.InMemory, partition.Sequential:
		p.Frames = c.Capacity
	case partition.Beta:
		p.Frames = c.Capacity + 1
	default:
		p.Frames = min(c.Parts, c.Capacity+(c.Parts+c.Logical-1)/c.Logical)
	}
	share := float64(c.Capacity) / float64(c.Parts)
	p.EdgesOnce = int(math.Ceil(1.25*share*share*float64(edges))) + 1
	p.EdgesOnce = min(p.EdgesOnce, int(edges))
	spec, err := p.spec(m)
	if err != nil {
		return nil, err
	}
	parts := int64(c.Parts)
	frames := framesBytes(&spec, p.Frames) +
		mem.HeapCost(int64(w.Extra)*int64(p.Frames)*int64(spec.FrameRows()))
	p.Parts = mem.Divide(w.Memory, []mem.Component{mem.Fixed("partitions", "", frames),
		mem.Fixed("edges", "", mem.HeapCost(w.edgeBytes()*int64(p.EdgesOnce))+streamBytes),
		mem.Fixed("places of buckets", "", mem.HeapCost(16*(parts*parts+1))),
		mem.Fixed("known answers", "", mem.HeapCost(knownBytes(int64(edges), parts)))}).Parts
	return p, nil
}

// knownBytes returns about what an evaluation holds of the edges of one of parts partitions.
func knownBytes(edges, parts int64) int64 {
	return entities.KnownBytes(edges, parts) + entities.PassBytes
}

// Bytes returns the memory that the plan takes.
func (p *Plan) Bytes() int64 { return (&mem.Pool{Parts: p.Parts}).Taken() }

// DiskBytes returns the most that the files of partitions take.
func (p *Plan) DiskBytes(m *kv.Meta) (int64, error) {
	spec, err := p.spec(m)
	return spec.DiskBytes(p.Order.Capacity), err
}

// Map returns how nodes are assigned to partitions.
func (p *Plan) Map(m *kv.Meta) (partition.Map, error) {
	return partition.New(partition.Spec{Nodes: m.Nodes, Parts: p.Order.Parts, Random: true,
		Seed: p.Order.Seed})
}

// spec returns the description of the partitions' files.
func (p *Plan) spec(m *kv.Meta) (s entities.FileSpec, err error) {
	s = entities.FileSpec{UUID: m.UUID, Columns: p.dim, State: p.state}
	s.Map, err = p.Map(m)
	return s, err
}

// PartBytes returns a function that tells what each partition takes on disk.
func (p *Plan) PartBytes(m *kv.Meta) (func(part int) int64, error) {
	spec, err := p.spec(m)
	return spec.PartBytes, err
}

// EdgeBytes returns what the edges of train take on disk.
func (p *Plan) EdgeBytes(m *kv.Meta) int64 {
	return int64(m.SplitEdges("train")) * int64(edgefile.EdgeBytes(len(m.EdgeTypes) > 0))
}
