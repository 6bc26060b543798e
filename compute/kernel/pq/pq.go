// Package pq codes vectors by product quantization: a vector is cut into parts of a few columns,
// and of each part the number of the nearest of 16 centers is kept, in four bits. A query is
// compared with codes by a table of its products with all centers, whose values are rounded to
// eight bits, so that a look-up is a shuffle of bytes in a register (André, Kermarrec and Le
// Scouarnec, "Cache locality is not enough").
//
// Scan has a plain version, refScan, which is the specification; AVX2 and AVX-512 versions give the
// same sums, and are chosen as those of package kernel are.
package pq

//go:generate go run -tags avogen ../gen codes

import (
	"fmt"
	"math"

	"gdb/internal/rng"
)

const (
	// Centers is the number of centers of a part.
	Centers = 16
	// Group is the number of vectors whose codes lie together.
	Group = 32
	// quad is the number of parts that a step of a scan looks up; all books have whole quads.
	quad = 4
	// partsMost bounds the parts of a vector: as many sums of bytes fit in 16 bits.
	partsMost = 256
	// widthLeast is the least number of columns of a part: 2 bits a column.
	widthLeast = 2
)

const _ uint = math.MaxUint16 - 255*partsMost

// Shape is how vectors are cut.
type Shape struct {
	Dim   int // columns of a vector
	Width int // columns of a part
	Parts int // a multiple of four; the last ones may have no columns
}

// ShapeOf returns how vectors of some columns are cut.
func ShapeOf(dim int) Shape {
	s := Shape{Dim: dim, Width: max(widthLeast, (dim+partsMost-1)/partsMost)}
	s.Parts = ((dim+s.Width-1)/s.Width + quad - 1) / quad * quad
	return s
}

// CodeBytes returns the bytes of a code in Encode, and in a group.
func (s Shape) CodeBytes() int { return s.Parts / 2 }

// GroupBytes returns the bytes of the codes of a group.
func (s Shape) GroupBytes() int { return s.CodeBytes() * Group }

// Values returns the number of values of all centers.
func (s Shape) Values() int { return s.Parts * Centers * s.Width }

// columns returns the columns of a part, from lo up to hi.
func (s Shape) columns(part int) (lo, hi int) {
	return min(part*s.Width, s.Dim), min((part+1)*s.Width, s.Dim)
}

// Book holds the centers of all parts: value j of center k of part p is
// Values[(p*Centers+k)*Width+j]. Columns that a vector does not have are zeros.
type Book struct {
	Shape
	Values []float32
}

// NewBook returns the book of some centers.
func NewBook(s Shape, values []float32) (*Book, error) {
	if s != ShapeOf(s.Dim) || len(values) != s.Values() {
		return nil, fmt.Errorf("pq: %d values for %+v", len(values), s)
	}
	return &Book{s, values}, nil
}

// center returns a center of a part.
func (b *Book) center(part, k int) []float32 {
	return b.Values[(part*Centers+k)*b.Width:][:b.Width]
}

// nearest returns the center of a part that is nearest to x, the first of equal ones.
func (b *Book) nearest(part int, x []float32) int {
	best, at := float32(math.Inf(1)), 0
	values := b.Values[part*Centers*b.Width:][:Centers*b.Width]
	if len(x) == 2 && b.Width == 2 {
		x0, x1 := x[0], x[1]
		for k := range Centers {
			d0, d1 := x0-values[2*k], x1-values[2*k+1]
			if d := d0*d0 + d1*d1; d < best {
				best, at = d, k
			}
		}
		return at
	}
	for k := range Centers {
		var d float32
		for j, v := range x {
			diff := v - values[k*b.Width+j]
			d += diff * diff
		}
		if d < best {
			best, at = d, k
		}
	}
	return at
}

// Encode writes the code of a vector, two parts a byte with the first in the lower bits, and the
// vector that the code stands for.
func (b *Book) Encode(code []byte, decoded, row []float32) {
	clear(code[:b.CodeBytes()])
	for p := range b.Parts {
		lo, hi := b.columns(p)
		if lo == hi {
			break
		}
		k := b.nearest(p, row[lo:hi])
		code[p/2] |= byte(k << (p % 2 * 4))
		copy(decoded[lo:hi], b.center(p, k))
	}
}

// rounds is how often Train moves the centers.
const rounds = 12

// Train learns the centers of all parts from n rows by Lloyd's algorithm.
func Train(s Shape, rows []float32, n int, seed uint64) *Book {
	b := &Book{s, make([]float32, s.Values())}
	for p := range s.Parts {
		if lo, hi := s.columns(p); lo < hi && n > 0 {
			b.train(p, rows, n, rng.NewPermutation(uint64(n), rng.Key(seed, uint64(p))))
		}
	}
	return b
}

// train learns the centers of a part: they begin as rows of a random order.
func (b *Book) train(part int, rows []float32, n int, order rng.Permutation) {
	lo, hi := b.columns(part)
	row := func(i int) []float32 { return rows[i*b.Dim+lo : i*b.Dim+hi] }
	for k := range Centers {
		copy(b.center(part, k), row(int(order.At(uint64(k%n)))))
	}
	sums, counts := make([]float64, Centers*b.Width), make([]int, Centers)
	for round := range rounds {
		clear(sums)
		clear(counts)
		for i := range n {
			x := row(i)
			k := b.nearest(part, x)
			counts[k]++
			for j, v := range x {
				sums[k*b.Width+j] += float64(v)
			}
		}
		for k, count := range counts {
			c := b.center(part, k)
			if count == 0 { // it begins again at another row
				copy(c, row(int(order.At(uint64((round*Centers+k)%n)))))
				continue
			}
			for j := range c {
				c[j] = float32(sums[k*b.Width+j] / float64(count))
			}
		}
	}
}

// Table holds the products of a query with all centers, rounded: a product is about Offset of its
// part, which is in Sum, and Scale times the byte.
type Table struct {
	Bytes      []byte // Parts × Centers
	Scale, Sum float32
	products   []float32
}

// Make computes the table of a query, of whose products it takes times factor.
func (t *Table) Make(b *Book, query []float32, factor float32) {
	n := b.Parts * Centers
	if cap(t.Bytes) < n {
		t.Bytes, t.products = make([]byte, n), make([]float32, n)
	}
	t.Bytes, t.products = t.Bytes[:n], t.products[:n]
	clear(t.products)
	var widest, sum float32
	least := make([]float32, b.Parts)
	for p := range b.Parts {
		lo, hi := b.columns(p)
		if lo == hi {
			break
		}
		low, high := b.products(t.products[p*Centers:][:Centers], p, query[lo:hi], factor)
		widest, least[p] = max(widest, high-low), low
		sum += low
	}
	t.Sum, t.Scale = sum, widest/255
	if t.Scale == 0 {
		t.Scale = 1
	}
	inverse := 1 / t.Scale
	for i, v := range t.products {
		t.Bytes[i] = byte(min(255, (v-least[i/Centers])*inverse+0.5))
	}
}

// products writes the products of a part of a query with its centers, and returns the least and the
// largest.
func (b *Book) products(to []float32, part int, query []float32, factor float32) (low,
	high float32) {
	for k := range to {
		var v float32
		for j, x := range b.center(part, k)[:len(query)] {
			v += x * query[j]
		}
		v *= factor
		if to[k] = v; k == 0 {
			low, high = v, v
		}
		low, high = min(low, v), max(high, v)
	}
	return low, high
}

// PutGroup adds a code, as Encode writes it, to the codes of a group, which are zeros before: those
// of a part take 16 bytes, in which entry i is the lower half of byte i, or, from entry 16 on, the
// upper half of byte i-16.
func (s Shape) PutGroup(group, code []byte, entry int) {
	shift := entry / (Group / 2) * 4
	for p := range s.Parts {
		k := code[p/2] >> (p % 2 * 4) & 15
		group[p*Group/2+entry%(Group/2)] |= k << shift
	}
}

// Groups are groups of codes, each with 32 biases behind its codes, in memory of the same layout.
type Groups struct {
	Shape
	Bytes  []byte
	Count  int
	Stride int // bytes from the begin of a group to that of the next one
}

// Scan writes to sums the sums of the bytes of a table for the entries of some groups, 32 a group,
// and to masks a bit for each entry of which scale times the sum, and the bias of the entry, are
// above least.
func Scan(masks []uint32, sums []uint16, g Groups, table []byte, scale, least float32) {
	if g.Count == 0 {
		return
	}
	if len(masks) < g.Count || len(sums) < Group*g.Count || len(table) < g.Parts*Centers ||
		len(g.Bytes) < (g.Count-1)*g.Stride+g.GroupBytes()+4*Group || g.Parts%quad > 0 {
		panic("BUG: pq: a scan reads or writes past its slices")
	}
	scanLevel()(masks, sums, g, table, scale, least)
}
