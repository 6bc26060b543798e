package main

import "fmt"

// tileSignature declares kernel.tileFunc.
const tileSignature = "func(tiles, k int, a *float32, ars, aks uintptr, b *float32, bks uintptr, " +
	"c *float32, ldc uintptr, lanes int, mode uint64, next, nextStep uintptr)"

// tileRows are the rows of tiles. 8 rows of two vectors have 16 sums, as many as processors with
// four pipes, each four cycles long, keep under way; 8 vectors of A and two of B have room beside
// them.
var tileRows = []int{8, 4, 2, 1}

// gemm writes the tiles of matrix products, what packs their panels, and products with few columns.
func gemm() (all []*function) {
	for vectors := 1; vectors <= 2; vectors++ {
		for _, rows := range tileRows {
			t := newTile(rows, vectors)
			t.write()
			all = append(all, t.function)
		}
	}
	return append(all, pack(), few(), fewTA())
}

// tile is one kernel: a column of tiles of C, each rows x vectors.
type tile struct {
	*function
	rows, vectors          int
	fetches                bool // what comes next, while it computes
	acc                    [][]vec
	row                    []vec // of A: of each row four steps, or of a step four rows each
	ap                     []gp  // pointers into A: to rows, or the first to a step
	ars, aks, b, bks, left gp
	next, nextStep         gp
}

func newTile(rows, vectors int) *tile {
	name := fmt.Sprintf("tileNEON_%dx%d", rows, vectors)
	f := newFunction(name, tileSignature, fmt.Sprintf(
		"computes tiles of %d rows and %d vectors of C: see tileFunc.", rows, vectors))
	t := &tile{function: f, rows: rows, vectors: vectors, fetches: rows == tileRows[0]}
	for range rows {
		t.acc = append(t.acc, f.vector(vectors))
		t.ap = append(t.ap, f.gp())
	}
	t.row = f.vector(rows)
	return t
}

// write writes the loop over tiles.
func (t *tile) write() {
	tiles, k, a, b := t.load("tiles"), t.load("k"), t.load("a"), t.load("b")
	t.ars, t.aks, t.bks = t.load("ars"), t.load("aks"), t.load("bks")
	t.next, t.nextStep = t.load("next"), t.load("nextStep")
	c, ldc := t.load("c"), t.load("ldc")
	t.b, t.left = t.gp(), t.gp()
	column, byStep, summed := t.label(), t.label(), t.label()
	t.mark(column)
	for _, row := range t.acc {
		for _, v := range row {
			t.clear(v)
		}
	}
	t.fetchC(c, ldc)
	t.op("MOVD %s, %s", b, t.b)
	t.op("MOVD %s, %s", a, t.ap[0])
	t.op("SUBS $4, %s, %s", k, t.left)
	t.op("MOVD %s, %s", t.next, scratch)
	t.op("CMP $4, %s", t.aks)
	t.op("BNE %s", byStep)
	t.loop(summed, t.rowPointers, t.fourOfRows, func() { t.stepOfRows() })
	t.mark(byStep)
	t.loop(summed, func() {}, func() {
		for range 4 {
			t.step()
		}
	}, t.step)
	t.mark(summed)
	t.finish(c, ldc)
	t.op("MOVD $%d, %s", t.rows, scratch)
	t.op("MADD %s, %s, %s, %s", t.ars, a, scratch, a)
	t.op("ADD $%d, %s", lineBytes, t.next)
	t.op("SUBS $1, %s", tiles)
	t.op("BNE %s", column)
}

// lineBytes is what memory gives at once.
const lineBytes = 64

// fetchC asks for the tile of C that is added to: it comes while the sums are computed.
func (t *tile) fetchC(c, ldc gp) {
	if !t.fetches {
		return
	}
	fetched := t.label()
	t.scope(func() { t.op("TBZ $0, %s, %s", t.load("mode"), fetched) })
	t.op("MOVD %s, %s", c, scratch)
	for range t.rows {
		t.op("PRFM (%s), PLDL1KEEP", scratch)
		t.op("ADD %s, %s", ldc, scratch)
	}
	t.mark(fetched)
}

// loop adds the products of k steps: four at a time, for which it asks memory for a line, then one
// by one. It goes on at the label end.
func (t *tile) loop(end string, begin, four, one func()) {
	many, few, single := t.label(), t.label(), t.label()
	begin()
	t.op("CMP $0, %s", t.left)
	t.op("BLT %s", few)
	t.mark(many)
	if t.fetches {
		t.op("PRFM (%s), PLDL2KEEP", scratch)
		t.op("ADD %s, %s", t.nextStep, scratch)
	}
	four()
	t.op("SUBS $4, %s", t.left)
	t.op("BGE %s", many)
	t.mark(few)
	t.op("ADDS $4, %s", t.left)
	t.op("BEQ %s", end)
	t.mark(single)
	one()
	t.op("SUBS $1, %s", t.left)
	t.op("BNE %s", single)
	t.op("B %s", end)
}

// rowPointers has a pointer to each row of A, whose values follow each other.
func (t *tile) rowPointers() {
	for i := 1; i < t.rows; i++ {
		t.op("ADD %s, %s, %s", t.ars, t.ap[i-1], t.ap[i])
	}
}

// fourOfRows adds four steps: a vector of each row of A has its values of all four.
func (t *tile) fourOfRows() {
	for i, p := range t.ap {
		t.op("FMOVQ.P %d(%s), %s", vectorBytes, p, t.row[i].scalar())
	}
	for step := range lanes {
		t.addRow(func(i int) (vec, int) { return t.row[i], step })
	}
}

func (t *tile) stepOfRows() {
	for i, p := range t.ap {
		t.op("FMOVS.P 4(%s), %s", p, t.row[i].scalar())
	}
	t.addRow(func(i int) (vec, int) { return t.row[i], 0 })
}

// step adds one step, whose values of all rows of A follow each other.
func (t *tile) step() {
	load := "FMOVQ"
	if t.rows < lanes {
		load = map[int]string{1: "FMOVS", 2: "FMOVD"}[t.rows]
	}
	for i := 0; i < t.rows; i += lanes {
		t.op("%s %d(%s), %s", load, 4*i, t.ap[0], t.row[i/lanes].scalar())
	}
	t.op("ADD %s, %s", t.aks, t.ap[0])
	t.addRow(func(i int) (vec, int) { return t.row[i/lanes], i % lanes })
}

// addRow adds the products of a row of B with values of A, each a lane of a vector.
func (t *tile) addRow(value func(i int) (vec, int)) {
	t.scope(func() {
		row := t.vector(t.vectors)
		for j, v := range row {
			t.loadVector(v, t.b, j*vectorBytes)
		}
		t.op("ADD %s, %s", t.bks, t.b)
		for i, acc := range t.acc {
			a, lane := value(i)
			for j, v := range row {
				t.addTimesLane(acc[j], v, a, lane)
			}
		}
	})
}

// finish adds to, or overwrites, the tile at c, and moves c to the next one. What mode says of
// caches is not heeded.
func (t *tile) finish(c, ldc gp) {
	store := t.label()
	t.scope(func() {
		last, mode, p := t.load("lanes"), t.left, t.b // which are free
		t.reload("mode", mode)
		t.op("TBZ $0, %s, %s", mode, store)
		t.op("MOVD %s, %s", c, p)
		for _, acc := range t.acc {
			old := rowSet{function: t.function, acc: t.row[:1], last: last}
			for j, v := range acc {
				if j == t.vectors-1 {
					t.loadLanes(old.acc[0], p, j*vectorBytes, last)
				} else {
					t.loadVector(old.acc[0], p, j*vectorBytes)
				}
				t.add(v, v, old.acc[0])
			}
			t.op("ADD %s, %s", ldc, p)
		}
		t.mark(store)
		for _, acc := range t.acc {
			u := rowSet{function: t.function, acc: acc, last: last}
			u.store(c)
			t.op("ADD %s, %s", ldc, c)
		}
	})
}

// pack copies rows to panels of two vectors: see kernel.packFunc. They are rows of B, or columns of
// A for the largest tiles, which have as many rows.
func pack() *function {
	const width = 2 * lanes
	f := newFunction("packNEON", "func(panels, src *float32, rows, n int, stride, panel uintptr)",
		"copies rows to panels of 8 values: see packFunc.")
	dst, src, rows, n := f.load("panels"), f.load("src"), f.load("rows"), f.load("n")
	stride, panel := f.load("stride"), f.load("panel")
	from, to, left, a, b := f.gp(), f.gp(), f.gp(), f.vec(), f.vec()
	zero := f.zero()
	row, whole, rest, value, next := f.label(), f.label(), f.label(), f.label(), f.label()
	f.mark(row)
	f.op("MOVD %s, %s", src, from)
	f.op("MOVD %s, %s", dst, to)
	f.op("SUBS $%d, %s, %s", width, n, left)
	f.op("BLT %s", rest)
	f.mark(whole)
	f.loadVector(a, from, 0)
	f.loadVector(b, from, vectorBytes)
	f.storeVector(a, to, 0)
	f.storeVector(b, to, vectorBytes)
	f.op("ADD $%d, %s", 4*width, from)
	f.op("ADD %s, %s", panel, to)
	f.op("SUBS $%d, %s", width, left)
	f.op("BGE %s", whole)
	f.mark(rest)
	f.op("ADDS $%d, %s", width, left)
	f.op("BEQ %s", next)
	f.storeVector(zero, to, 0)
	f.storeVector(zero, to, vectorBytes)
	f.mark(value)
	f.op("MOVWU.P 4(%s), %s", from, scratch)
	f.op("MOVW.P %s, 4(%s)", scratch, to)
	f.op("SUBS $1, %s", left)
	f.op("BNE %s", value)
	f.mark(next)
	f.op("ADD %s, %s", stride, src)
	f.op("ADD $%d, %s", 4*width, dst)
	f.op("SUBS $1, %s", rows)
	f.op("BNE %s", row)
	return f
}
