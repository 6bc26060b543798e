package setting

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
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
	// PartitionOrder is one of NodeOrders; "" is OrderMemory.
	PartitionOrder string `json:"partition_order,omitempty"`
	PartitionCounts
}

// LinkPartitions say which vectors are in memory while links are trained on.
type LinkPartitions struct {
	// Order is one of LinkOrders; "" is OrderMemory.
	Order string `json:"order,omitempty"`
	PartitionCounts
}

var partitionRows = []*Row{
	{Name: "order", Field: "partition_order", LinkField: "order", For: OfBoth,
		NotIn: BenchTrain | BenchLink, Type: nodeOrder, LinkType: plain, Default: OrderAuto,
		Unset:   OrderMemory,
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

// nodeOrder is an order of nodes, which records do not have for auto.
func nodeOrder(fields []any) Value {
	return &parsed[string]{fields[0].(*string), "string", func(v string) string {
		return cmp.Or(v, OrderAuto)
	}, func(s string) (string, error) {
		if s == OrderAuto {
			return "", nil
		}
		return s, nil
	}}
}

// Buffered says whether batches are drawn from partitions in memory.
func (p *PartitionSettings) Buffered() bool {
	return p.PartitionOrder != "" && p.PartitionOrder != OrderMemory
}

// Resolved takes the numbers that the rules chose for a run which goes on.
func (p *PartitionCounts) Resolved(old *PartitionCounts) {
	p.Partitions = cmp.Or(p.Partitions, old.Partitions)
	p.PartitionsInMemory = cmp.Or(p.PartitionsInMemory, old.PartitionsInMemory)
	p.LogicalPartitions = cmp.Or(p.LogicalPartitions, old.LogicalPartitions)
}

// validatePartitions reports what partitions in memory do not go with.
func (c *Node) validatePartitions() error {
	p := &c.PartitionSettings
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
		{c.Precompute, "--precompute"},
	} {
		if refused.is {
			return fmt.Errorf("train: --order %s does not go with %s: leave one of both out",
				p.PartitionOrder, refused.what)
		}
	}
	return nil
}
