package setting

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gdb/internal/mem"
	"gdb/layout/partitioner"
)

// The orders of training nodes: OrderMemory draws from the whole graph, the others from the
// partitions in memory, see package partitioned.
const (
	OrderDispersed  = "dispersed"
	OrderSequential = "sequential"
)

// BufferedOrders lists the orders of nodes in which some partitions are in memory at a time. Links
// are planned in them, and not trained.
var BufferedOrders = []string{OrderDispersed, OrderSequential}

// NodeOrders lists the values of PartitionSettings.PartitionOrder.
var NodeOrders = slices.Concat([]string{OrderMemory}, BufferedOrders)

// The values of LinkPartitions.Order.
const (
	OrderAuto     = "auto"   // in memory if all fits, else two-level
	OrderMemory   = "memory" // all vectors are in memory
	OrderBeta     = "beta"
	OrderTwoLevel = "tlbeta"
)

// LinkOrders are the values of LinkPartitions.Order.
var LinkOrders = []string{OrderAuto, OrderMemory, OrderBeta, OrderTwoLevel}

// Strategies lists the values of PartitionSettings.Strategy. Exact draws from the whole graph, if
// no order says otherwise; macro draws from macro-batches, which are partitions of the store, and
// pbs does with hidden states of earlier steps for neighbors that are not there.
var Strategies = []string{StrategyExact, StrategyMacro, StrategyPBS}

// The strategies.
const (
	StrategyExact = "exact"
	StrategyMacro = "macro"
	StrategyPBS   = "pbs"
)

// PartitionCounts say how partitions of the graph are in memory, if they are in turn; 0 has the
// rules choose.
type PartitionCounts struct {
	// Partitions is how many partitions there are, PartitionsInMemory how many are in memory at
	// once, and LogicalPartitions how many groups they are put to.
	Partitions         int `json:"partitions,omitempty"`
	PartitionsInMemory int `json:"partitions_in_memory,omitempty"`
	LogicalPartitions  int `json:"logical_partitions,omitempty"`
}

// Given says whether some number is not left to the rules.
func (p *PartitionCounts) Given() bool { return *p != PartitionCounts{} }

// PartitionSettings say which part of the graph is in memory while nodes are trained on.
type PartitionSettings struct {
	// Strategy is one of Strategies; "" is exact.
	Strategy string `json:"strategy,omitempty"`
	// PartitionOrder is one of NodeOrders; "" is OrderMemory.
	PartitionOrder string `json:"partition_order,omitempty"`
	PartitionCounts
	MacroBatches
}

// MacroBatches says what macro-batches have beside their partitions.
type MacroBatches struct {
	// Hubs is the memory for nodes that are in all macro-batches, in bytes; 0 takes a share of what
	// there is, and HubsNone has no hubs.
	Hubs int64 `json:"hubs,omitempty"`
	// HubsBy is which nodes are hubs: a partitioner.Score; "" is influence.
	HubsBy string `json:"hubs_by,omitempty"`
	// Reuse is how often a macro-batch is gone through while it is in memory, ReuseMost at most; 0
	// is once, and ReuseAuto leaves it to the plan, which records what it chose.
	Reuse int `json:"reuse,omitempty"`
}

const (
	// HubsNone as MacroBatches.Hubs has no hubs.
	HubsNone = -1
	// ReuseAuto as MacroBatches.Reuse is as often as keeps computing busy while the next
	// macro-batch is read.
	ReuseAuto = -1
	// ReuseMost is the most that reusing data does not harm, as was found elsewhere ("Hanoi",
	// section 4.2.2).
	ReuseMost = 4
)

// LinkPartitions say which vectors are in memory while links are trained on.
type LinkPartitions struct {
	// Order is one of LinkOrders; "" is OrderMemory.
	Order string `json:"order,omitempty"`
	PartitionCounts
}

var partitionRows = []*Row{
	{Name: "strategy", For: OfNodes, NotIn: BenchTrain, Default: StrategyExact,
		Unset: StrategyExact, Type: wordUnset(StrategyExact), Choices: Strategies,
		Group: GroupPartitions, Help: "how batches are made: {choices} ({gdb} help strategies)"},
	{Name: "hubs", For: OfNodes, NotIn: BenchTrain, Default: "auto", Type: hubsSize,
		Group: GroupPartitions, Help: "memory of nodes that are in all macro-batches; auto: an " +
			"eighth of theirs, none for pbs with --precompute; 0: none"},
	{Name: "hubs-by", For: OfNodes, NotIn: BenchTrain, Default: hubScores[0],
		Unset: hubScores[0], Type: wordUnset(hubScores[0]), Choices: hubScores,
		Group: GroupPartitions, Help: "which nodes these are, by their {choices}"},
	{Name: "reuse", For: OfNodes, NotIn: BenchTrain, Default: "1", Type: reuseCount,
		Group: GroupPartitions,
		Help: "how often a macro-batch is trained on while it is in memory, up to 4 times; auto: " +
			"until the next one can be there, by what is measured before the run"},
	{Name: "order", Field: "partition_order", LinkField: "order", For: OfBoth,
		NotIn: BenchTrain | BenchLink, Type: wordUnset(OrderAuto), LinkType: plain,
		Default: OrderAuto, Unset: OrderMemory,
		Choices: slices.Concat(LinkOrders, BufferedOrders), Any: true,
		Group: GroupPartitions,
		Help: "in which order partitions of the graph come to memory: {choices}. Of links, auto " +
			"is memory if all vectors fit, else tlbeta; of nodes it is memory, exact sampling, " +
			"and dispersed and sequential draw neighbors among the partitions there"},
	{Name: "partitions", For: OfBoth, NotIn: BenchTrain, LinkCheck: atLeast(0),
		Group: GroupPartitions,
		Help:  "partitions of the graph; 0 is by the rules of {gdb} plan"},
	{Name: "partitions-in-memory", For: OfBoth, NotIn: BenchTrain | BenchLink,
		LinkCheck: atLeast(0),
		Group:     GroupPartitions, Help: "how many of them are in memory at once"},
	{Name: "logical-partitions", For: OfBoth, NotIn: BenchTrain | BenchLink, LinkCheck: atLeast(0),
		Group: GroupPartitions,
		Help:  "how many groups they are put to, which go in and out of memory together"},
}

// wordUnset is a word that records do not have if it is the usual one.
func wordUnset(usual string) Kind {
	return func(fields []any) Value {
		return &parsed[string]{fields[0].(*string), "string", func(v string) string {
			return cmp.Or(v, usual)
		}, func(s string) (string, error) {
			if s == usual {
				return "", nil
			}
			return s, nil
		}}
	}
}

// hubScores are the values of MacroBatches.HubsBy.
var hubScores = []string{string(partitioner.Influence), string(partitioner.PageRank),
	string(partitioner.Degree)}

// HubScore returns the score that hubs are chosen by.
func (m *MacroBatches) HubScore() partitioner.Score {
	return partitioner.Score(cmp.Or(m.HubsBy, hubScores[0]))
}

// hubsSize is a size, auto, or 0 for no hubs.
var hubsSize = auto[int64]{0, "auto|SIZE", func(v int64) string {
	return mem.FormatSize(max(0, v))
}, func(s string) (int64, error) {
	n, err := mem.ParseSize(s)
	if n == 0 {
		n = HubsNone
	}
	return n, err
}}.kind

// reuseCount is auto, or a number from 1 to ReuseMost, of which records do not have 1.
func reuseCount(fields []any) Value {
	return &parsed[int]{fields[0].(*int), "auto|N", func(v int) string {
		if v == ReuseAuto {
			return "auto"
		}
		return strconv.Itoa(max(1, v))
	}, func(s string) (int, error) {
		if s == "auto" {
			return ReuseAuto, nil
		}
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > ReuseMost {
			return 0, fmt.Errorf("want auto, or 1 to %d", ReuseMost)
		}
		if n == 1 {
			n = 0
		}
		return n, nil
	}}
}

// Macro says whether batches are drawn from macro-batches.
func (p *PartitionSettings) Macro() bool { return p.Strategy == StrategyMacro || p.Halo() }

// Halo says whether batches have neighbors outside memory, by their hidden states of earlier steps.
func (p *PartitionSettings) Halo() bool { return p.Strategy == StrategyPBS }

// Buffered says whether batches are drawn from partitions in memory.
func (p *PartitionSettings) Buffered() bool {
	return p.Macro() || p.PartitionOrder != "" && p.PartitionOrder != OrderMemory
}

// Means names the setting with which partitions are in memory, for messages.
func (p *PartitionSettings) Means() string {
	if p.Macro() {
		return "--strategy " + p.Strategy
	}
	return "--order " + p.PartitionOrder
}

// Resolved takes the numbers that the rules chose for a run which goes on.
func (p *PartitionSettings) Resolved(old *PartitionSettings) {
	if p.Macro() {
		p.Hubs = cmp.Or(p.Hubs, old.Hubs)
		if p.Reuse == ReuseAuto {
			p.Reuse = old.Reuse
		}
	}
	p.Partitions = cmp.Or(p.Partitions, old.Partitions)
	p.PartitionsInMemory = cmp.Or(p.PartitionsInMemory, old.PartitionsInMemory)
	p.LogicalPartitions = cmp.Or(p.LogicalPartitions, old.LogicalPartitions)
}

// validatePartitions reports what partitions in memory do not go with.
func (c *Node) validatePartitions() error {
	p := &c.PartitionSettings
	switch {
	case !p.Macro() && p.MacroBatches != MacroBatches{}:
		return errors.New("train: --hubs, --hubs-by and --reuse are for --strategy macro and " +
			"pbs: give one, or leave them out")
	case p.Macro() && p.PartitionOrder != "":
		return fmt.Errorf("train: %s goes through partitions in an order of its own: leave "+
			"--order %s out", p.Means(), p.PartitionOrder)
	case p.Macro() && (p.Partitions > 0 || p.LogicalPartitions > 0):
		return fmt.Errorf("train: %s takes the partitions that the store has: leave --partitions "+
			"and --logical-partitions out", p.Means())
	}
	if p.PartitionOrder != "" && !slices.Contains(NodeOrders, p.PartitionOrder) {
		return fmt.Errorf("train: --order %s: nodes are trained in the order %s (others are of "+
			"--task link)", p.PartitionOrder, strings.Join(NodeOrders, ", "))
	}
	if p.Partitions < 0 || p.PartitionsInMemory < 0 || p.LogicalPartitions < 0 {
		return errors.New("train: --partitions, --partitions-in-memory and --logical-partitions " +
			"are numbers from 1 on; 0 has the rules choose")
	}
	if !p.Buffered() {
		if p.Given() {
			return errors.New("train: all of the graph is read unless --order says otherwise: " +
				"give --order dispersed or sequential, or leave numbers of partitions out")
		}
		return nil
	}
	for _, refused := range []struct {
		is   bool
		what string
	}{
		{c.Cache != "auto", "--cache, since a partition is in memory as a whole"},
		{c.Superbatch > 0, "--superbatch"}, {c.MacroBatch > 1, "--macro-batch"},
		{c.Sampler == SamplerLayer, "--sampler layer"},
		{c.Sample != SampleUniform && c.Sample != "", "--sample " + c.Sample},
		{c.Before != nil, "--before"}, {c.NodeEmbedding > 0, "--node-embedding"},
		{p.Halo() && c.Norm == "batch", "--norm batch"},
	} {
		if refused.is {
			return fmt.Errorf("train: %s does not go with %s: leave one of both out", p.Means(),
				refused.what)
		}
	}
	return nil
}
