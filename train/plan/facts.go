package plan

import (
	"fmt"
	"strings"

	"gdb/layout/topology"
	"gdb/train/setting"
)

// Facts is all that memory is split by: what was asked for, and what is known of the store, of the
// model and of batches that were sampled. Sizes are bytes.
type Facts struct {
	// Memory bounds the process. Of it the program has Program, and the model Model.
	Memory, Program, Model int64
	// Vectors is what vectors that are learned for each node have of it, and VectorsDisk what they
	// take of the disk in checkpoints.
	Vectors, VectorsDisk int64

	Settings
	Store
	Batches
	Steps
	Evaluation
	Device DeviceFacts
}

// Settings are those of a run that its memory and time depend on.
type Settings struct {
	Threads         int // that compute
	Epochs, Batch   int
	EvalEvery       int // epochs between two evaluations
	Patience        int // evaluations without improvement that end the run; 0 is none
	Cache, Topology string
	FeatureCache    int64 // 0 is what there is room for
	DeviceCache     int64 // of features on a device; DeviceCacheAuto is what there is room for
	MacroBatch      int   // batches that are sliced from one sample
	NeighborCache   int64 // NeighborAuto is what is best
	NeighborsAhead  bool  // neighbor caches are made before the run, whatever that takes
	Superbatch      int   // batches at most; 0 is what there is room for
	// Lent is how many batches are with others at a time, for whom their features are gathered
	// apart; 0 where a batch is given back before the next is asked for. Superbatches and rows that
	// are read ahead are not made for them.
	Lent int
}

// SettingsOf returns the settings of a training that its memory and time depend on.
func SettingsOf(c *setting.Node) Settings {
	s := Settings{Threads: c.Threads, Epochs: c.Epochs, Batch: c.Batch, EvalEvery: c.EvalEvery,
		Patience: c.Patience, Cache: c.Cache, Topology: c.Topology, FeatureCache: c.FeatureCache,
		NeighborCache: c.NeighborCache, DeviceCache: c.DeviceCache, MacroBatch: c.MacroBatch,
		NeighborsAhead: c.NeighborsAhead, Superbatch: c.Superbatch}
	if c.Buffered() { // what partitions in memory do not have is read for evaluations alone
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
	// Forms are those in which all lists can be in memory, from the fastest to the smallest: plain
	// is the first.
	Forms []topology.FormBytes
	// PagedBytes is the memory of a paged topology with a block cache of so many bytes.
	PagedBytes func(cache int64) int64
	// Passes says that batches can be drawn together, in passes through the file of lists: see
	// sample/bulk.
	Passes bool
	// Storage is what runtime files may take of the disk.
	Storage int64
}

// PlainBytes is what plain lists take.
func (s *Store) PlainBytes() int64 { return s.Forms[0].Bytes }

// residentForms are the forms that a setting of the topology allows; of auto all.
func (f *Facts) residentForms() (all []topology.FormBytes) {
	for _, form := range f.Forms {
		switch f.Topology {
		case "auto", "resident", string(form.Form):
			all = append(all, form)
		}
	}
	return all
}

// checkTopology reports a form that was asked for and that the store's lists do not have.
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

// mayPage says whether lists may be paged.
func (f *Facts) mayPage() bool { return f.Topology == "auto" || f.Topology == "paged" }

// Batches are the sizes of the largest batch that memory is reserved for.
type Batches struct {
	BatchNodes, BatchEdges int64
	// NodeBytes and EntryBytes are what a batch keeps of each of its nodes, and of its neighbors,
	// besides their numbers.
	NodeBytes, EntryBytes int64
	// LentNodeBytes and LentEntryBytes are what a batch that is lent has of them, features apart,
	// outside Go's heap.
	LentNodeBytes, LentEntryBytes int64

	DrawBytes    int64 // that drawing a neighbor takes beside these
	LayerBytes   int64 // that a sampler takes to draw layers, of all neighbors of a batch
	BatchInner   int64 // of the nodes, those with neighbors
	Hops         int   // of a batch
	SeedBytes    int64 // of a seed: its number and its labels
	TrainBatches int64 // of an epoch
}

// Steps is the memory of a training step on the largest batch, which is 0 where batches are loaded
// and nothing else is done.
type Steps struct {
	// StepCopied is that of a step whose first layer has rows of its own, and StepInPlace that of
	// one which reads those of a cache.
	StepCopied, StepInPlace int64
	// ReadsInPlace says that a step can read rows where they are kept. Of all rows that is faster
	// than copying them only if InPlaceResident says so.
	ReadsInPlace, InPlaceResident bool
}

// Evaluation is what an evaluation takes, beside a training that pauses.
type Evaluation struct {
	Evaluates bool // false where batches are loaded and nothing else is done
	// EvalSampled says that it takes sampled batches, through a pipeline as training does.
	EvalSampled bool
	// EvalArenas and EvalHeap may be in the place of a step and of batches, EvalBeside may not.
	EvalArenas, EvalHeap, EvalBeside int64
}

// Reach is the range of a size over some batches.
type Reach struct{ Least, Most int64 }

// Add takes the size of a batch in.
func (r *Reach) Add(n int64) {
	if r.Least == 0 || n < r.Least {
		r.Least = n
	}
	r.Most = max(r.Most, n)
}

// Reserve is a size that hardly a batch passes: beyond the largest seen by twice the range, which
// is four standard deviations if four were seen, and a little for a range that is small by chance;
// but by no more than an eighth. Beyond it the feature cache gives way, and batches wait.
func (r Reach) Reserve() int64 {
	return r.Most + min(r.Most/8, r.Most/64+2*(r.Most-r.Least))
}
