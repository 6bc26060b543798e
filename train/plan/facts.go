package plan

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"gdb/internal/mem"
	"gdb/layout/topology"
	"gdb/sample"
	"gdb/train/setting"
)

// Facts hold all that a split of the memory depends on: the settings, and what is known of the
// store, of the model and of batches that were sampled. Sizes are bytes.
type Facts struct {
	// Memory bounds the process. Program is the part that the program itself takes, and Model the
	// part of the model.
	Memory, Program, Model int64
	// Vectors is the memory of vectors that are learned for each node, or of their hidden states,
	// and VectorsDisk the disk space that checkpoints take for them.
	Vectors, VectorsDisk int64

	// Samplers is how many goroutines sample; 0 where that was not measured.
	Samplers int

	Settings
	Store
	Batches
	Steps
	Evaluation
	Device DeviceFacts
}

// Settings are the settings of a run that its memory and time depend on.
type Settings struct {
	Threads         int // that compute
	Epochs, Batch   int
	EvalEvery       int // epochs between two evaluations
	Patience        int // evaluations without improvement that end the run; 0 never ends it
	Cache, Topology string
	FeatureCache    int64 // bytes; 0 is as much as there is room for
	DeviceCache     int64 // bytes on a device; DeviceCacheAuto is as much as fits
	Halo            bool  // hidden states are kept of each node
	MacroBatch      int   // batches that are sliced from one sample
	Devices         int   // that compute, each a part of a batch; Batch has the seeds of a part
	NeighborCache   int64 // bytes; NeighborAuto chooses the best size
	NeighborsAhead  bool  // neighbor caches are made before the run, however long it takes
	Superbatch      int   // batches at most; 0 is as many as there is room for
	OneByOne        bool  // batches are drawn by themselves, and in no superbatches
	// Lent is how many batches a caller may hold at a time, each with its features in memory of its
	// own; 0 where a batch is given back before the next is asked for. Of superbatches it gets
	// copies. Rows that are read ahead need Lent to be 0.
	Lent int
}

// SettingsOf returns the part of a training's settings that its memory and time depend on.
func SettingsOf(c *setting.Node) Settings {
	s := Settings{Threads: c.Threads, Epochs: c.Epochs, Batch: c.PartSeeds(),
		EvalEvery: c.EvalEvery, Devices: c.Parts(), Patience: c.Patience, Cache: c.Cache,
		Topology: c.Topology, Halo: c.Halo(), FeatureCache: c.FeatureCache,
		NeighborCache: c.NeighborCache, DeviceCache: c.DeviceCache, MacroBatch: c.MacroBatch,
		NeighborsAhead: c.NeighborsAhead, Superbatch: c.Superbatch, OneByOne: c.OneByOne()}
	if c.Buffered() { // only evaluations read what is not in the partitions
		s.Cache, s.NeighborCache = "none", 0
		if s.Topology == "auto" {
			s.Topology = "paged"
		}
	}
	return s
}

// Store is what is known of the graph and its files.
type Store struct {
	Nodes uint64
	Dim   int // of features
	// PieceDim is the number of values of a piece and AllPieces that of all pieces, where rows are
	// kept in pieces: see rowfile.Split. Unpacked is how many values the row of a node takes while
	// it is put together. Else they are 0.
	PieceDim, Unpacked int
	AllPieces          uint64
	// Cut says that batches keep the pieces, and Unpacked is the width of a whole row: steps read
	// pieces in place, and of inner nodes whole rows.
	Cut bool
	// Forms lists the forms in which all lists can be in memory, from the fastest to the smallest;
	// the first is plain.
	Forms []topology.FormBytes
	// PagedBytes returns the memory of a paged topology whose block cache has cache bytes.
	PagedBytes func(cache int64) int64
	// Passes says that batches can be drawn together, in passes through the file of lists: see
	// sample/bulk.
	Passes bool
	// Storage is how many bytes of disk runtime files may take.
	Storage int64
}

// RowDim returns the values of what is kept of features as a row: a row, or a piece of one.
func (s *Store) RowDim() int { return cmp.Or(s.PieceDim, s.Dim) }

// AllRows returns how many of these there are.
func (s *Store) AllRows() uint64 {
	if s.PieceDim > 0 {
		return s.AllPieces
	}
	return s.Nodes
}

// batchRows returns how many of them the largest batch has.
func (f *Facts) batchRows() int64 {
	if f.PieceDim > 0 {
		return f.BatchPieces
	}
	return f.BatchNodes
}

// batchFloats returns the values that the rows of the largest batch take.
func (f *Facts) batchFloats() int64 {
	if f.Cut {
		return f.BatchPieces*int64(f.PieceDim) + f.BatchInner*int64(f.Dim)
	}
	return f.BatchNodes * int64(cmp.Or(f.Unpacked, f.Dim))
}

// PlainBytes returns the memory that plain lists take.
func (s *Store) PlainBytes() int64 { return s.Forms[0].Bytes }

// residentForms returns the forms of resident lists that the setting Topology allows;
// auto allows all.
func (f *Facts) residentForms() (all []topology.FormBytes) {
	for _, form := range f.Forms {
		switch f.Topology {
		case "auto", "resident", string(form.Form):
			all = append(all, form)
		}
	}
	return all
}

// checkTopology returns an error if the setting asks for a form that the store's lists do not have.
func (f *Facts) checkTopology() error {
	if f.mayPage() || len(f.residentForms()) > 0 {
		return nil
	}
	var names []string
	for _, form := range f.Forms {
		names = append(names, string(form.Form))
	}
	return fmt.Errorf("plan: lists of this store are not smaller in the form %s: take one of "+
		"--topology %s, or auto", f.Topology, strings.Join(names, ", "))
}

// mayPage reports whether the settings allow a paged topology.
func (f *Facts) mayPage() bool { return f.Topology == "auto" || f.Topology == "paged" }

// Batches hold the sizes of the largest batch that memory is reserved for.
type Batches struct {
	BatchNodes, BatchEdges int64
	BatchPieces            int64 // where rows are kept in pieces
	// NodeBytes and EntryBytes are what a batch keeps for each node and for each neighbor, besides
	// their numbers.
	NodeBytes, EntryBytes int64
	// LentNodeBytes and LentEntryBytes are what a lent batch keeps for each node and for each
	// neighbor outside Go's heap, without features.
	LentNodeBytes, LentEntryBytes int64

	DrawBytes    int64 // scratch for drawing one neighbor, besides these
	LayerBytes   int64 // scratch of a sampler that draws layers, for all neighbors of a batch
	BatchInner   int64 // nodes of the batch that have neighbors
	Hops         int   // in a batch
	SeedBytes    int64 // for each seed: its number and its labels
	TrainBatches int64 // in an epoch
	// PreparedBytes is what is prepared of a batch beside its sampling; 0 where nothing is.
	PreparedBytes int64
	// Sampled are sizes of the first batches, the largest of each: see Plan.
	Sampled *BatchSizes
}

// Steps hold the memory of a training step on the largest batch. They are 0 where batches are only
// loaded and no model is trained.
type Steps struct {
	// StepCopied is for a step that copies its first layer's rows, and StepInPlace for one that
	// reads them in the cache.
	StepCopied, StepInPlace int64
	// ReadsInPlace says that a step can read rows where they are kept. When all rows are in memory
	// that is faster than copying them only if InPlaceResident is set.
	ReadsInPlace, InPlaceResident bool
}

// Evaluation holds what an evaluation takes; training pauses meanwhile.
type Evaluation struct {
	Evaluates bool // false where batches are only loaded and no model is trained
	// EvalSampled says that evaluation samples batches, EvalBatches at most, as training does.
	EvalSampled bool
	EvalBatches int64
	// EvalArenas and EvalHeap may use the memory of a step and of batches. EvalBeside comes on top.
	EvalArenas, EvalHeap, EvalBeside int64
}

// Reach is the range of a size over some batches.
type Reach struct{ Least, Most int64 }

// Add extends the range to include the size n of a batch.
func (r *Reach) Add(n int64) {
	if r.Least == 0 || n < r.Least {
		r.Least = n
	}
	r.Most = max(r.Most, n)
}

// Reserve returns a size that hardly any batch exceeds: the largest seen plus twice the range seen
// (four standard deviations if four batches were seen) plus a little for a range that is small by
// chance, but at most an eighth above the largest. If a batch is larger still, the feature cache
// gives memory back and the batch waits.
func (r Reach) Reserve() int64 {
	return r.Most + min(r.Most/8, r.Most/64+2*(r.Most-r.Least))
}

// DeviceFacts are what is known of a device with memory of its own, such as a GPU. Memory is 0
// where the process's own threads compute. Sizes are bytes.
type DeviceFacts struct {
	Name         string
	Memory, Free int64 // all of it, and what is free before the run takes any
	// Model is what weights, gradients and the optimizer's state take. Step is what a step on the
	// largest batch takes to compute. Given is what the inputs (rows and lists) of all steps
	// under way take.
	Model, Step, Given int64
	// Eval is the memory that an evaluation may take, instead of a step's.
	Eval int64
	// Launches is how operations were measured to be given best; nil for unknown.
	Launches *LaunchWay
	// RowBytes is the page-locked memory of the host for a row on its way to the device.
	RowBytes int64
	// Cacheable says that there are feature rows which the device may keep.
	Cacheable bool
	// Lists is the memory of all neighbor lists, if the device may draw batches from them, or 0.
	// Draw returns what drawing a batch of some nodes and edges takes of the device's memory and of
	// the host's.
	Lists int64
	Draw  func(nodes, edges int64) (device, host int64)
	// DrawBeside leaves batches to the host unless lists fit beside all feature rows.
	DrawBeside bool
}

// samplers returns how many goroutines sample.
func (f *Facts) samplers() int { return cmp.Or(f.Samplers, Samplers(f.Threads)) }

// formIn returns the fastest form of resident lists that takes no more than room bytes.
func (f *Facts) formIn(room int64) (topology.FormBytes, bool) {
	for _, form := range f.residentForms() {
		if form.Bytes <= room {
			return form, true
		}
	}
	return topology.FormBytes{}, false
}

// largest returns the size of the largest batch that memory is reserved for.
func (f *Facts) largest() sample.BatchSize {
	return sample.BatchSize{Nodes: f.BatchNodes, Edges: f.BatchEdges, Inner: f.BatchInner,
		Seeds: int64(f.Batch), NodeBytes: f.NodeBytes, EntryBytes: f.EntryBytes,
		SeedBytes: f.SeedBytes}
}

// allFeatures returns the memory of all feature rows.
func (f *Facts) allFeatures() int64 {
	return mem.ArenaBytes(int64(f.AllRows()) * int64(f.RowDim()) * 4)
}

// formSlowdown says how many times as long sampling takes from lists of a form as from plain ones,
// as docs/format/topology.md has it measured.
var formSlowdown = map[topology.Form]float64{topology.Plain: 1, topology.Packed: 1.1,
	topology.Compact: 2.3}

// Slowdown returns how many times as long sampling takes from lists of a form as from plain ones.
// Paged lists have the form "": if the file's lists are coded they are decoded in the same way as
// the compact form, and cost the same.
func (s *Store) Slowdown(form topology.Form) float64 {
	coded := slices.ContainsFunc(s.Forms, func(f topology.FormBytes) bool {
		return f.Form == topology.Compact
	})
	if form == "" && coded {
		form = topology.Compact
	}
	return max(1, formSlowdown[form])
}

// Name returns a hash that differs between facts that lead to different plans, before batches are
// measured. It leaves out the memory of the program, the free memory of the device and the room on
// the disk, which are never the same twice.
func (f Facts) Name() string {
	f.Program, f.Storage, f.PagedBytes, f.Device.Free, f.Device.Draw = 0, 0, nil, 0, nil
	return fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%+v", f)))
}
