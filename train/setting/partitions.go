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

// NodeOrders are the values of PartitionSettings.PartitionOrder.
func NodeOrders() []string { return []string{OrderMemory, OrderDispersed, OrderSequential} }

// PartitionSettings say which part of the graph is in memory while nodes are trained on.
type PartitionSettings struct {
	// PartitionOrder is one of NodeOrders; "" is OrderMemory. With another, Partitions is how many
	// partitions there are, PartitionsInMemory how many are in memory at once, and
	// LogicalPartitions how many groups they are put to; 0 has the rules choose.
	PartitionOrder     string `json:"partition_order,omitempty"`
	Partitions         int    `json:"partitions,omitempty"`
	PartitionsInMemory int    `json:"partitions_in_memory,omitempty"`
	LogicalPartitions  int    `json:"logical_partitions,omitempty"`
}

// Buffered says whether batches are drawn from partitions in memory.
func (p *PartitionSettings) Buffered() bool {
	return p.PartitionOrder != "" && p.PartitionOrder != OrderMemory
}

// Resolved takes the numbers that the rules chose for a run which goes on.
func (p *PartitionSettings) Resolved(old *PartitionSettings) {
	p.Partitions = cmp.Or(p.Partitions, old.Partitions)
	p.PartitionsInMemory = cmp.Or(p.PartitionsInMemory, old.PartitionsInMemory)
	p.LogicalPartitions = cmp.Or(p.LogicalPartitions, old.LogicalPartitions)
}

// text has all of them, those of graphs that are read whole being the same.
func (p *PartitionSettings) text() string {
	if !p.Buffered() {
		return OrderMemory
	}
	return fmt.Sprintf("%s, %d of %d partitions in %d groups", p.PartitionOrder,
		p.PartitionsInMemory, p.Partitions, p.LogicalPartitions)
}

// validatePartitions reports what partitions in memory do not go with.
func (c *Node) validatePartitions() error {
	p := &c.PartitionSettings
	if p.PartitionOrder != "" && !slices.Contains(NodeOrders(), p.PartitionOrder) {
		return fmt.Errorf("train: --order %s: nodes are trained in the order %s (others are of "+
			"--task link)", p.PartitionOrder, strings.Join(NodeOrders(), ", "))
	}
	if p.Partitions < 0 || p.PartitionsInMemory < 0 || p.LogicalPartitions < 0 {
		return errors.New("train: --partitions, --partitions-in-memory and --logical-partitions " +
			"are numbers from 1 on; 0 has the rules choose")
	}
	if !p.Buffered() {
		if p.Partitions > 0 || p.PartitionsInMemory > 0 || p.LogicalPartitions > 0 {
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
