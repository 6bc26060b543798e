package source

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"gdb/internal/rng"
)

const (
	// oneHotMost is the most nodes of one-hot features: there is a column for each.
	oneHotMost = 8192
	// randomDims is the width of random features if none is given, and dimsMost the largest.
	randomDims, dimsMost = 64, 4096
)

// MadeNames are the values of --features that make features; a number may follow random and a
// colon.
var MadeNames = []string{"degree", "random", "one-hot"}

// IsMade reports whether a value of --features asks for features to be made: others are files.
func IsMade(s string) bool {
	return slices.Contains(MadeNames, s) || strings.HasPrefix(s, "random:")
}

// Maker makes the rows of the nodes in order.
type Maker struct {
	kind   string // one of MadeNames
	dims   int    // of random features
	seed   uint64
	top    float64 // logarithm of the largest degree, plus one
	places int     // of degrees: one for each power of two
	nodes  uint64
}

// NewMaker returns a maker of degree, one-hot, random or random:DIMS for a graph of nodes, the
// largest degree of which is most. Random features depend on the seed and the node alone.
func NewMaker(made string, nodes, most, seed uint64) (*Maker, error) {
	name, dims, given := strings.Cut(made, ":")
	m := &Maker{kind: name, dims: randomDims, seed: seed, top: math.Log1p(float64(most)),
		nodes: nodes, places: bits.Len64(most) + 1}
	var err error
	if given {
		m.dims, err = strconv.Atoi(dims)
	}
	if !IsMade(made) || err != nil || m.dims < 1 || m.dims > dimsMost {
		return nil, fmt.Errorf("--features %s is not degree, one-hot or random:D with D of 1 to %d",
			made, dimsMost)
	}
	if name == "one-hot" && nodes > oneHotMost {
		return nil, fmt.Errorf("--features one-hot makes a column for each node, and there are "+
			"%d: at most %d; take --features random:64", nodes, oneHotMost)
	}
	return m, nil
}

// Dim returns the number of columns. Features of degrees have the logarithm as a share of the
// largest, and a column for degree 0, 1, 2 to 3, 4 to 7 and so on.
func (m *Maker) Dim() int {
	switch m.kind {
	case "degree":
		return 1 + m.places
	case "one-hot":
		return int(m.nodes)
	}
	return m.dims
}

// Row writes the row of a node to row, which has Dim columns.
func (m *Maker) Row(row []float32, node, degree uint64) {
	clear(row)
	switch m.kind {
	case "degree":
		if m.top > 0 {
			row[0] = float32(math.Log1p(float64(degree)) / m.top)
		}
		row[1+bits.Len64(degree)] = 1
	case "one-hot":
		row[node] = 1
	default:
		m.random(row, node)
	}
}

// random fills a row with normal values of variance 1/dims, by the method of Box and Muller: rows
// are about of length 1 and nearly orthogonal.
func (m *Maker) random(row []float32, node uint64) {
	r := rng.NewStream(rng.Key(m.seed, node))
	scale := 1 / math.Sqrt(float64(len(row)))
	for i := range row {
		u, v := 1-r.Float64(), r.Float64()
		row[i] = float32(scale * math.Sqrt(-2*math.Log(u)) * math.Cos(2*math.Pi*v))
	}
}
