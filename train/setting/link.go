package setting

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// The values of Link.NegativeSampling.
const (
	NegativesUniform = "uniform" // the edges of a batch share entities drawn evenly
	NegativesDegree  = "degree"  // the same, by a power of their degree
	NegativesBatch   = "batch"   // the true answers of the others in the batch
	NegativesChunked = "chunked" // as uniform, but anew for each tenth of a batch
	NegativesEdge    = "edge"    // as uniform, but anew for each edge
)

// NegativesAll as Link.Negatives compares an edge with all entities.
const NegativesAll = 0

// The values of Link.Regularizer.
const (
	RegularizerNone = "none"
	RegularizerL2   = "l2"
	RegularizerN3   = "n3"
)

// Link are those of a training for link prediction. Start from DefaultLink.
type Link struct {
	// Run names the run; "" takes the next free of r0001, r0002, ….
	Run string `json:"run"`
	// Resume names a run to go on with: see SameResult.
	Resume string `json:"-"`
	// Version is gdb's version, for the record.
	Version string `json:"-"`

	// Decoder scores an edge, of entities of Dim numbers; Norm is that of transe and rotate.
	Decoder string `json:"decoder"`
	Dim     int    `json:"dim"`
	Norm    int    `json:"norm"`
	// Reciprocal learns a second row for each relation, for queries for heads (Lacroix, Usunier and
	// Obozinski, "Canonical Tensor Decomposition for Knowledge Base Completion", section 3).
	Reciprocal bool `json:"reciprocal"`
	// Encoder is the model that computes the vectors that are scored from those that are learned,
	// over neighbors drawn by Fanout, a number a layer: sage, gat or rgcn; none scores what is
	// learned. EncoderLR is the rate of its weights, by Adam.
	Encoder   string  `json:"encoder,omitempty"`
	Fanout    string  `json:"fanout,omitempty"`
	EncoderLR float64 `json:"encoder_lr,omitempty"`
	// EncoderInput is what the encoder reads of a node: vectors, features or both.
	EncoderInput string `json:"encoder_input,omitempty"`
	// Negatives is how many entities an edge is compared with, for each end; NegativesAll is all.
	Negatives int `json:"negatives"`
	// NegativeSampling is how they are drawn; by degree, the weight is the degree to DegreePower.
	NegativeSampling string  `json:"negative_sampling"`
	DegreePower      float64 `json:"degree_power"`
	// FilterNegatives leaves negatives out that the training set says are true.
	FilterNegatives bool `json:"filter_negatives"`
	// Loss is softmax, logistic, margin or adversarial, Margin the margin of the last two, and
	// Temperature that of the last.
	Loss        string  `json:"loss"`
	Margin      float64 `json:"margin"`
	Temperature float64 `json:"temperature"`
	// Regularizer is none, l2 (the sum of squares) or n3 (of cubes of moduli), of the rows of each
	// edge, times RegularizerWeight; that of relations is weighted by RelationWeight as well.
	Regularizer       string  `json:"regularizer"`
	RegularizerWeight float64 `json:"regularizer_weight"`
	// Dropout is the share of the values of queries that are zeroed in training.
	Dropout float64 `json:"dropout"`
	// Staleness is how many updates, of the batches before it, the rows that a batch reads may
	// lack. 0 takes one step after the other.
	Staleness int `json:"staleness,omitempty"`
	// Init is the deviation of the values that training begins with.
	Init float64 `json:"init"`

	// Optimizer is adagrad or adam, and LR its rate.
	Optimizer string  `json:"optimizer"`
	LR        float64 `json:"lr"`
	// LRSchedule is constant, or plateau: the rate is halved when val did not improve in
	// PlateauWait evaluations.
	LRSchedule string `json:"lr_schedule"`
	// Batch is the number of edges of a step or, with all entities as negatives, of queries.
	Batch int `json:"batch"`
	// Epochs is the most epochs that are trained.
	Epochs int `json:"epochs"`
	// Patience stops the run when so many evaluations in a row did not improve; 0 never.
	Patience int `json:"patience"`
	// EvalEvery is how many epochs lie between two evaluations on the validation edges, and
	// Candidates how many entities each end is ranked among in them and in the test; 0 is all.
	EvalEvery  int `json:"eval_every"`
	Candidates int `json:"candidates"`

	// Order is one of LinkOrders; "" is OrderMemory. With vectors on disk, Partitions is how many
	// partitions there are, PartitionsInMemory how many are in memory at once, and
	// LogicalPartitions how many groups they are put to; 0 has the rules choose.
	Order              string `json:"order,omitempty"`
	Partitions         int    `json:"partitions,omitempty"`
	PartitionsInMemory int    `json:"partitions_in_memory,omitempty"`
	LogicalPartitions  int    `json:"logical_partitions,omitempty"`

	// Seed is the root of all randomness.
	Seed uint64 `json:"seed"`
	// Threads is the number of compute workers; 0 takes all cores. Results do not depend on it.
	Threads int `json:"threads"`
	// Memory bounds the process in bytes; 0 takes half of what the machine allows.
	Memory int64 `json:"memory"`
	// CheckpointEvery is the number of batches between checkpoints within an epoch; one is written
	// every 30 s and after each epoch too. 0 leaves it at that.
	CheckpointEvery int `json:"checkpoint_every"`
	// FewCheckpoints writes none by the clock, only after an evaluation that is the best so far and
	// at the end: for measurements of runs that nobody will resume.
	FewCheckpoints bool `json:"-"`
}

// The values of Link.Order.
const (
	OrderAuto     = "auto"   // in memory if all fits, else two-level
	OrderMemory   = "memory" // all vectors are in memory
	OrderBeta     = "beta"
	OrderTwoLevel = "tlbeta"
)

// LinkOrders are the values of Link.Order.
func LinkOrders() []string { return []string{OrderAuto, OrderMemory, OrderBeta, OrderTwoLevel} }

// OnDisk says that vectors are on disk by partition: of settings of a run, not those of one to be,
// which may be OrderAuto.
func (c *Link) OnDisk() bool { return c.Order == OrderBeta || c.Order == OrderTwoLevel }

// ScoredOnDisk says that the vectors that are scored are on disk too: what an encoder makes of
// learned vectors is in memory.
func (c *Link) ScoredOnDisk() bool { return c.OnDisk() && !c.Encodes() }

// StalenessMax is the largest Link.Staleness.
const StalenessMax = 16

// PlateauWaitLink is how many evaluations without a better one halve the rate with schedule
// plateau.
const PlateauWaitLink = 3

// LinkSchedules are the values of Link.LRSchedule.
func LinkSchedules() []string { return []string{ScheduleConstant, SchedulePlateau} }

// NegativeSamplings are the values of Link.NegativeSampling.
func NegativeSamplings() []string {
	return []string{NegativesUniform, NegativesDegree, NegativesBatch, NegativesChunked,
		NegativesEdge}
}

// Regularizers are the values of Link.Regularizer.
func Regularizers() []string { return []string{RegularizerNone, RegularizerL2, RegularizerN3} }

// LinkOptimizers are the values of Link.Optimizer.
func LinkOptimizers() []string { return []string{"adagrad", "adam"} }

// DefaultLink returns the settings that the command line starts from for a decoder: the recipe with
// which docs/link.md has its figures.
func DefaultLink(name string) Link {
	c := Link{Decoder: name, Dim: 200, Norm: 2, Encoder: EncoderNone, Fanout: "20",
		EncoderLR: 0.003, EncoderInput: EncoderVectors, Negatives: 400,
		NegativeSampling: NegativesUniform, DegreePower: 0.75,
		Loss: LossSoftmax, Margin: 9, Temperature: 1, Regularizer: RegularizerNone, Init: 0.1,
		Optimizer: "adagrad", LR: 0.1, LRSchedule: ScheduleConstant, Batch: 512, Epochs: 36,
		Patience: 3, EvalEvery: 3, Seed: 1, Order: OrderAuto}
	switch name {
	case "distmult", "complex":
		c.Dim, c.Reciprocal, c.Negatives, c.Batch, c.Init = 256, true, 1000, 1024, 0.01
		c.Regularizer, c.RegularizerWeight = RegularizerN3, 0.03
		c.EvalEvery, c.Patience = 6, 0
	case "rotate":
		c.Dim, c.Reciprocal, c.LR, c.Dropout = 256, true, 0.2, 0.2
	}
	return c
}

// Text is the settings in one line.
func (c *Link) Text() string {
	negatives := "all entities"
	if c.Negatives != NegativesAll {
		negatives = fmt.Sprintf("%d %s negatives", c.Negatives, c.NegativeSampling)
	}
	encoder := ""
	if c.Encodes() {
		encoder = fmt.Sprintf(" behind %s %s", c.Encoder, c.Fanout)
		if c.EncodesFeatures() {
			encoder += " of " + c.EncoderInput
		}
	}
	stale := ""
	if c.Staleness > 0 {
		stale = fmt.Sprintf(", up to %d updates behind", c.Staleness)
	}
	return fmt.Sprintf("%s of %d numbers%s, %s with %s, batch %d%s, seed %d", c.Decoder, c.Dim,
		encoder, c.Loss, negatives, c.Batch, stale, c.Seed)
}

// Validate reports the first setting that makes no sense, and what would.
func (c *Link) Validate() error {
	if !slices.Contains(Decoders, c.Decoder) {
		return fmt.Errorf("train: unknown decoder %q: known are %s", c.Decoder,
			strings.Join(Decoders, ", "))
	}
	if err := ValidName(c.Run); err != nil {
		return err
	}
	for _, w := range []struct {
		name, value string
		known       []string
	}{{"negative-sampling", c.NegativeSampling, NegativeSamplings()},
		{"regularizer", c.Regularizer, Regularizers()},
		{"optimizer", c.Optimizer, LinkOptimizers()},
		{"lr-schedule", c.LRSchedule, LinkSchedules()}} {
		if !slices.Contains(w.known, w.value) {
			return fmt.Errorf("train: unknown %s %q: known are %s", w.name, w.value,
				strings.Join(w.known, ", "))
		}
	}
	return errors.Join(c.validateCounts(), c.validateNumbers(), c.validateEncoder(),
		c.validateOrder())
}

func (c *Link) validateCounts() error {
	for _, n := range []struct {
		name       string
		value, min int
	}{{"batch", c.Batch, 1}, {"epochs", c.Epochs, 1}, {"patience", c.Patience, 0},
		{"eval-every", c.EvalEvery, 1}, {"threads", c.Threads, 0}, {"candidates", c.Candidates, 0},
		{"negatives", c.Negatives, 0}, {"checkpoint-every", c.CheckpointEvery, 0},
		{"partitions", c.Partitions, 0}, {"partitions-in-memory", c.PartitionsInMemory, 0},
		{"logical-partitions", c.LogicalPartitions, 0}} {
		if n.value < n.min {
			return fmt.Errorf("train: %s %d: give at least %d", n.name, n.value, n.min)
		}
	}
	if c.Memory < 0 {
		return errors.New("train: memory is negative: give it in bytes")
	}
	switch {
	case c.Staleness < 0 || c.Staleness > StalenessMax:
		return fmt.Errorf("train: staleness %d: give 0 to %d", c.Staleness, StalenessMax)
	case c.Staleness > 0 && (c.Negatives == NegativesAll || c.Encodes()):
		return errors.New("train: --staleness is for drawn negatives and no encoder: other steps " +
			"change all that they read")
	}
	if c.FilterNegatives && c.Negatives == NegativesAll {
		return errors.New("train: --filter-negatives is for drawn negatives: with all entities " +
			"as negatives, those that are true are known")
	}
	return nil
}

func (c *Link) validateOrder() error {
	if c.Order != "" && !slices.Contains(LinkOrders(), c.Order) {
		return fmt.Errorf("train: unknown order %q: known are %s; dispersed and sequential are "+
			"for nodes", c.Order, strings.Join(LinkOrders(), ", "))
	}
	if !c.OnDisk() && c.Order != OrderAuto && (c.Partitions != 0 || c.PartitionsInMemory != 0 ||
		c.LogicalPartitions != 0) {
		return fmt.Errorf("train: partitions are of --order %s and %s", OrderTwoLevel, OrderBeta)
	}
	switch {
	case !c.OnDisk():
	case c.Negatives == NegativesAll:
		return errors.New("train: with vectors on disk not all entities are there to compare " +
			"with: give a number of --negatives")
	case c.FilterNegatives:
		return errors.New("train: --filter-negatives needs all edges in memory, and with vectors " +
			"on disk they are not: leave it out")
	case c.Encoder == "rgcn":
		return errors.New("train: the lists of partitions in memory have no types of edges, and " +
			"--encoder rgcn reads them: take sage or gat, or leave --order and partitions out")
	}
	return nil
}

func (c *Link) validateNumbers() error {
	for _, n := range []struct {
		name  string
		value float64
		fits  bool
		want  string
	}{{"lr", c.LR, c.LR > 0, "a positive number"},
		{"init", c.Init, c.Init > 0, "a positive number"},
		{"regularizer-weight", c.RegularizerWeight, c.RegularizerWeight >= 0,
			"0 or a positive number"},
		{"margin", c.Margin, c.Margin >= 0, "0 or a positive number"},
		{"temperature", c.Temperature, c.Temperature >= 0, "0 or a positive number"},
		{"degree-power", c.DegreePower, c.DegreePower >= 0, "0 or a positive number"},
		{"dropout", c.Dropout, c.Dropout >= 0 && c.Dropout < 1, "a number from 0 to below 1"}} {
		if !n.fits || math.IsInf(n.value, 0) {
			return fmt.Errorf("train: %s %g: give %s", n.name, n.value, n.want)
		}
	}
	return nil
}

// SameResult reports the first setting by which a resumed run would not be the same run.
func (c *Link) SameResult(old *Link) error {
	now, was := *c, *old
	for _, s := range []*Link{&now, &was} { // what may change
		s.Run, s.Resume, s.Version, s.Threads, s.Memory, s.CheckpointEvery = "", "", "", 0, 0, 0
		s.Epochs, s.Patience = 0, 0
		if s.EncoderInput == "" { // of a run that was made before there was a choice
			s.EncoderInput = EncoderVectors
		}
	}
	if now == was {
		return nil
	}
	return fmt.Errorf("train: resume %s with other settings than it began with: only --epochs, "+
		"--patience, --threads, --memory and --checkpoint-every may change; leave the others out, "+
		"or start a new run", old.Run)
}
