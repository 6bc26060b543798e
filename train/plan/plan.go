package plan

import (
	"fmt"
	"strings"
	"time"

	"gdb/internal/mem"
	topo "gdb/layout/topology"
)

// Plan is how the memory of a run is split, and what an epoch is expected to cost. Sizes are bytes.
type Plan struct {
	Memory   int64 `json:"memory_bytes"`   // the bound of the whole process
	Fixed    int64 `json:"program_bytes"`  // program, runtime, splits, buffers to read with
	Model    int64 `json:"model_bytes"`    // weights, gradients, optimizer state, checkpoints
	Topology int64 `json:"topology_bytes"` // arrays, or the block cache
	Resident bool  `json:"topology_resident"`
	// Form is how a resident topology is held.
	Form     topo.Form `json:"topology_form,omitempty"`
	Batches  int64     `json:"batches_bytes"` // in flight, with sampling's and gathering's scratch
	Ready    int       `json:"ready_batches"` // gathered batches that wait for the step
	InTurn   bool      `json:"in_turn"`       // a batch is gathered when the one before is done
	Step     int64     `json:"step_bytes"`    // activations and gradients
	Eval     int64     `json:"evaluation_bytes"`
	Neighbor int64     `json:"neighbor_cache_bytes"`
	Features int64     `json:"feature_cache_bytes"` // all rows, or the cache
	Cache    string    `json:"cache"`               // all, static, sieve, belady or none

	// Vectors is the memory of vectors that are learned for each node: the current ones, the
	// best ones, and the optimizer's state. VectorsDisk is the disk space that checkpoints
	// take for them.
	Vectors     int64 `json:"node_embedding_bytes,omitempty"`
	VectorsDisk int64 `json:"node_embedding_disk_bytes,omitempty"`

	// Superbatch is set only for the cache policy belady.
	Superbatch *SuperbatchPlan `json:"superbatch,omitempty"`

	// OnDevice is set where a device has memory of its own.
	OnDevice *DevicePlan `json:"device_memory,omitempty"`

	// Lists is set where the topology is paged.
	Lists *ListPlan `json:"lists,omitempty"`

	// Partitions is set where batches are drawn from partitions in memory.
	Partitions *Partitions `json:"partition_buffer,omitempty"`

	// Rivals lists splits that were not chosen: the best of each kind, the fastest first.
	Rivals []Rival `json:"rivals,omitempty"`

	// BatchNodes and BatchEdges are the sizes of the largest batch that memory is reserved for.
	BatchNodes int64 `json:"batch_nodes_max"`
	BatchEdges int64 `json:"batch_edges_max"`
	BatchInner int64 `json:"batch_inner_max"` // nodes of it that have neighbors

	// Forecast is nil if there was no room to sample a few batches.
	Forecast *Forecast `json:"epoch,omitempty"`

	dim int // values in a feature row
}

// RowBytes returns the bytes of the features of the largest batch that memory is reserved for.
func (p *Plan) RowBytes() int64 { return 4 * p.BatchNodes * int64(p.dim) }

// Rival is a split that was not chosen.
type Rival struct {
	What string  `json:"what"`
	Time float64 `json:"time"` // of an epoch, in seconds
	// AtLeast says that Time is a lower bound, which no policy of the kind reaches.
	AtLeast bool `json:"at_least,omitempty"`
}

// GivesBack reports whether the features have a cache that gives memory back when other parts of
// the run need it.
func (p *Plan) GivesBack() bool {
	return p.Superbatch == nil && p.Cache != "all" && p.Cache != "none"
}

// Pool is the memory of a device, and how the parts of a run share it.
type Pool struct {
	Device string
	Bytes  int64 // all of the device's memory
	Parts  []Part
}

// Part is one share of a pool: its name, a remark for people, and its size.
type Part struct {
	Name, What string
	Bytes      int64
}

// Host names the pool that is the process's own memory.
const Host = "host"

// Pools lists the memory of each device, the host's first. The parts of a pool add up to no more
// than its Bytes.
func (p *Plan) Pools() []Pool {
	parts := []Part{{"program", "", p.Fixed}, {"model", "", p.Model}}
	if p.Vectors > 0 {
		disk := "and " + mem.FormatSize(p.VectorsDisk) + " of disk in checkpoints"
		parts = append(parts, Part{"node embedding", disk, p.Vectors})
	}
	if b := p.Partitions; b != nil {
		what := fmt.Sprintf("%d of %d, features and lists", b.InMemory, b.Parts)
		parts = append(parts, Part{"partitions", what, b.Bytes})
	}
	parts = append(parts, Part{"topology", p.topologyKind(), p.Topology},
		Part{"neighbor cache", p.neighborKind(), p.Neighbor},
		Part{"features", p.cacheName(), p.Features}, Part{"batches", p.batchKind(), p.Batches},
		Part{"step", "", p.Step}, Part{"evaluation", "besides the step's", p.Eval})
	pools := []Pool{{Device: Host, Bytes: p.Memory, Parts: parts}}
	if p.OnDevice != nil {
		pools = append(pools, p.OnDevice.pool())
	}
	return pools
}

// Left returns the bytes of the pool that no part has.
func (p *Pool) Left() int64 {
	left := p.Bytes
	for _, part := range p.Parts {
		left -= part.Bytes
	}
	return left
}

// cacheName names the cache. It adds how much larger the cache is while batches are trained on, if
// it uses memory that is needed otherwise between.
func (p *Plan) cacheName() string {
	s := p.Superbatch
	if s == nil || s.Kept == s.Slots || s.Kept == 0 {
		return "cache " + p.Cache
	}
	return fmt.Sprintf("cache %s, %.1f times as many rows while training", p.Cache,
		float64(s.Slots)/float64(s.Kept))
}

// topologyKind says how neighbor lists are held and read.
func (p *Plan) topologyKind() string {
	topology := "paged"
	if p.Resident {
		topology = "resident"
		if p.Form != "" && p.Form != topo.Plain {
			topology += ", " + string(p.Form)
		}
	} else if l := p.Lists; l != nil && l.Neighbors > 0 {
		topology = "paged behind a neighbor cache"
	} else if p.PassBytes() > 0 {
		topology = "paged, in passes"
		if p.Staged() {
			topology += ", rows read ahead"
		}
	}
	if s := p.Superbatch; s != nil && !s.Overlap {
		topology += ", in turn with batches"
	}
	return topology
}

// neighborKind returns the size of a neighbor cache that is counted with the topology, because it
// takes turns with batches in the same memory; else "".
func (p *Plan) neighborKind() string {
	if l := p.Lists; l != nil && l.Neighbors > 0 && p.Neighbor == 0 {
		return mem.FormatSize(l.Neighbors) + " in turn with batches"
	}
	return ""
}

// batchKind says how many gathered batches wait for the step.
func (p *Plan) batchKind() string {
	if p.InTurn {
		return "gathered in turn"
	}
	return fmt.Sprintf("%d ready", p.Ready)
}

// Why says against which rivals the plan was chosen, in a line for people; "" if there
// was no choice.
func (p *Plan) Why() string {
	if p.Forecast == nil || len(p.Rivals) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s an epoch", p.what(), seconds(p.Forecast.Time))
	for i, r := range p.Rivals {
		sep := ", "
		if i == 0 {
			sep = "; "
		}
		least := ""
		if r.AtLeast {
			least = "over "
		}
		fmt.Fprintf(&b, "%s%s: %s%s", sep, r.What, least, seconds(r.Time))
	}
	if l := p.Lists; l != nil && l.Why != "" {
		fmt.Fprintf(&b, "; %s", l.Why)
	}
	return b.String()
}

// seconds formats s seconds with three digits, in the unit that suits.
func seconds(s float64) string {
	d := time.Duration(s * float64(time.Second))
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit).String()
}

// what describes the plan by the choices that distinguish it from its rivals.
func (p *Plan) what() string {
	return fmt.Sprintf("%s, topology %s, %s", p.Cache, p.topologyKind(), p.batchKind())
}

// String returns one line for people.
func (p *Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "memory %s: ", mem.FormatSize(p.Memory))
	for _, part := range p.Pools()[0].Parts {
		if part.Bytes == 0 && part.What == "" && part.Name == "neighbor cache" {
			continue
		}
		fmt.Fprintf(&b, "%s %s", part.Name, mem.FormatSize(part.Bytes))
		if part.What != "" {
			fmt.Fprintf(&b, " (%s)", part.What)
		}
		b.WriteString(", ")
	}
	fmt.Fprintf(&b, "left %s", mem.FormatSize(p.Left()))
	return b.String()
}

// Left returns the bytes of the host's memory that no part has.
func (p *Plan) Left() int64 {
	return p.Memory - p.Fixed - p.Model - p.Vectors - p.Topology - p.Batches - p.Step - p.Eval -
		p.Neighbor - p.Features
}
