package listcode

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestWithoutFastKernels: a processor that lacks the instructions of the fast kernels reads the
// same.
func TestWithoutFastKernels(t *testing.T) {
	defer func(before bool) { fast = before }(fast)
	fast = false
	t.Run("lists", TestListsAreWhatTheyWere)
	t.Run("counts", TestCounts)
	t.Run("moved", TestMovedLists)
	t.Run("places", TestPlaces)
	t.Run("ones", TestSelectBit)
	t.Run("kernels", TestKernels)
}

// TestKernelsOfLists: lists of any form are coded to the same bytes with kernels and without, from
// any bit on, and decoded to the same ids; cells that are damaged give the same error.
func TestKernelsOfLists(t *testing.T) {
	defer func(before bool) { fast = before }(fast)
	if !fast {
		t.Skip("this CPU lacks the instructions")
	}
	r := rand.New(rand.NewPCG(7, 8))
	c, inCells := Coding{FirstBits: 32, PosBits: 15, Cells: true}, 0
	for range 5000 {
		list := make([]uint32, 1+r.IntN(1<<r.IntN(12)))
		shift := r.IntN(31)
		for i := range list {
			if list[i] = r.Uint32() >> shift; r.IntN(3) > 0 {
				list[i] = list[max(0, i-1)] + r.Uint32N(1<<r.IntN(10))
			}
		}
		slices.Sort(list)
		form := c.FormOf(list)
		if form.way == wayCells {
			inCells++
		}
		skipped := r.IntN(64)
		coded := func(with bool) []byte {
			fast = with
			var w Writer
			w.Add(0, skipped%57)
			w.Add(0, skipped/57)
			if c.FormOf(list) != form {
				t.Fatalf("%d has another form without kernels", list)
			}
			c.AppendAs(&w, list, form)
			w.Add(1, 3)
			b := make([]byte, w.Bits()/8+1+Slack)
			w.CopyTo(b)
			return b
		}
		b := coded(true)
		if plain := coded(false); !bytes.Equal(b, plain) {
			t.Fatalf("%d from bit %d:\n%x, want\n%x", list, skipped, b, plain)
		}
		at := uint64(skipped)
		end := at + uint64(form.bits+c.FirstBits)
		if r.IntN(2) == 0 { // damage, in most cases
			k := at + 40 + r.Uint64N(end-at)
			b[min(k/8, uint64(len(b)-1))] ^= 1 << (k % 8)
		}
		decoded := func(with bool) (ids []uint32, err error) {
			fast = with
			l, err := c.Parse(b, at, end)
			if err == nil {
				ids = make([]uint32, l.Count)
				err = l.Decode(b, ids)
			}
			return ids, err
		}
		ids, err := decoded(true)
		plain, errPlain := decoded(false)
		if (err == nil) != (errPlain == nil) || err != nil && err.Error() != errPlain.Error() ||
			err == nil && !slices.Equal(ids, plain) {
			t.Fatalf("%d: %v, want %v", list, err, errPlain)
		}
	}
	if inCells < 1000 {
		t.Errorf("%d lists are in cells", inCells)
	}
}
