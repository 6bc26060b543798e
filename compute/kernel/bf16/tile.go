package bf16

import (
	"unsafe"

	"gdb/compute/kernel/amx"
)

// tileFunc computes a column of tiles of C (+)= A·B. A tile has as many rows as the function's name
// says and one or two vectors, of which the last has lanes values in C. Pair t of row i of A is at
// a+i·ars+t·aks, row i of C at c+i·ldc, all in bytes. B is a panel: for each pair two vectors of
// words, the values of a column in its rows 2t and 2t+1, or if it is widened four of floats, those
// of row 2t+1 first. tiles is at least 1. The largest tiles ask memory for the line at next and
// move that by nextStep at each pair.
type tileFunc func(tiles, pairs int, a *uint16, ars, aks uintptr, b *uint32, c *float32,
	ldc uintptr, lanes int, mode uint64, next, nextStep uintptr)

const (
	// modeAccumulate adds to C.
	modeAccumulate = 1 << iota
	// modeStream overwrites C past the caches. Its rows are whole and aligned vectors, two of them.
	modeStream
	// modeHalf has one more step, of a value of each row of A and of a row of B.
	modeHalf
)

// packFunc copies pairs of rows of n values, which lie stride bytes apart, to panels of columns as
// tileFunc reads them. Panels are panel bytes apart; the last is padded with zeros.
type packFunc func(panels *uint32, src *uint16, pairs, n int, stride, panel uintptr)

// tileSet is the tiles of one level.
type tileSet struct {
	lanes   int           // of a vector
	rows    []int         // of the tiles, descending to 1
	fn      [2][]tileFunc // by vectors-1, then as rows; nil: plain
	widened bool          // panels of B have floats
	steps   bool          // panels of B end with a whole step of package amx

	packA, packB packFunc // panels of three vectors of pairs, for rows of C, and of two for columns
	packsRest    bool     // they also pack what is less than a panel
}

var plainTiles = tileSet{lanes: 16, rows: []int{1}}

// width returns the columns of a panel of B, and wide the rows of C in a panel of A.
func (t *tileSet) width() int { return 2 * t.lanes }
func (t *tileSet) wide() int  { return 3 * t.lanes }

// step returns the words that a panel of B has for a pair.
func (t *tileSet) step() int {
	if t.widened {
		return 2 * t.width()
	}
	return t.width()
}

// pairs returns how many pairs of k rows a panel of B has.
func (t *tileSet) pairs(k int) int {
	if t.steps {
		return partsOf(k, amx.Side) * amx.Side / 2
	}
	return partsOf(k, 2)
}

// pad makes what a panel of k rows has more than these zeros.
func (t *tileSet) pad(panel []uint32, k int) { clear(panel[partsOf(k, 2)*t.step():]) }

// strides say where the pairs of A are, in values: those of the next row, and the next of a row.
type strides struct{ row, step int }

// ahead is memory that is read next, and how far apart what is asked for is: it comes while tiles
// are computed.
type ahead struct {
	at   uintptr
	step uintptr
}

// column computes rows x width of C, width being at most that of a panel, as columns of tiles, the
// largest that fit first.
//
//lint:parameters called for each column of tiles, with all in registers
func (t *tileSet) column(rows, pairs int, a []Number, as strides, b []uint32, c []float32,
	cRow, width int, mode uint64, next ahead) {
	if t.fn[0] == nil {
		refColumn(rows, pairs, a, as, b, c, cRow, width, mode)
		return
	}
	if next.at == 0 {
		next = ahead{at: uintptr(unsafe.Pointer(&b[0]))} // which is there
	}
	vectors := partsOf(width, t.lanes)
	lanes := width - (vectors-1)*t.lanes
	for i, done := 0, 0; done < rows; i++ {
		tiles := (rows - done) / t.rows[i]
		if tiles == 0 {
			continue
		}
		t.fn[vectors-1][i](tiles, pairs, (*uint16)(&a[done*as.row]), uintptr(as.row)*2,
			uintptr(as.step)*2, &b[0], &c[done*cRow], uintptr(cRow)*4, lanes, mode,
			next.at, next.step)
		done += tiles * t.rows[i]
	}
}

// packRows packs rows of n values, stride apart, to panels of B; packColumns those of A, for which
// the rows of C are the columns. A panel has panel words.
func (t *tileSet) packRows(panels []uint32, x []Number, rows, n, stride, panel int) {
	t.pack(t.packB, panels, x, rows, n, stride, panel,
		packing{width: t.width(), step: t.step(), widened: t.widened})
}

func (t *tileSet) packColumns(panels []uint32, x []Number, rows, n, stride, panel int) {
	t.pack(t.packA, panels, x, rows, n, stride, panel, packing{width: t.wide(), step: t.wide()})
}

// pack has fn pack what it can of a panel, and does the rest.
//
//lint:parameters a block of a matrix, as the assembly takes it
func (t *tileSet) pack(fn packFunc, panels []uint32, x []Number, rows, n, stride, panel int,
	as packing) {
	pairs, whole := rows/2, n
	if !t.packsRest {
		whole = n / as.width * as.width
	}
	if fn == nil || pairs == 0 || whole == 0 {
		as.rows(panels, x, 0, rows, 0, n, stride, panel)
		return
	}
	fn(&panels[0], (*uint16)(&x[0]), pairs, whole, uintptr(stride)*2, uintptr(panel)*4)
	as.rows(panels, x, 0, 2*pairs, whole, n, stride, panel)
	as.rows(panels, x, 2*pairs, rows, 0, n, stride, panel)
}

// partsOf returns how many parts of a size n items have.
func partsOf(n, size int) int { return (n + size - 1) / size }
