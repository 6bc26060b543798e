package paged

import (
	"fmt"
	"math"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/edgefile"
	"gdb/layout/partition"
	"gdb/train/embedding/partfile"
	"gdb/train/link/buffer"
	"gdb/train/link/entities"
	"gdb/train/link/order"
)

const (
	// tripleBytes is what an edge takes in memory. The edges of two parts are there: one that is
	// trained on, and the next.
	tripleBytes = 12
	// streamBytes are the buffers with which edges are read.
	streamBytes = 8 << 20
)

// Want is what is planned for. Of Parts, Capacity and Logical, 0 has the rules choose.
type Want struct {
	Policy                   order.Policy // "" is order.TwoLevel
	Parts, Capacity, Logical int
	// Dim is the width of vectors, of each of which the optimizer has so many arrays more.
	Dim, State int
	// Extra is what a row of the buffer takes besides, in bytes, and EdgeExtra what an edge between
	// the partitions in memory does.
	Extra, EdgeExtra int
	// TrainParts says how many of so many partitions have the training nodes, of order.Sequential.
	TrainParts func(parts int) int
	Seed       uint64
	// EdgeSeconds is what an edge is taken to be computed for.
	EdgeSeconds float64
	// Memory is for all that the plan has, in bytes, as a budget of a process counts them.
	Memory int64
}

// edgeBytes is what an edge between the partitions in memory takes.
func (w *Want) edgeBytes() int64 { return 2*tripleBytes + int64(w.EdgeExtra) }

// Share is a part of the memory.
type Share struct {
	What  string `json:"what"`
	Bytes int64  `json:"bytes"`
}

// Plan is how a training goes through its partitions.
type Plan struct {
	Order  order.Spec
	Frames int // partitions that there is memory for: those of a set, and of the next
	// EdgesOnce is how many edges a part has at most.
	EdgesOnce int
	Shares    []Share
	// Lines are the reasons.
	Lines []string

	dim, state int
}

// NewPlan chooses by the rules of order.Choose what was not given, so that all of it fits.
func NewPlan(m *kv.Meta, w Want) (*Plan, error) {
	if w.Policy == "" {
		w.Policy = order.TwoLevel
	}
	if w.Memory <= 0 {
		return nil, fmt.Errorf("train: steps and relations leave no memory for partitions: %s are "+
			"missing; give more memory, or a smaller --batch or fewer "+
			"--negatives", mem.FormatSize(-w.Memory))
	}
	edges := trainEdges(m)
	f := order.Facts{Nodes: m.Nodes, RowBytes: 4 * int64(w.Dim) * int64(1+w.State), Edges: edges,
		EdgeBytes:  int64(edgefile.EdgeBytes(len(m.EdgeTypes) > 0)),
		EdgeMemory: mem.HeapCost(w.edgeBytes()), Memory: w.Memory,
		BlockBytes: layout.PageBytes, Prefetch: true,
		NodeTask: w.Policy == order.Dispersed || w.Policy == order.Sequential,
		OneByOne: w.Policy == order.Beta || w.Policy == order.Sequential, Parts: w.Parts,
		Capacity: w.Capacity, Logical: w.Logical, EdgeSeconds: w.EdgeSeconds}
	const tries = 30
	for try := 0; ; try++ {
		c, err := order.Choose(f)
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

// trainEdges is the number of edges that are trained on.
func trainEdges(m *kv.Meta) (n uint64) {
	for _, e := range m.EdgeSplits {
		if e.Name == "train" {
			n = e.Count
		}
	}
	return n
}

// planOf is the plan of a choice.
func planOf(m *kv.Meta, w *Want, c *order.Choice, edges uint64) (*Plan, error) {
	p := &Plan{Order: order.Spec{Policy: w.Policy, Parts: c.Parts, Capacity: c.Capacity,
		Logical: c.Logical, Seed: w.Seed}, Lines: c.Lines, dim: w.Dim, state: w.State}
	if w.TrainParts != nil {
		p.Order.TrainParts = w.TrainParts(c.Parts)
	}
	if c.InMemory {
		p.Order.Policy = order.InMemory
	}
	if _, err := order.New(p.Order); err != nil {
		return nil, err
	}
	switch p.Order.Policy {
	case order.InMemory, order.Sequential:
		p.Frames = c.Capacity
	case order.Beta:
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
	opt := buffer.Options{Frames: p.Frames}
	parts := int64(c.Parts)
	p.Shares = []Share{
		{"partitions", opt.Bytes(&spec) +
			mem.HeapCost(int64(w.Extra)*int64(p.Frames)*int64(spec.FrameRows()))},
		{"edges", mem.HeapCost(w.edgeBytes()*int64(p.EdgesOnce)) + streamBytes},
		{"places of buckets", mem.HeapCost(16 * (parts*parts + 1))},
		{"known answers", mem.HeapCost(knownBytes(int64(edges), parts))},
	}
	return p, nil
}

// Partitions is the plan of vectors that are only read: Order.Parts and Order.Seed are set.
func Partitions(o order.Spec, dim, state int) *Plan {
	return &Plan{Order: o, dim: dim, state: state}
}

// knownBytes is about what evaluation holds of the edges at one of some partitions.
func knownBytes(edges, parts int64) int64 {
	return entities.KnownBytes(edges, parts) + entities.PassBytes
}

// Bytes is the memory of a plan.
func (p *Plan) Bytes() (n int64) {
	for _, s := range p.Shares {
		n += s.Bytes
	}
	return n
}

// DiskBytes is the most that the files of partitions take.
func (p *Plan) DiskBytes(m *kv.Meta) (int64, error) {
	spec, err := p.spec(m)
	return spec.DiskBytes(p.Order.Capacity), err
}

// Map is how nodes are dealt to partitions.
func (p *Plan) Map(m *kv.Meta) (partition.Map, error) {
	return partition.New(partition.Spec{Nodes: m.Nodes, Parts: p.Order.Parts, Random: true,
		Seed: p.Order.Seed})
}

// spec is that of the files of partitions.
func (p *Plan) spec(m *kv.Meta) (s partfile.Spec, err error) {
	s = partfile.Spec{UUID: m.UUID, Columns: p.dim, State: p.state}
	s.Map, err = p.Map(m)
	return s, err
}

// PartBytes says what a partition takes on disk.
func (p *Plan) PartBytes(m *kv.Meta) (func(part int) int64, error) {
	spec, err := p.spec(m)
	return spec.PartBytes, err
}

// EdgeBytes is what the edges of train take on disk.
func (p *Plan) EdgeBytes(m *kv.Meta) int64 {
	return int64(trainEdges(m)) * int64(edgefile.EdgeBytes(len(m.EdgeTypes) > 0))
}
