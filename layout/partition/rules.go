package partition

import (
	"fmt"
	"math"

	"gdb/internal/mem"
)

// Facts are what the rules depend on.
type Facts struct {
	Nodes uint64
	// RowBytes is what a node takes in a partition: its vector, and the optimizer's state.
	RowBytes int64
	Edges    uint64 // in the train split
	// EdgeBytes is what an edge takes on disk, and EdgeMemory what it takes in memory: Marius++
	// keeps two sorted lists, which is twice as much.
	EdgeBytes, EdgeMemory int64
	// Memory is for partitions and their edges; everything else was subtracted before.
	Memory int64
	// BlockBytes is the smallest read that the disk does at full speed.
	BlockBytes int64
	// Prefetch keeps room for the partitions of the next set beside those of the current one.
	Prefetch bool
	// NodeTask says that nodes are trained on, not links: a set may be one logical partition.
	NodeTask bool
	// Parts, Capacity and Logical are p, c and l where the user gave them; 0 lets the rules choose.
	Parts, Capacity, Logical int
	// OneByOne is for policies that swap single physical partitions: l equals p.
	OneByOne bool
	// EdgeSeconds is how long computing an edge is assumed to take, to compare an epoch of links
	// with the time for what it moves. 0 assumes that computing takes longer.
	EdgeSeconds float64
}

// Choice is what the rules choose, with the reasons.
type Choice struct {
	Parts, Capacity, Logical int // p, c, l
	InMemory                 bool
	Bytes                    int64 // the most memory that partitions and edges take
	Lines                    []string
}

// check returns an error for numbers of partitions that are impossible.
func (f *Facts) check(parts int) error {
	switch {
	case parts > Most:
		return fmt.Errorf("train: %d partitions: give at most %d", parts, Most)
	case uint64(parts) > f.Nodes:
		return fmt.Errorf("train: %d partitions of %d nodes: give no more than nodes", parts,
			f.Nodes)
	case f.Capacity > parts:
		return fmt.Errorf("train: %d partitions in memory of %d: give no more than there are",
			f.Capacity, parts)
	case f.Logical > parts:
		return fmt.Errorf("train: %d logical partitions of %d physical ones: give no more of them",
			f.Logical, parts)
	}
	return nil
}

// ChooseOrder applies the rules of Waleffe et al., "Marius++", section 6. It takes as many physical
// partitions as keep the smallest reads at the size of a block, which gives the least Edge
// Permutation Bias for the time; the largest buffer that fits; and the fewest logical partitions
// that the policy works with, or more where moving these takes longer than computing: see weigh. An
// error says how much memory is needed.
func ChooseOrder(f Facts) (c Choice, err error) {
	nodeBytes := float64(f.Nodes) * float64(f.RowBytes)
	edgeBytes := float64(f.Edges) * float64(f.EdgeBytes)
	block := float64(f.BlockBytes)
	byNodes, byEdges := nodeBytes/block, math.Sqrt(edgeBytes/block)
	c.Parts = int(min(byNodes, byEdges, Most, float64(f.Nodes)))
	c.Parts = max(c.Parts, int(min(leastParts, max(f.Nodes/leastNodes, 1))))
	if f.Parts > 0 {
		c.Parts = f.Parts
	}
	if err := f.check(c.Parts); err != nil {
		return c, err
	}
	c.say("vectors and optimizer %s, edges %s, smallest read %s: %.0f partitions by the nodes, "+
		"%.0f by the edges", size(nodeBytes), size(edgeBytes), size(block), byNodes, byEdges)
	if byRule := c.Parts; f.Parts == 0 {
		if c.Parts = f.smaller(c.Parts); c.Parts > byRule {
			c.say("a buffer of %d of so few does not fit: there are more, and reads are smaller",
				f.held())
		}
	}
	c.say("p = %d physical partitions%s of %s, buckets of %s", c.Parts, given(f.Parts),
		size(nodeBytes/float64(c.Parts)), size(edgeBytes/float64(c.Parts)/float64(c.Parts)))
	if f.Capacity == 0 && f.bytes(c.Parts, c.Parts, 0) <= f.Memory || f.Capacity == c.Parts {
		c.Capacity, c.Logical, c.InMemory = c.Parts, 1, true
		c.Bytes = f.bytes(c.Parts, c.Parts, 0)
		c.say("all of them take %s of %s: nothing is swapped", mem.FormatSize(c.Bytes),
			mem.FormatSize(f.Memory))
		return c, f.fits(&c)
	}
	return c, f.chooseBuffer(&c)
}

// held returns the least number of logical partitions that a buffer must hold, which is also what
// it is made for unless weigh finds more.
func (f *Facts) held() int {
	if f.NodeTask {
		return 1
	}
	return 2
}

// smaller returns p, or the first of its doubles for which the smallest buffer fits in memory; p if
// there is none.
func (f *Facts) smaller(p int) int {
	for n := p; n <= Most && uint64(n) <= f.Nodes; n *= 2 {
		if f.groupBytes(n, 1, f.held()) <= f.Memory {
			return n
		}
	}
	return p
}

// given marks a number that the user gave, in a line for people.
func given(n int) string {
	if n == 0 {
		return ""
	}
	return " (given)"
}

// fits returns an error if a buffer takes more than the memory.
func (f *Facts) fits(c *Choice) error {
	if c.Bytes <= f.Memory {
		return nil
	}
	return fmt.Errorf("train: %s are for partitions, and a buffer of %d of %d takes %s: give more "+
		"memory, or a smaller buffer", mem.FormatSize(f.Memory), c.Capacity, c.Parts,
		mem.FormatSize(c.Bytes))
}

const (
	// leastParts is the least number of partitions, if each has leastNodes. Where there are so few
	// bytes that the rules want fewer, small reads cost little, and training is better with more.
	// With a quarter of the partitions in memory, and batches as large as with all, DistMult on
	// FB15k-237 lost 3.6 % of its MRR with 25 partitions, 2.2 % with 64 and no less with 256.
	leastParts = 64
	leastNodes = 8
)

// chooseBuffer chooses the size of the buffer and the number of logical partitions.
func (f *Facts) chooseBuffer(c *Choice) error {
	held, needed := f.held(), "two logical partitions, which a pair of them needs"
	if f.NodeTask {
		needed = "one logical partition"
	}
	why := ""
	if f.EdgeSeconds > 0 && !f.NodeTask && !f.OneByOne && f.Capacity == 0 && f.Logical == 0 {
		if held, why = f.weigh(c.Parts); held > 2 {
			needed = fmt.Sprintf("%d of them", held)
		}
	}
	group := f.group(c.Parts, held) // physical partitions of a logical one
	switch {
	case group == 0:
		return fmt.Errorf("train: %s are for partitions, and the least buffer of %d of %d takes "+
			"%s: give more memory, or take vectors of fewer columns", mem.FormatSize(f.Memory),
			held, c.Parts, mem.FormatSize(f.groupBytes(c.Parts, 1, held)))
	case f.Capacity > 0:
		c.Capacity = f.Capacity
	case f.OneByOne:
		for c.Capacity = held; c.Capacity+1 < c.Parts &&
			f.bytes(c.Parts, c.Capacity+1, f.ahead(1)) <= f.Memory; {
			c.Capacity++
		}
	default:
		c.Capacity = min(group*held, c.Parts)
	}
	if c.Logical = (c.Parts + group - 1) / group; f.Logical > 0 {
		c.Logical = f.Logical
	}
	c.Bytes = f.bytes(c.Parts, c.Capacity, f.ahead(group))
	beside := ""
	if f.Prefetch {
		beside = ", and beside them the next to enter"
	}
	c.say("c = %d partitions%s%s and their edges take %s of %s", c.Capacity, given(f.Capacity),
		beside, mem.FormatSize(c.Bytes), mem.FormatSize(f.Memory))
	if f.OneByOne {
		c.say("partitions are swapped one by one: l is p")
	} else {
		c.say("l = %d logical partitions%s of up to %d: the buffer holds %s", c.Logical,
			given(f.Logical), group, needed)
	}
	if why != "" {
		c.say("%s", why)
	}
	return f.fits(c)
}

const (
	// moveRate is how many bytes a second a disk is assumed to read while it writes as many. It was
	// measured on the disk of docs/link.md and does not depend on the machine at hand, so that the
	// order of an epoch, and with it what is learned, is the same everywhere.
	moveRate = 1.2e9
	// heldMost is the most logical partitions that a buffer is made to hold. With four of 16,
	// instead of two of 8, FB15k-237 had .3031 of MRR, not .3080 (docs/link.md).
	heldMost = 4
)

// weigh chooses how many logical partitions a buffer holds, of p physical ones. Two, the fewest,
// have the least bias. With more, which are smaller, an epoch moves less. It takes the fewest with
// which moving takes no longer than computing, up to heldMost, and returns a line that says why.
func (f *Facts) weigh(p int) (held int, why string) {
	computing := float64(f.Edges) * f.EdgeSeconds
	first := f.moved(p, 2)
	held = 2
	for n := 3; n <= heldMost && f.moved(p, held) > computing*moveRate; n++ {
		if f.group(p, n) > 0 && f.moved(p, n) < f.moved(p, held) {
			held = n
		}
	}
	why = fmt.Sprintf("an epoch reads %s and writes as much, for %.0f s at %.1f GB/s; computing "+
		"is taken to last %.0f s", size(first), first/moveRate, moveRate/1e9, computing)
	if held > 2 {
		why = fmt.Sprintf("with two %s, longer than that: with %d it is %s, for %.0f s", why, held,
			size(f.moved(p, held)), f.moved(p, held)/moveRate)
	}
	return held, why
}

// moved returns how many bytes an epoch of links reads if the buffer holds that many
// logical partitions.
func (f *Facts) moved(p, held int) float64 {
	group := max(1, f.group(p, held))
	loads := group * (held + swaps((p+group-1)/group, held))
	return float64(loads) / float64(p) * float64(f.Nodes) * float64(f.RowBytes)
}

// group returns how many of p physical partitions form a logical one: as many as a buffer of held
// logical partitions has room for; 0 if it has room for none.
func (f *Facts) group(p, held int) (group int) {
	switch {
	case f.OneByOne && f.groupBytes(p, 1, held) <= f.Memory || f.OneByOne && f.Capacity > 0:
		return 1
	case f.OneByOne:
		return 0
	case f.Logical > 0:
		return (p + f.Logical - 1) / f.Logical
	case f.Capacity > 0:
		return max(1, f.Capacity/held)
	}
	for g := 1; g*held < p && f.groupBytes(p, g, held) <= f.Memory; g++ {
		group = g
	}
	return group
}

// ahead returns how many partitions of the next set are read ahead, if groups have that many.
func (f *Facts) ahead(group int) int {
	if f.Prefetch {
		return group
	}
	return 0
}

// groupBytes returns the memory of a buffer of held groups of g partitions, p being the number of
// all partitions.
func (f *Facts) groupBytes(p, g, held int) int64 {
	return f.bytes(p, g*held, f.ahead(g))
}

// bytes returns the memory of c of p partitions, of next more that are read ahead, and of the edges
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
