package order

import (
	"fmt"
	"math"

	"gdb/internal/mem"
	"gdb/layout/partition"
)

// Facts are what the rules choose by.
type Facts struct {
	Nodes uint64
	// RowBytes is what a node has in a partition: its vector, and the state of the optimizer.
	RowBytes int64
	Edges    uint64 // of train
	// EdgeBytes is what an edge takes on disk, and EdgeMemory what it takes in memory: Marius++
	// keeps two sorted lists, that is twice as much.
	EdgeBytes, EdgeMemory int64
	// Memory is for partitions and their edges; what else is needed is taken off already.
	Memory int64
	// BlockBytes is the least read that the disk does at full speed.
	BlockBytes int64
	// Prefetch keeps room for the partitions of the next set beside those of this one.
	Prefetch bool
	// Nodes are trained on, not links: a set may be one logical partition.
	NodeTask bool
}

// Choice is what the rules choose, with the reasons.
type Choice struct {
	Parts, Capacity, Logical int // p, c, l
	InMemory                 bool
	Bytes                    int64 // of memory that partitions and edges take at most
	Lines                    []string
}

// Choose applies the rules of Waleffe et al., "Marius++", section 6: as many physical partitions as
// leave the smallest reads at the size of a block, which gives the least Edge Permutation Bias for
// the time; the largest buffer that fits; and the fewest logical partitions that policies can do
// with. An error says how much memory is needed.
func Choose(f Facts) (c Choice, err error) {
	nodeBytes := float64(f.Nodes) * float64(f.RowBytes)
	edgeBytes := float64(f.Edges) * float64(f.EdgeBytes)
	block := float64(f.BlockBytes)
	byNodes, byEdges := nodeBytes/block, math.Sqrt(edgeBytes/block)
	c.Parts = int(min(byNodes, byEdges, partition.Most, float64(f.Nodes)))
	c.Parts = max(c.Parts, int(min(leastParts, f.Nodes)))
	c.say("vectors and optimizer %s, edges %s, smallest read %s: %.0f partitions by the nodes, "+
		"%.0f by the edges", size(nodeBytes), size(edgeBytes), size(block), byNodes, byEdges)
	c.say("p = %d physical partitions of %s, buckets of %s", c.Parts,
		size(nodeBytes/float64(c.Parts)), size(edgeBytes/float64(c.Parts)/float64(c.Parts)))
	if f.bytes(c.Parts, c.Parts, 0) <= f.Memory {
		c.Capacity, c.Logical, c.InMemory = c.Parts, 1, true
		c.Bytes = f.bytes(c.Parts, c.Parts, 0)
		c.say("all of them take %s of %s: nothing is swapped", mem.FormatSize(c.Bytes),
			mem.FormatSize(f.Memory))
		return c, nil
	}
	return c, f.chooseBuffer(&c)
}

// leastParts is how many partitions there are at least, if there are nodes enough: with fewer a
// buffer that does not hold all holds little.
const leastParts = 8

// chooseBuffer chooses the buffer and the logical partitions of it.
func (f *Facts) chooseBuffer(c *Choice) error {
	held, needed := 2, "two logical partitions, which a pair of them needs"
	if f.NodeTask {
		held, needed = 1, "one logical partition"
	}
	group := 0 // physical partitions of a logical one
	for g := 1; g*held < c.Parts && f.groupBytes(c.Parts, g, held) <= f.Memory; g++ {
		group = g
	}
	if group == 0 {
		return fmt.Errorf("train: %s are for partitions, and the least buffer of %d of %d takes "+
			"%s: give more memory, or take vectors of fewer columns", mem.FormatSize(f.Memory),
			held, c.Parts, mem.FormatSize(f.groupBytes(c.Parts, 1, held)))
	}
	c.Capacity = group * held
	c.Logical = (c.Parts + group - 1) / group
	c.Bytes = f.groupBytes(c.Parts, group, held)
	beside := ""
	if f.Prefetch {
		beside = ", and beside them the next to enter"
	}
	c.say("c = %d partitions%s and their edges take %s of %s", c.Capacity, beside,
		mem.FormatSize(c.Bytes), mem.FormatSize(f.Memory))
	c.say("l = %d logical partitions of up to %d: the buffer holds %s", c.Logical, group, needed)
	return nil
}

// groupBytes is the memory of a buffer of held groups of g of p partitions.
func (f *Facts) groupBytes(p, g, held int) int64 {
	next := 0
	if f.Prefetch {
		next = g
	}
	return f.bytes(p, g*held, next)
}

// bytes is the memory of c of p partitions, of next more without edges trained on, and of the edges
// between all of these.
func (f *Facts) bytes(p, c, next int) int64 {
	rows := (f.Nodes + uint64(p) - 1) / uint64(p)
	all := float64(c + next)
	share := all / float64(p)
	return int64(all*float64(rows)*float64(f.RowBytes) +
		share*share*float64(f.Edges)*float64(f.EdgeMemory))
}

func (c *Choice) say(format string, args ...any) {
	c.Lines = append(c.Lines, fmt.Sprintf(format, args...))
}

func size(bytes float64) string { return mem.FormatSize(int64(bytes)) }
