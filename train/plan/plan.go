// Package plan decides how a training run splits its memory, and forecasts what an epoch costs.
//
// Its storeys, from the ground: Work and Profile are what stages and reads were measured to take;
// tables interpolate between measurements. Facts hold everything a decision depends on: the
// settings, the store, and the sizes of batches that were sampled. A Plan is one way to split the
// memory, made of components, each sized by the package that allocates it; Plans lists the ones
// that fit. Costs forecast the epoch of each, and Choose returns the one whose epoch takes least.
// Package probe measures; this package only computes.
package plan

import (
	topo "gdb/layout/topology"
	"gdb/sample"
	"gdb/sample/superbatch"
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
	Samplers int       `json:"samplers"`      // goroutines that sample batches
	Ready    int       `json:"ready_batches"` // gathered batches that wait for the step
	InTurn   bool      `json:"in_turn"`       // a batch is gathered when the one before is done
	Step     int64     `json:"step_bytes"`    // activations and gradients
	Eval     int64     `json:"evaluation_bytes"`
	Neighbor int64     `json:"neighbor_cache_bytes"`
	Features int64     `json:"feature_cache_bytes"` // all rows, or the cache
	Cache    string    `json:"cache"`               // all, static, sieve, belady or none

	// Lent is the memory of copies of batches, which a caller of superbatches holds.
	Lent int64 `json:"lent_bytes,omitempty"`

	// Vectors is the memory of vectors that are learned for each node: the current ones, the
	// best ones, and the optimizer's state. VectorsDisk is the disk space that checkpoints
	// take for them.
	Vectors     int64 `json:"node_embedding_bytes,omitempty"`
	VectorsDisk int64 `json:"node_embedding_disk_bytes,omitempty"`

	// Superbatch is set only for the cache policy belady.
	Superbatch *superbatch.Plan `json:"superbatch,omitempty"`

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
	// BatchPieces is the pieces of its rows, where rows are kept in pieces.
	BatchPieces int64 `json:"batch_pieces_max,omitempty"`
	BatchEdges  int64 `json:"batch_edges_max"`
	BatchInner  int64 `json:"batch_inner_max"` // nodes of it that have neighbors

	// Sampled are the sizes of the first batches: what batches are padded to on a device follows
	// from them. They depend on the seed and on settings of batches alone.
	Sampled *BatchSizes `json:"batch_sizes,omitempty"`

	// Forecast is nil if there was no room to sample a few batches.
	Forecast *Forecast `json:"epoch,omitempty"`

	facts    *Facts // it is made from; nil for a plan that was not made by this package
	quarters int64  // quarters of the caches of lists that the neighbor cache was given
}

// BatchSizes are the largest sizes of some batches: the nodes from each hop on, the first being all
// and the last the seeds, and the entries of the lists of each hop.
type BatchSizes struct {
	Nodes   []int `json:"nodes"`
	Entries []int `json:"entries"`
}

// ListPlan is how the memory of a paged topology is split between its caches. Sizes are bytes.
type ListPlan struct {
	Blocks    int64 `json:"block_cache_bytes"`
	Neighbors int64 `json:"neighbor_cache_bytes"`
	// Passes is the memory in which batches are drawn together; 0 draws each by itself.
	Passes int64 `json:"pass_bytes,omitempty"`
	// Staged says that rows outside the static cache are read ahead, for many of the batches that
	// are drawn together, in the part of Passes that drawing does not need then.
	Staged bool `json:"staged,omitempty"`
	// Hit is the share of lists expected to be found in a neighbor cache whose size was chosen.
	Hit float64 `json:"neighbor_hit"`
	// Make is how long it takes to make the neighbor cache before the first epoch, in seconds; 0 if
	// the store has one already.
	Make float64 `json:"make_s"`
	// Why says why this size of the neighbor cache was chosen, or why there is none.
	Why string `json:"why,omitempty"`
}

// DevicePlan is how the memory of a device is split. Sizes are bytes.
type DevicePlan struct {
	Name   string `json:"name"`
	Memory int64  `json:"memory_bytes"`
	// Other is what the driver, kernels and other processes have.
	Other int64 `json:"other_bytes"`
	Model int64 `json:"model_bytes"` // weights, gradients, optimizer state
	Step  int64 `json:"step_bytes"`  // activations and gradients
	Given int64 `json:"given_bytes"` // rows and lists of the steps under way
	// Lists is the memory of all neighbor lists, and of drawing batches from them there; 0 where
	// the host draws. DrawHost is what that takes of the host's memory, which is counted with
	// batches.
	Lists    int64 `json:"lists_bytes,omitempty"`
	DrawHost int64 `json:"draw_host_bytes,omitempty"`
	// Draws is how a batch was drawn when both were tried; nil where there was no choice.
	Draws *DrawWay `json:"draws,omitempty"`
	// Eval is what evaluation takes beyond the memory of steps.
	Eval int64 `json:"evaluation_bytes"`
	// Cache is the memory of Rows feature rows that the device keeps.
	Cache int64 `json:"cache_bytes"`
	Rows  int64 `json:"cache_rows"`
	// Bus is how the other rows come to the device; nil until a run began.
	Bus *BusWay `json:"bus,omitempty"`
	// Launches is how operations are given to the device; nil where it was not measured.
	Launches *LaunchWay `json:"launches,omitempty"`
	// Shared is the memory of SharedRows rows that the batches of a macro-batch share.
	Shared     int64 `json:"shared_bytes,omitempty"`
	SharedRows int64 `json:"shared_rows,omitempty"`
}

// LaunchWay is how the operations of a step are given to a device, and what a step took either way.
type LaunchWay struct {
	// Grouped says that they are given at once, and batches are padded for that.
	Grouped bool `json:"grouped"`
	// AtOnce and OneByOne are what a step took either way, in seconds.
	AtOnce   float64 `json:"at_once_s"`
	OneByOne float64 `json:"one_by_one_s"`
}

// BusWay is how rows that the device does not keep come to it, and what both ways took when they
// were tried with Bytes of rows.
type BusWay struct {
	// InPlace says that the device reads rows in the host's memory. Otherwise copies are sent.
	InPlace bool  `json:"in_place"`
	Bytes   int64 `json:"bytes,omitempty"`
	// Copy is the time the host takes to copy rows out of its cache, Send to send the copies, and
	// Read the time the device takes to read rows in place, in seconds.
	Copy float64 `json:"copy_s,omitempty"`
	Send float64 `json:"send_s,omitempty"`
	Read float64 `json:"read_s,omitempty"`
	// Why says what went wrong when the device tried to read rows in place; "" if nothing did.
	Why string `json:"why,omitempty"`
}

// DrawWay is where batches are drawn, and what that took for a batch on the device and on the host,
// with as many goroutines as there are to be, in seconds.
type DrawWay struct {
	OnDevice bool    `json:"on_device"`
	Device   float64 `json:"device_s"`
	Host     float64 `json:"host_s"`
}

// Partitions describes a training that draws batches from some partitions of the graph, held in
// memory: see package partitioned.
type Partitions struct {
	Bytes    int64  `json:"bytes"` // features and lists
	Order    string `json:"order"`
	Parts    int    `json:"partitions"`
	InMemory int    `json:"partitions_in_memory"`
	Logical  int    `json:"logical_partitions"`
	// Sets is how many sets of partitions an epoch goes through. Read is how many bytes of
	// features an epoch reads, and Lists how many of neighbor lists; each set reads the lists of
	// all its nodes.
	Sets  int   `json:"sets"`
	Read  int64 `json:"read_bytes"`
	Lists int64 `json:"lists_read_bytes"`
	// Lines tell the user why this order and these numbers were chosen.
	Lines []string `json:"why"`
}

// Rival is a split that was not chosen.
type Rival struct {
	What string  `json:"what"`
	Time float64 `json:"time"` // of an epoch, in seconds
	// AtLeast says that Time is a lower bound, which no policy of the kind reaches.
	AtLeast bool `json:"at_least,omitempty"`
}

// Forecast is what an epoch of a run is expected to cost once caches are warm. Times are seconds.
type Forecast struct {
	Batches uint64 `json:"batches"`
	// Sampled is the number of batches that the forecast was computed from.
	Sampled int     `json:"sampled_batches"`
	Nodes   float64 `json:"nodes_per_batch"`
	Edges   float64 `json:"edges_per_batch"`
	Read    int64   `json:"read_bytes"` // from the disk: features and lists
	Lists   int64   `json:"list_bytes"` // the part of Read that is lists
	Hit     float64 `json:"hit"`        // rows found in the feature cache
	// DeviceHit is the share of all rows that the device keeps and that the feature cache is not
	// asked for. Sent is how many bytes the other rows of a batch have.
	DeviceHit float64 `json:"device_hit,omitempty"`
	Sent      float64 `json:"sent_bytes_per_batch,omitempty"`
	// Unique is the number of different nodes in the sampled batches, divided by the sum
	// of their nodes.
	Unique float64 `json:"unique"`

	Sample  float64 `json:"sample_s"`
	Gather  float64 `json:"gather_s"`
	Compute float64 `json:"compute_s"`
	Time    float64 `json:"time"`
	// Start is the time before the first epoch, in which resident lists are loaded and
	// caches filled.
	Start float64 `json:"start_s"`
	Step  float64 `json:"step_s"` // of one batch, when nothing else runs
	// Sweep is how long the sweeps for an epoch's rows take, and Beside how much of that happens
	// while batches are trained on.
	Sweep  float64 `json:"sweep_s"`
	Beside float64 `json:"sweep_beside_s"`
	// Binding is the stage that determines the epoch's time: sample, gather or compute; device if
	// sampling and gathering wait for the same one; cores if the stages together need more cores
	// than there are; or turns if they wait for each other.
	Binding string `json:"binding"`

	Device *Profile `json:"device"`
}

// RowBytes returns the bytes of the features of the largest batch that memory is reserved for.
func (p *Plan) RowBytes() int64 {
	if p.facts == nil {
		return 0
	}
	return 4 * p.facts.batchFloats()
}

// GivesBack reports whether the features have a cache that gives memory back when other parts of
// the run need it.
func (p *Plan) GivesBack() bool {
	return p.Superbatch == nil && p.Cache != "all" && p.Cache != "none"
}

// TakesTurns reports whether the topology takes turns with training in the same memory.
func (p *Plan) TakesTurns() bool { return p.Superbatch != nil && !p.Superbatch.Overlap }

// PassBytes returns the memory in which batches are drawn together; 0 draws each by itself.
func (p *Plan) PassBytes() int64 {
	if p.Lists == nil {
		return 0
	}
	return p.Lists.Passes
}

// Staged reports whether rows that the cache does not keep are read ahead: see rowcache.Staged.
func (p *Plan) Staged() bool { return p.Lists != nil && p.Lists.Staged }

// CacheBytes returns the size that the feature cache has during training.
func (p *Plan) CacheBytes() int64 {
	if s := p.Superbatch; s != nil {
		return int64(s.Slots) * superbatch.SlotBytes(p.facts.RowDim())
	}
	return p.Features
}

// TopologyOptions returns the options with which the plan's topology is opened.
func (p *Plan) TopologyOptions() topo.Options {
	if p.Resident {
		return topo.Options{Resident: true, Form: p.Form}
	}
	return topo.Options{CacheBytes: p.Lists.Blocks, NeighborBytes: p.Lists.Neighbors,
		PassBytes: p.Lists.Passes}
}

// SuperbatchConfig returns the configuration with which superbatches are made on a device by a
// number of threads. The run fills in the rest.
func (p *Plan) SuperbatchConfig(d *Profile, threads int) *superbatch.Config {
	s := p.Superbatch
	c := &superbatch.Config{Batches: s.Batches, StorageBytes: s.Storage, Overlap: s.Overlap,
		Planned: superbatch.Sizes{Nodes: p.BatchNodes, Inner: p.BatchInner, Edges: p.BatchEdges,
			StepBytes: p.Step, Rows: p.BatchPieces},
		Slots: s.Slots, SlotsKept: s.Kept, InPlace: s.InPlace, StageRows: s.StageRows,
		PlanBytes: s.Planning, AccessBytes: s.Accesses, NextBytes: s.NextUses,
		Workers: threads, Threads: CopyThreads(threads), Ready: p.Ready,
		SweepBytes: s.Sweep, SweepAhead: s.SweepAhead,
		Costs: superbatch.Costs{Read: d.ReadSeconds, Byte: d.ByteSeconds,
			Written: d.Write.Seconds}}
	if p.Forecast != nil {
		c.Costs.Step = p.Forecast.Step
	}
	return c
}

// evaluationSlots is the rows in the cache of superbatches of an evaluation, which finds few.
const evaluationSlots = 64

// EvaluationStorage returns how many bytes of the storage superbatches of evaluations have.
func (p *Plan) EvaluationStorage() int64 {
	d := superbatch.Demand{Batch: sample.BatchSize{Nodes: p.BatchNodes, Inner: p.BatchInner,
		Edges: p.BatchEdges}, Storage: p.Superbatch.Storage}
	if f := p.facts; f != nil {
		d.Batch.NodeBytes, d.Batch.EntryBytes = f.NodeBytes, f.EntryBytes
		d.Dim, d.EvalSteps = f.RowDim(), f.EvalBatches
		d.Pieces, d.Wide = p.BatchPieces, int64(f.Unpacked)
	}
	return d.EvaluationStorage()
}

// EvaluationConfig returns the configuration of the superbatches of an evaluation, in the memory of
// those of a training that takes turns with it.
func (p *Plan) EvaluationConfig(d *Profile, threads int) *superbatch.Config {
	c := p.SuperbatchConfig(d, threads)
	c.Epochs, c.Batches, c.StorageBytes, c.SweepAhead = 1, 0, p.EvaluationStorage(), false
	c.Slots, c.SlotsKept = min(c.Slots, evaluationSlots), 0
	if c.InPlace {
		rows := max(p.BatchPieces, p.BatchNodes)
		c.InPlace, c.Ready, c.StageRows = false, 0, superbatch.EvaluationStage(rows)
	}
	return c
}

// taken returns the bytes that a run needs with no feature rows kept.
func (p *DevicePlan) taken() int64 {
	return p.Other + p.Model + p.Step + p.Given + p.Lists + p.Eval
}

// Cached returns how many feature rows the device keeps; 0 without a device.
func (p *DevicePlan) Cached() int64 {
	if p == nil {
		return 0
	}
	return p.Rows
}

// Measured returns how operations are given to the device; nil where that was not measured.
func (p *DevicePlan) Measured() *LaunchWay {
	if p == nil {
		return nil
	}
	return p.Launches
}

// InPlace reports whether the device reads rows in the host's memory.
func (p *DevicePlan) InPlace() bool { return p != nil && p.Bus != nil && p.Bus.InPlace }

// Room returns how many rows of dim values the device keeps if free bytes are left once steps have
// taken their memory: no more than planned.
func (p *DevicePlan) Room(free int64, dim int) int64 {
	return max(0, min(p.Rows, (free-p.Eval-p.Memory/deviceReserve-p.Shared)/(4*int64(dim))))
}

// RoomShared returns how many rows that the batches of a macro-batch share fit in free bytes, once
// the other rows are kept: no more than planned.
func (p *DevicePlan) RoomShared(free int64, dim int) int64 {
	return max(0, min(p.SharedRows, (free-p.Eval-p.Memory/deviceReserve)/(4*int64(dim))-1))
}

// deviceReserve leaves one part in 16 of a device's memory free: for batches larger than any that
// was sampled, and for what arenas take while they grow.
const deviceReserve = 16

// CopyThreads returns how many goroutines copy features beside compute threads.
func CopyThreads(compute int) int { return max(1, compute/2) }

// slowdown returns how many times as long sampling takes with the plan's lists as with plain ones.
func (p *Plan) slowdown() float64 { return p.facts.Slowdown(p.Form) }
