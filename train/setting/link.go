package setting

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gdb/internal/message"
)

// The values of Comparing.NegativeSampling.
const (
	NegativesUniform = "uniform" // the edges of a batch share entities drawn evenly
	NegativesDegree  = "degree"  // the same, by a power of their degree
	NegativesBatch   = "batch"   // the true answers of the others in the batch
	NegativesChunked = "chunked" // as uniform, but anew for each tenth of a batch
	NegativesEdge    = "edge"    // as uniform, but anew for each edge
)

// NegativesAll as Comparing.Negatives compares an edge with all entities.
const NegativesAll = 0

// The values of Scoring.Regularizer.
const (
	RegularizerNone = "none"
	RegularizerL2   = "l2"
	RegularizerN3   = "n3"
)

// Link are the settings of a training for link prediction. Start from DefaultLink.
type Link struct {
	Identity
	Scoring
	Encoding
	Comparing
	Learning
	Schedule
	Ranking
	LinkPartitions
	Computing
	Process
	// FewCheckpoints writes none by the clock, only after an evaluation that is the best so far and
	// at the end: for measurements of runs that nobody will resume.
	FewCheckpoints bool `json:"-"`
}

// Scoring is how an edge is scored, by vectors that are learned.
type Scoring struct {
	// Decoder scores an edge between entities of Dim numbers; Norm, 1 or 2, is the norm that transe
	// and rotate measure distances by.
	Decoder string `json:"decoder"`
	Dim     int    `json:"dim"`
	Norm    int    `json:"norm"`
	// Reciprocal learns a second row for each relation, for queries for heads (Lacroix, Usunier and
	// Obozinski, "Canonical Tensor Decomposition for Knowledge Base Completion", section 3).
	Reciprocal bool `json:"reciprocal"`
	// Margin is the margin of the losses margin and adversarial; Temperature says how much
	// adversarial prefers negatives that score high.
	Margin      float64 `json:"margin"`
	Temperature float64 `json:"temperature"`
	// Regularizer is none, l2 (the sum of squares) or n3 (of cubes of moduli), of the rows of each
	// edge, times RegularizerWeight.
	Regularizer       string  `json:"regularizer"`
	RegularizerWeight float64 `json:"regularizer_weight"`
	// Staleness is how many updates, of the batches before it, the rows that a batch reads may
	// lack. 0 takes one step after the other.
	Staleness int `json:"staleness,omitempty"`
	// Init is the deviation of the values that training begins with.
	Init float64 `json:"init"`
}

// Comparing is what edges are compared with.
type Comparing struct {
	// Negatives is how many entities an edge is compared with, for each end; NegativesAll is all.
	Negatives int `json:"negatives"`
	// NegativeSampling is how they are drawn; by degree, the weight is the degree to DegreePower.
	NegativeSampling string  `json:"negative_sampling"`
	DegreePower      float64 `json:"degree_power"`
	// FilterNegatives leaves negatives out that the training set says are true.
	FilterNegatives bool `json:"filter_negatives"`
}

// OnDisk says that vectors are on disk by partition: of settings of a run, not those of one to be,
// which may be OrderAuto.
func (c *Link) OnDisk() bool { return c.Order == OrderBeta || c.Order == OrderTwoLevel }

// ScoredOnDisk says that the vectors that are scored are on disk too: what an encoder makes of
// learned vectors is in memory.
func (c *Link) ScoredOnDisk() bool { return c.OnDisk() && !c.Encodes() }

// StalenessMax is the largest Scoring.Staleness.
const StalenessMax = 16

// PlateauWaitLink is how many evaluations without a better one halve the rate with schedule
// plateau.
const PlateauWaitLink = 3

// recipes lists by decoder what its settings start from, where it is not the default of the table.
// The figures of docs/link.md are made with these.
var recipes = map[string]map[string]string{
	"distmult": bilinear, "complex": bilinear,
	"rotate": {"dim": "256", "reciprocal": "true", "lr": "0.2", "dropout": "0.2"},
}

var bilinear = map[string]string{"dim": "256", "reciprocal": "true", "negatives": "1000",
	"batch": "1024", "init": "0.01", "regularizer": RegularizerN3, "regularizer-weight": "0.03",
	"eval-every": "6", "patience": "0"}

// DefaultLink returns the settings that the command line starts from for a decoder: its recipe.
func DefaultLink(decoder string) (c Link) {
	fill(&c)
	c.Decoder = decoder
	for name, value := range recipes[decoder] {
		if err := Find(name).value(&c).Set(value); err != nil {
			panic("BUG: recipe of " + decoder + ": " + name + ": " + err.Error())
		}
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

// Validate reports the first setting that makes no sense, and what would; package link does so of
// what its decoder and its loss need too.
func (c *Link) Validate() error {
	if !slices.Contains(Decoders, c.Decoder) {
		return fmt.Errorf("train: unknown decoder %q: known are %s", c.Decoder,
			strings.Join(Decoders, ", "))
	}
	if err := ValidName(c.Run); err != nil {
		return err
	}
	if err := checkRows(c); err != nil {
		return err
	}
	return errors.Join(c.validateCounts(), c.validateEncoder(), c.validateOrder(),
		c.validateDevice())
}

func (c *Link) validateCounts() error {
	if c.Memory < 0 {
		return errors.New("train: memory is negative: give it in bytes")
	}
	if c.Staleness > 0 && (c.Negatives == NegativesAll || c.Encodes()) {
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
	if c.Order != "" && !slices.Contains(LinkOrders, c.Order) {
		return fmt.Errorf("train: unknown order %q: known are %s; dispersed and sequential are "+
			"for nodes", c.Order, strings.Join(LinkOrders, ", "))
	}
	if !c.OnDisk() && c.Order != OrderAuto && c.Given() {
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

// validateDevice refuses what is computed by the CPU alone. Backend may still be auto.
func (c *Link) validateDevice() error {
	if c.Parts() > 1 {
		return fmt.Errorf("train: --device %s: --task link: %w", FormatDevices(c.Devices()),
			errOneDevice)
	}
	if c.Backend != BackendCUDA {
		return nil
	}
	if c.Staleness == 0 {
		return nil
	}
	return errors.New("train: --backend cuda: steps with --staleness are computed by the CPU " +
		"alone: leave one of both out")
}

// SameResult reports the first setting by which a resumed run would not be the same run.
func (c *Link) SameResult(old *Link) error { return sameRows(c, old, old.Run) }

// SameModel reports the first setting by which the vectors of a run do not fit.
func (c *Link) SameModel(old *Link) error { return sameModel(c, old, old.Run) }

// LinkOptimizers are the values of Learning.Optimizer of links.
var LinkOptimizers = []string{"adagrad", "adam"}

// NegativeSamplings are the values of Comparing.NegativeSampling.
var NegativeSamplings = []string{NegativesUniform, NegativesDegree, NegativesBatch,
	NegativesChunked, NegativesEdge}

// Regularizers are the values of Scoring.Regularizer.
var Regularizers = []string{RegularizerNone, RegularizerL2, RegularizerN3}

// Decoders and losses that other settings belong to.
var (
	distances = []string{"transe", "rotate"}
	margins   = []string{LossMargin, LossAdversarial}
)

// What settings of links need.
var (
	needsEncoder = []Need{{"--encoder", func(c *Link) bool { return !c.Encodes() }}}
	needsNumber  = Need{"a number of --negatives",
		func(c *Link) bool { return c.Negatives == NegativesAll }}
	needsDegree = Need{"--negative-sampling degree",
		func(c *Link) bool { return c.NegativeSampling != NegativesDegree }}
	needsDistance = Need{"--decoder " + message.OneOf(distances),
		func(c *Link) bool { return !slices.Contains(distances, c.Decoder) }}
	needsMargin = Need{"--loss " + message.OneOf(margins),
		func(c *Link) bool { return !slices.Contains(margins, c.Loss) }}
	needsAdversarial = Need{"--loss " + LossAdversarial,
		func(c *Link) bool { return c.Loss != LossAdversarial }}
	needsRegularizer = Need{"--regularizer",
		func(c *Link) bool { return c.Regularizer == RegularizerNone }}
)

// linkRows are the settings of links alone: what scores edges, what encodes vectors, what an edge
// is compared with, and how vectors are taught.
var linkRows = slices.Concat(scoringRows, encodingRows, comparingRows, teachingRows)

var scoringRows = []*Row{
	{Name: "decoder", For: OfLinks, Weights: true,
		Default: Decoders[0], Choices: Decoders, Group: GroupLink,
		Help: "with --task link, what scores an edge: {choices}; what else is not given is as " +
			"its recipe says ({gdb} help link)"},
	{Name: "dim", For: OfLinks, Weights: true, Default: "200", Group: GroupLink,
		Help: "numbers that are learned for each entity"},
	{Name: "norm-order", Field: "norm", For: OfLinks, Weights: true,
		Default: "2", Choices: []string{"1", "2"},
		Any: true, Group: GroupLink, Needs: []Need{needsDistance},
		Help: "norm of transe and rotate: 1 or 2"},
	{Name: "reciprocal", For: OfLinks, Weights: true, Group: GroupLink,
		Help: "learn each relation a second time for questions for heads"},
}

var encodingRows = []*Row{
	{Name: "encoder", For: OfLinks, Weights: true,
		Default: EncoderNone, Unset: EncoderNone, Choices: Encoders,
		Group: GroupLink, Help: "model over drawn neighbors that makes the vectors that are " +
			"scored: {choices}"},
	{Name: "encoder-lr", For: OfLinks, Default: "0.003", Group: GroupLink, Needs: needsEncoder,
		Help: "rate of the encoder's weights, by Adam"},
	{Name: "encoder-input", For: OfLinks, Weights: true,
		Default: EncoderVectors, Unset: EncoderVectors,
		Choices: EncoderInputs, Group: GroupLink, Needs: needsEncoder, Help: "what it reads of a " +
			"node: vectors, which are learned, features of the store, or both"},
}

var comparingRows = []*Row{
	{Name: "negatives", For: OfLinks, Type: countOrAll, Default: "400", Choices: []string{"all"},
		Any: true, Check: atLeast(0), Group: GroupLink, Help: "entities that each end of an edge " +
			"is compared with; all: all there are"},
	{Name: "negative-sampling", For: OfLinks, Default: NegativesUniform,
		Choices: NegativeSamplings, Group: GroupLink, Needs: []Need{needsNumber},
		Help: "how they are drawn: {choices}"},
	{Name: "degree-power", For: OfLinks, Default: "0.75", Check: notNegative, Group: GroupLink,
		Needs: []Need{needsNumber, needsDegree},
		Help:  "power of the degree that --negative-sampling degree draws by"},
	{Name: "filter-negatives", For: OfLinks, Group: GroupLink, Needs: []Need{needsNumber},
		Help: "leave out drawn negatives that are edges of the train split"},
}

var teachingRows = []*Row{
	{Name: "margin", For: OfLinks, Default: "9", Check: notNegative, Group: GroupLink,
		Needs: []Need{needsMargin}, Help: "margin of --loss margin and adversarial"},
	{Name: "temperature", For: OfLinks, Default: "1", Check: notNegative, Group: GroupLink,
		Needs: []Need{needsAdversarial},
		Help:  "how much --loss adversarial prefers negatives that score high"},
	{Name: "regularizer", For: OfLinks, Default: RegularizerNone, Choices: Regularizers,
		Group: GroupLink, Help: "what keeps numbers small: {choices}"},
	{Name: "regularizer-weight", For: OfLinks, Check: notNegative, Group: GroupLink,
		Needs: []Need{needsRegularizer}, Help: "weight of the regularizer"},
	{Name: "staleness", For: OfLinks, Check: between(0, StalenessMax), Group: GroupLink,
		Help: "updates of the batches before it that a batch may be without, so that several are " +
			"under way; 0 is exact"},
	{Name: "init", For: OfLinks, Default: "0.1", Check: positive, Group: GroupLink,
		Help: "deviation of the numbers that training begins with"},
}
