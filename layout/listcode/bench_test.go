package listcode

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// drawnLists are 2^20 lists with degrees as R-MAT has them, 16 M ids of 22 bits in all, cut in
// parts as blocks of 4 KiB cut them, and draws of 10 entries from lists in proportion to their
// length.
type drawnLists struct {
	plain    []uint32
	starts   []int
	refs     []Ref
	coded    []byte
	off, pos []uint32
	lists    []uint32
}

func newDrawnLists(ids int, cells bool) *drawnLists {
	const idBits, draws, partMost = 22, 1 << 20, 1900
	r := rand.New(rand.NewPCG(1, 1))
	d, c := &drawnLists{off: []uint32{0}}, Coding{FirstBits: idBits, PosBits: 15, Cells: cells}
	var w Writer
	var ends []uint64
	for len(d.plain) < ids {
		n := min(int(math.Exp(r.NormFloat64()*2+1))+1, partMost)
		list := make([]uint32, n)
		for i := range list {
			list[i] = r.Uint32N(1 << idBits)
		}
		slices.Sort(list)
		d.starts, ends = append(d.starts, len(d.plain)), append(ends, uint64(w.Bits()))
		d.plain = append(d.plain, list...)
		c.Append(&w, list)
	}
	ends = append(ends, uint64(w.Bits()))
	d.coded = make([]byte, w.Bits()/8+1+Slack+1<<12)
	w.CopyTo(d.coded)
	for i := range d.starts {
		l, err := c.Parse(d.coded, ends[i], ends[i+1])
		if err != nil {
			panic(err)
		}
		d.refs = append(d.refs, l.Ref())
	}
	owner := make([]uint32, 0, len(d.plain))
	for i, l := range d.refs {
		for range l.Count {
			owner = append(owner, uint32(i))
		}
	}
	for len(d.pos) < draws {
		i := owner[r.IntN(len(owner))]
		d.lists = append(d.lists, i)
		for range min(10, d.refs[i].Count) {
			d.pos = append(d.pos, r.Uint32N(d.refs[i].Count))
		}
		d.off = append(d.off, uint32(len(d.pos)))
	}
	return d
}

// BenchmarkDraw draws single entries from plain arrays and from coded lists.
func BenchmarkDraw(b *testing.B) {
	for _, cells := range []bool{false, true} {
		for _, ids := range []int{64 << 10, 16 << 20} {
			b.Run(fmt.Sprintf("cells=%v/ids=%d", cells, ids), func(b *testing.B) {
				benchmarkDraw(b, newDrawnLists(ids, cells))
			})
		}
	}
}

func benchmarkDraw(b *testing.B, d *drawnLists) {
	out, want := make([]uint32, len(d.pos)), make([]uint32, len(d.pos))
	report := func(b *testing.B, bytes int) {
		b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(b.N)/float64(len(d.pos)), "ns/draw")
		b.ReportMetric(float64(bytes)/float64(len(d.plain)), "B/entry")
	}
	b.Run("form=plain", func(b *testing.B) {
		for b.Loop() {
			for i, l := range d.lists {
				at := d.starts[l]
				for k := d.off[i]; k < d.off[i+1]; k++ {
					want[k] = d.plain[at+int(d.pos[k])]
				}
			}
		}
		report(b, 4*len(d.plain))
	})
	b.Run("form=coded", func(b *testing.B) {
		g := NewGatherer(Coding{FirstBits: 22, PosBits: 15}, d.coded, 1<<12)
		refs := make([]Ref, len(d.lists))
		for b.Loop() {
			for i, l := range d.lists {
				refs[i] = d.refs[l]
			}
			g.Begin(out)
			for i := range refs {
				g.List(&refs[i], d.pos[d.off[i]:d.off[i+1]])
			}
			g.End()
		}
		report(b, len(d.coded))
		if !slices.Equal(out, want) {
			b.Fatal("other entries")
		}
	})
}
