// Package ivf is an index of vectors that may be larger than memory: it finds those closest to a
// query among a small part of them. Vectors are in lists, each with a center near them (an inverted
// file), as codes of four bits for two columns (product quantization). A search looks up the codes
// of the lists whose centers are closest, and returns candidates: the caller compares their vectors
// exactly. docs/format/vectors.md describes the file.
package ivf

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"

	"gdb/blockdev"
	"gdb/compute/kernel"
	"gdb/internal/mem"
	"gdb/layout"
)

// These are the ways to compare vectors.
const (
	Cosine = "cosine" // of the angle between them
	Dot    = "dot"    // their product
	Euclid = "euclid" // minus their Euclidean distance
)

// Closenesses lists the ways to compare.
func Closenesses() []string { return []string{Cosine, Dot, Euclid} }

// CheckCloseness returns an error for a way that is not one of Closenesses.
func CheckCloseness(by string) error {
	if !slices.Contains(Closenesses(), by) {
		return fmt.Errorf("closeness %q: want %s", by, strings.Join(Closenesses(), ", "))
	}
	return nil
}

// Rows are the vectors that an index is made of, of Count nodes.
type Rows struct {
	Count, Dim int
	// Each calls fn with all nodes in ascending order and their rows, several at a time. Both are
	// valid during the call.
	Each func(ctx context.Context, fn func(nodes []uint32, rows []float32) error) error
}

// Place says where the file of an index is.
type Place struct {
	Store *layout.Store
	Dev   blockdev.Device
	// Path is relative to the store.
	Path string
	// Of says which vectors these are. Open compares it.
	Of string
}

// Options say how an index is made.
type Options struct {
	Place
	Budget *mem.Budget
	// By is one of Closenesses.
	By string
	// Recall is the share of the ten closest vectors that searches shall find, on average.
	Recall float64
	// Sums keeps a checksum of each vector, for vectors that are read where nothing else checks
	// single ones.
	Sums bool
	// Threads is how many goroutines compute. The file does not depend on it.
	Threads int
	Seed    uint64
	// Progress, if not nil, is called with what is under way and the share that is done.
	Progress func(stage string, share float64)
}

// Made tells what Build has made.
type Made struct {
	Bytes   int64
	Vectors uint64
	Lists   int
	Tuning
}

// Tuning is how much a search looks at, and what that was measured to find.
type Tuning struct {
	Probes int // lists
	Rerank int // candidates that are compared exactly, for ten answers
	Recall float64
}

// Answers is the number of answers that a Tuning is for.
const Answers = 10

// Candidates returns how many candidates are compared exactly for n answers.
func (t Tuning) Candidates(n int) int {
	return max(n, t.Rerank) + max(0, n-Answers)*t.Rerank/Answers
}

const (
	// listsShare is the number of lists for the square root of the number of vectors.
	listsShare = 4
	// listLeast is how many vectors a list has at least, on average.
	listLeast = 64
	// sampleOfList is how many vectors centers are learned from, for each list.
	sampleOfList = 32
)

// listsFor returns the number of lists for some vectors: a power of two.
func listsFor(count int) int {
	n := uint(listsShare * math.Sqrt(float64(count)))
	n = 1 << (bits.Len(n+n/2+1) - 1)
	for n > 1 && int(n)*listLeast > count {
		n /= 2
	}
	return int(max(n, 1))
}

// prepare makes rows comparable by products: for Cosine they get the length 1.
func prepare(rows []float32, dim int, by string) {
	if by != Cosine {
		return
	}
	for ; len(rows) >= dim && dim > 0; rows = rows[dim:] {
		row := rows[:dim]
		if square := kernel.SquareSum(row); square > 0 {
			scale := 1 / float32(math.Sqrt(float64(square)))
			for i := range row {
				row[i] *= scale
			}
		}
	}
}

// scored is a vector, or a list, and how close it is.
type scored struct {
	score float32
	id    uint32
	sum   uint32
}

// closer orders by closeness, and by number where that is equal.
func closer(a, b scored) int {
	switch {
	case a.score > b.score:
		return -1
	case a.score < b.score:
		return 1
	case a.id < b.id:
		return -1
	case a.id > b.id:
		return 1
	}
	return 0
}

// closest keeps the closest of those that it is given.
type closest struct {
	most  int
	items []scored
	// least is the closeness that a further one must exceed.
	least float32
}

// reset empties it and says how many it keeps.
func (c *closest) reset(most int) {
	c.most, c.items, c.least = most, c.items[:0], float32(math.Inf(-1))
}

// spare is how many times as many items are kept until the closest are sorted out.
const spare = 4

// add takes an item whose closeness is above least.
func (c *closest) add(s scored) {
	c.items = append(c.items, s)
	if len(c.items) >= spare*c.most+Answers {
		c.sort()
		c.least = c.items[c.most-1].score
	}
}

// sort leaves the closest, in order.
func (c *closest) sort() []scored {
	slices.SortFunc(c.items, closer)
	c.items = c.items[:min(len(c.items), c.most)]
	return c.items
}
