package setting

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"gdb/kv"
	"gdb/layout/rowfile"
	"gdb/sample"
)

// Node are those of a training. Start from Default.
type Node struct {
	// Run names the run; "" takes the next free of r0001, r0002, ….
	Run string `json:"run"`
	// Resume names a run to go on with. What decides the result must be as it was (see
	// Load); Epochs, Patience and what only costs time or memory may change.
	Resume string `json:"-"`
	// Version is gdb's version, for the record.
	Version string `json:"-"`

	// Model is the architecture: sage.
	Model string `json:"model"`
	// Fanout is the number of neighbors drawn at each hop, the first next to the seeds, and by
	// its length the number of layers; sample.All takes whole lists.
	Fanout []int `json:"fanout"`
	// Sampler is SamplerNeighbor, or SamplerLayer, which draws the neighbors of all nodes of a hop
	// together, about LayerSize of them at each: this takes the place of Fanout, which is nil then.
	// "" is neighbor.
	Sampler   string `json:"sampler,omitempty"`
	LayerSize []int  `json:"layer_size,omitempty"`
	// Sample is how they are drawn: SampleUniform, SampleWeighted, by the weights of edges, or
	// SampleLatest, those of the latest edges; "" is uniform.
	Sample string `json:"sample"`
	// Before has only the edges count whose time is below it, in sampling, evaluation and degrees;
	// nil is all.
	Before *int64 `json:"before,omitempty"`
	// Hidden is the width of the layers between, unless Widths has those of each.
	Hidden int   `json:"hidden"`
	Widths []int `json:"widths,omitempty"`
	// Options are those of the architecture.
	Options
	// Tune measures the orders of aggregation and product before the first step, and keeps the
	// fastest in Order: see model.Spec.
	Tune  bool    `json:"tune,omitempty"`
	Order *uint64 `json:"order,omitempty"`
	PartitionSettings
	// Batch is the number of seeds of a step.
	Batch int `json:"batch"`
	// Epochs is the most epochs that are trained; EpochsAuto is as many as Resolve finds right, and
	// then Patience too.
	Epochs int `json:"epochs"`
	// LR is the learning rate.
	LR float64 `json:"lr"`
	// LRSchedule is how the rate changes from epoch to epoch: constant, cosine, step or plateau; ""
	// is constant.
	LRSchedule string `json:"lr_schedule"`
	// Warmup is the number of steps in which the rate grows evenly to what it is then.
	Warmup int `json:"warmup"`
	// Clip is the most that the norm of the gradients of all parameters may be, which are scaled
	// down where it is more; 0 is any.
	Clip float64 `json:"clip"`
	// WeightDecay is added to the gradient as WeightDecay times the weights; adamw shrinks the
	// weights by LR*WeightDecay instead.
	WeightDecay float64 `json:"weight_decay"`
	// Dropout is the share of values zeroed before each layer in training; DropoutAuto is what
	// Resolve finds right for the labels.
	Dropout float64 `json:"dropout"`
	// Optimizer is adam, adamw, sgd or adagrad.
	Optimizer string `json:"optimizer"`
	// Loss is auto, softmax (one class a node), bce (multi-label), or mse, mae or huber (numbers).
	Loss string `json:"loss"`
	// ClassWeights is none, or balanced: classes count in the loss as task.Balanced says; "" is
	// none.
	ClassWeights string `json:"class_weights"`
	// Metric is auto, accuracy, micro-f1, macro-f1 or roc-auc, or of numbers rmse, mae or r2.
	Metric string `json:"metric"`
	// Patience stops the run when so many evaluations in a row did not improve; 0 never.
	Patience int `json:"patience"`
	// EvalEvery is how many epochs lie between two evaluations on the validation nodes.
	EvalEvery int `json:"eval_every"`
	// EvalMode is exact (layer by layer over the whole graph) or sampled (with Fanout).
	EvalMode string `json:"eval_mode"`
	// Split is the column K of train@K, val@K, test@K; "" is the store's default.
	Split string `json:"split"`
	// Normalize is how features are scaled as they are read: none, row (see
	// rowfile.NormalizeRows), zscore, or auto, which is row for counts and zscore for columns of
	// very different or large ranges; "" is none. Scale are what zscore measured.
	Normalize string         `json:"normalize"`
	Scale     *rowfile.Scale `json:"scale,omitempty"`
	// Seed is the root of all randomness.
	Seed uint64 `json:"seed"`

	// Cache is the policy for features that do not fit: auto, none, static, or one that
	// sample.NewPolicy knows.
	Cache string `json:"cache"`
	// Superbatch is how many batches cache belady samples ahead at most; 0 as many as a quarter of
	// the free disk has room for, 64 GiB at most, and no more than up to the next evaluation.
	Superbatch int `json:"superbatch"`
	// MacroBatch is of how many batches the seeds are drawn together, which are sliced from the
	// sample then: see package macrobatch. 0 and 1 draw each batch by itself.
	MacroBatch int `json:"macro_batch,omitempty"`
	// FeatureCache is the size of that cache in bytes; 0 takes what is left of Memory.
	FeatureCache int64 `json:"feature_cache"`
	// DeviceCache keeps rows of features in the memory of the device that computes, if that has its
	// own: of so many bytes; 0 is none, DeviceCacheAuto what there is room for.
	DeviceCache int64 `json:"device_cache"`
	// DeviceMemory has the run planned for a device of so many bytes, whether there is one or not,
	// and bounds what an evaluation takes of one; 0 asks the device.
	DeviceMemory int64 `json:"-"`
	// NeighborCache keeps neighbor lists of a paged topology, in bytes; 0 is none, NeighborAuto
	// what the plan finds best.
	NeighborCache int64 `json:"neighbor_cache"`
	// Topology is auto, paged, or resident: in any form, or in that of the name plain, packed or
	// compact.
	Topology string `json:"topology"`
	// IO is how files are read; the device was opened with it, it is kept for the record.
	IO string `json:"io"`
	// Backend is auto, cpu or cuda: see package backend. A run's is never auto.
	Backend string `json:"backend"`
	// Precision is f32, or bf16: what products and sums over lists read, whose sums are float32
	// either way, as are weights, losses and norms. "" is f32. ChangePrecision has a run that is
	// resumed go on in it, though it began in another.
	Precision       string `json:"precision,omitempty"`
	ChangePrecision bool   `json:"-"`
	// Products is amx where products of bfloat16 are summed up in the order of its tiles; "" for
	// that of all else. A run's is that of the machine.
	Products string `json:"products,omitempty"`
	// Device is the number of the device that Backend computes on, where there are several.
	Device int `json:"device,omitempty"`
	// PlainLaunches has a device be given each operation by a call of its own, and batches as large
	// as they are: see package backend's Groups.
	PlainLaunches bool `json:"plain_launches,omitempty"`
	// Threads is the number of compute workers; 0 takes all cores. The weights depend on it.
	Threads int `json:"threads"`
	// Memory bounds the process in bytes; 0 takes half of what the machine allows.
	Memory int64 `json:"memory"`
	// Remeasure measures the device anew when the run is planned, though the catalog has a
	// profile of it.
	Remeasure bool `json:"-"`
	// Profiles is a directory of the user, where what was measured of devices is kept for a day for
	// all stores; "" measures the device for each store.
	Profiles string `json:"-"`
	// NeighborsAhead plans as if neighbor caches were made before the run, whatever that takes.
	NeighborsAhead bool `json:"-"`
	// CheckpointEvery is the number of batches between checkpoints within an epoch; one is
	// written every 30 s and after each epoch too. 0 leaves it at that.
	CheckpointEvery int `json:"checkpoint_every"`
}

// The values of Node.Precision.
const (
	Float32  = "f32"
	BFloat16 = "bf16"
	// TF32 is float32 but for the factors of products, which a device rounds to 10 bits.
	TF32 = "tf32"
)

// Computes names where a run computes, with what the time of its steps depends on.
func (c *Node) Computes() string {
	if c.Precision == TF32 {
		return c.Backend + " in " + TF32
	}
	return c.Backend
}

// CheckPrecision refuses a precision that the CPU does not compute in; Backend is not auto.
func (c *Node) CheckPrecision() error {
	if c.Precision == TF32 && c.Backend == BackendCPU {
		return errors.New("train: --precision tf32 is computed on a device alone: --backend " +
			"cuda, or --precision f32")
	}
	return nil
}

// Half says whether products and sums over lists read bfloat16.
func (c *Node) Half() bool { return c.Precision == BFloat16 }

// PacksFeatures says whether features are read as bfloat16: where learned vectors stand behind
// them, the input of a step is made of both.
func (c *Node) PacksFeatures() bool { return c.Half() && c.NodeEmbedding == 0 }

// RowDim is how many words of 4 bytes a node has of features in memory.
func (c *Node) RowDim(m *kv.Meta) int {
	if c.PacksFeatures() {
		return rowfile.PackedDim(FeatureDim(m))
	}
	return FeatureDim(m)
}

// CacheBelady is the policy that needs to know the batches to come: it trains on superbatches.
const CacheBelady = "belady"

// EvalSampled is the mode of evaluation that draws neighbors.
const EvalSampled = "sampled"

// NeighborAuto as Node.NeighborCache lets the plan choose the size.
const NeighborAuto = -1

// DeviceCacheAuto as Node.DeviceCache takes what there is room for.
const DeviceCacheAuto = -1

// EpochsAuto as Node.Epochs trains until validation stops improving.
const EpochsAuto = 0

// DropoutAuto as Node.Dropout is 0.5 where labels are classes, and none where they are numbers.
const DropoutAuto = -1

// NormalizeRow as Node.Normalize has features divided by the sum of their row.
const NormalizeRow = "row"

// NormalizeColumns as Node.Normalize has each column of the features of mean 0 and deviation 1.
const NormalizeColumns = "zscore"

// Default returns the settings that the command line starts from.
func Default() Node {
	return Node{Model: "sage", Fanout: []int{10, 10}, Sampler: SamplerNeighbor,
		Sample: SampleUniform, Hidden: 256,
		Batch:  1000,
		Epochs: EpochsAuto, LR: 0.01, LRSchedule: ScheduleConstant, WeightDecay: 0.0005,
		Dropout:   DropoutAuto,
		Normalize: "auto", Optimizer: "adam", Loss: "auto", Metric: "auto", EvalEvery: 1,
		ClassWeights: WeightsNone,
		EvalMode:     "exact", Seed: 1, Cache: "auto", NeighborCache: NeighborAuto,
		DeviceCache: DeviceCacheAuto, Topology: "auto", IO: "auto", Backend: BackendCPU}
}

// Inputs is the width of a model's input on a store: a node's features, if there are any, and
// behind them its learned vector.
func (c *Node) Inputs(m *kv.Meta) int { return FeatureDim(m) + c.NodeEmbedding }

// FeatureDim is the width of the features of a store that models read; 0 if it has none.
func FeatureDim(m *kv.Meta) int {
	if len(m.Features) == 0 {
		return 0
	}
	return m.Features[0].Dim
}

// choices are the values that a setting may have.
var choices = []struct {
	name   string
	value  func(c *Node) string
	values []string
}{
	{"optimizer", func(c *Node) string { return c.Optimizer },
		[]string{"adam", "adamw", "sgd", "adagrad"}},
	{"lr-schedule", func(c *Node) string { return c.LRSchedule },
		[]string{ScheduleConstant, ScheduleCosine, ScheduleStep, SchedulePlateau, ""}},
	{"loss", func(c *Node) string { return c.Loss }, NodeLosses},
	{"metric", func(c *Node) string { return c.Metric },
		NodeMetrics},
	{"class-weights", func(c *Node) string { return c.ClassWeights },
		[]string{WeightsNone, WeightsBalanced, ""}},
	{"sampler", func(c *Node) string { return c.Sampler },
		[]string{SamplerNeighbor, SamplerLayer, ""}},
	{"sample", func(c *Node) string { return c.Sample },
		[]string{SampleUniform, SampleWeighted, SampleLatest, ""}},
	{"eval-mode", func(c *Node) string { return c.EvalMode }, []string{"exact", EvalSampled}},
	{"cache", func(c *Node) string { return c.Cache },
		CacheNames()},
	{"topology", func(c *Node) string { return c.Topology },
		[]string{"auto", "resident", "plain", "packed", "compact", "paged"}},
	{"normalize", func(c *Node) string { return c.Normalize },
		[]string{"auto", "none", NormalizeRow, NormalizeColumns, ""}},
	{"backend", func(c *Node) string { return c.Backend }, []string{BackendAuto, BackendCPU,
		BackendCUDA}},
	{"precision", func(c *Node) string { return c.Precision },
		[]string{Float32, BFloat16, TF32, ""}},
}

// Choices are the values that the flag of that name may have; nil for flags with more than a few.
func Choices(name string) []string {
	for _, ch := range choices {
		if ch.name == name {
			return slices.DeleteFunc(slices.Clone(ch.values),
				func(v string) bool { return v == "" })
		}
	}
	return nil
}

// Validate reports the first setting that makes no sense, and what would; model.Chosen does so of
// what its model needs too.
func (c *Node) Validate() error {
	if err := c.validateSampler(); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	if k := len(c.Widths); k > 0 && (k != c.Hops()-1 || slices.Min(c.Widths) < 1) {
		return fmt.Errorf("train: hidden %v: give one width, or one of each of the %d layers "+
			"before the last (--fanout or --layer-size says how many there are)", c.Widths,
			c.Hops()-1)
	}
	if err := ValidName(c.Run); err != nil {
		return err
	}
	for _, ch := range choices {
		if v := ch.value(c); !slices.Contains(ch.values, v) {
			return fmt.Errorf("train: unknown %s %q: known are %s", ch.name, v,
				strings.Join(Choices(ch.name), ", "))
		}
	}
	for _, n := range []struct {
		name       string
		value, min int
	}{{"hidden", c.Hidden, 1}, {"batch", c.Batch, 1}, {"epochs", c.Epochs, 0},
		{"patience", c.Patience, 0}, {"eval-every", c.EvalEvery, 1}, {"threads", c.Threads, 0},
		{"warmup", c.Warmup, 0},
		{"checkpoint-every", c.CheckpointEvery, 0}, {"superbatch", c.Superbatch, 0},
		{"device", c.Device, 0}, {"macro-batch", c.MacroBatch, 0}} {
		if n.value < n.min {
			return fmt.Errorf("train: %s %d: give at least %d", n.name, n.value, n.min)
		}
	}
	if c.Memory < 0 || c.FeatureCache < 0 || c.NeighborCache < NeighborAuto ||
		c.DeviceCache < DeviceCacheAuto || c.DeviceMemory < 0 {
		return errors.New("train: a size is negative: give memory and feature-cache in bytes")
	}
	if err := c.validatePartitions(); err != nil {
		return err
	}
	return c.validateRates()
}

func (c *Node) validateRates() error {
	if !(c.LR > 0) || math.IsInf(c.LR, 0) {
		return fmt.Errorf("train: lr %g: give a positive number", c.LR)
	}
	if !(c.WeightDecay >= 0) || math.IsInf(c.WeightDecay, 0) {
		return fmt.Errorf("train: weight-decay %g: give 0 or a positive number", c.WeightDecay)
	}
	if !(c.Clip >= 0) || math.IsInf(c.Clip, 0) {
		return fmt.Errorf("train: clip %g: give the most that the norm of the gradients may be, "+
			"or 0 for any", c.Clip)
	}
	if c.Dropout != DropoutAuto && !(c.Dropout >= 0 && c.Dropout < 1) {
		return fmt.Errorf("train: dropout %g: give a number from 0 to below 1, or auto", c.Dropout)
	}
	return nil
}

// ValidName keeps run names usable as directory names everywhere.
func ValidName(name string) error {
	for _, r := range name {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("._-", r)) {
			return fmt.Errorf("train: run name %q: use letters, digits, '.', '_' and '-'", name)
		}
	}
	if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "-") || len(name) > 100 {
		return fmt.Errorf("train: run name %q: begin with a letter or digit, 100 at most", name)
	}
	return nil
}

// SameResult reports the first setting by which a resumed run would not be the same run, but for
// rounding: it may go on with another backend.
func (c *Node) SameResult(old *Node) error {
	precision := cmp.Or(c.Precision, Float32)
	if c.ChangePrecision {
		precision = cmp.Or(old.Precision, Float32)
	}
	epochs, patience := c.scheduled()
	oldEpochs, oldPatience := old.scheduled()
	for _, f := range []struct {
		name     string
		now, was any
	}{
		{"model", c.Model, old.Model}, {"fanout", fmt.Sprint(c.Fanout), fmt.Sprint(old.Fanout)},
		{"precision", precision, cmp.Or(old.Precision, Float32)},
		{"sampler", cmp.Or(c.Sampler, SamplerNeighbor), cmp.Or(old.Sampler, SamplerNeighbor)},
		{"layer-size", fmt.Sprint(c.LayerSize), fmt.Sprint(old.LayerSize)},
		{"sample", cmp.Or(c.Sample, SampleUniform), cmp.Or(old.Sample, SampleUniform)},
		{"before", c.Limit(), old.Limit()},
		{"hidden", fmt.Sprint(c.Hidden, c.Widths), fmt.Sprint(old.Hidden, old.Widths)},
		{"options of the model", c.Options.String(), old.Options.String()},
		{"order", c.PartitionSettings.text(), old.PartitionSettings.text()},
		{"batch", c.Batch, old.Batch}, {"lr", c.LR, old.LR},
		{"weight-decay", c.WeightDecay, old.WeightDecay}, {"dropout", c.Dropout, old.Dropout},
		{"optimizer", c.Optimizer, old.Optimizer}, {"loss", c.Loss, old.Loss},
		{"metric", c.Metric, old.Metric}, {"normalize", c.Normalize, old.Normalize},
		{"class-weights", cmp.Or(c.ClassWeights, WeightsNone), cmp.Or(old.ClassWeights,
			WeightsNone)},
		{"eval-every", c.EvalEvery, old.EvalEvery},
		{"eval-mode", c.EvalMode, old.EvalMode}, {"split-column", c.Split, old.Split},
		{"lr-schedule", c.schedule(), old.schedule()}, {"epochs", epochs, oldEpochs},
		{"patience", patience, oldPatience}, {"warmup", c.Warmup, old.Warmup},
		{"clip", c.Clip, old.Clip}, {"seed", c.Seed, old.Seed}, {"threads", c.Threads, old.Threads},
	} {
		if f.now != f.was {
			return fmt.Errorf("train: resume %s with %s %v: it began with %v; leave the flag out, "+
				"or start a new run", old.Run, f.name, f.now, f.was)
		}
	}
	return nil
}

// CacheNames are the policies that Node.Cache knows.
func CacheNames() []string {
	return append([]string{"auto", "none", "static", CacheBelady}, sample.PolicyNames()...)
}
