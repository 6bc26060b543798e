// Package splits makes splits of a store's nodes: train, val and test by random.
package splits

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/rowfile"

	"github.com/RoaringBitmap/roaring/v2"
)

// Names are the splits that Random makes, in the order of the shares.
var Names = []string{"train", "val", "test"}

// Shares are the percentages of Names.
type Shares [3]float64

// ParseShares reads "random=60/20/20". What is missing to 100 stays in no split.
func ParseShares(text string) (s Shares, err error) {
	wrong := fmt.Errorf("split %q: want random=TRAIN/VAL/TEST, percentages such as "+
		"random=60/20/20", text)
	list, ok := strings.CutPrefix(text, "random=")
	parts := strings.Split(list, "/")
	if !ok || len(parts) != len(s) {
		return s, wrong
	}
	sum := 0.0
	for i, p := range parts {
		if s[i], err = strconv.ParseFloat(p, 64); err != nil || !(s[i] >= 0 && s[i] <= 100) {
			return s, wrong
		}
		sum += s[i]
	}
	if sum > 100+1e-9 || s[0] == 0 {
		return s, fmt.Errorf("%w; they sum to 100 at most, and train is not 0", wrong)
	}
	return s, nil
}

// scanRows is how many labels are read at a time.
const scanRows = 1 << 16

// Random draws splits of the labeled nodes, of all nodes where there are no labels: each class
// gives
// each split its share, to within one node. It is the same for the same seed. Memory: the sets, and
// a few words for each class.
func Random(ctx context.Context, s *layout.Store, dev blockdev.Device, shares Shares,
	seed uint64) (sets map[string]*roaring.Bitmap, err error) {
	d := &drawing{rnd: rand.New(rand.NewPCG(seed, 0x73706c697473)), shares: shares}
	for range Names {
		d.sets = append(d.sets, roaring.New())
	}
	m := s.Meta()
	switch {
	case m.Labels == nil:
		d.addClass(m.Nodes)
		for v := range m.Nodes {
			d.draw(0, uint32(v))
		}
	case m.Labels.Kind == "class":
		for _, n := range m.Labels.ClassCounts {
			d.addClass(n)
		}
		err = eachLabel(ctx, s, dev, d)
	default:
		err = d.labeled(ctx, s, dev)
	}
	if err != nil {
		return nil, err
	}
	sets = map[string]*roaring.Bitmap{}
	for i, name := range Names {
		d.sets[i].RunOptimize()
		sets[name] = d.sets[i]
	}
	return sets, nil
}

// drawing deals nodes out, one after the other, so that in the end each split has its quota of each
// class: a node goes to a split with the chance of what that still lacks among what is still to
// come.
type drawing struct {
	rnd    *rand.Rand
	shares Shares
	left   []uint64    // nodes to come, by class
	lack   [][3]uint64 // by class and split
	sets   []*roaring.Bitmap
}

// addClass adds a class of n nodes.
func (d *drawing) addClass(n uint64) {
	var lack [3]uint64
	sum, given := 0.0, uint64(0)
	for i, share := range d.shares { // rounded so that they never sum to more than n
		sum += share
		upTo := min(n, uint64(sum/100*float64(n)+0.5))
		lack[i], given = upTo-given, upTo
	}
	d.left, d.lack = append(d.left, n), append(d.lack, lack)
}

func (d *drawing) draw(class int, node uint32) {
	if d.left[class] == 0 {
		return // the catalog counts fewer
	}
	x := d.rnd.Uint64N(d.left[class])
	d.left[class]--
	for i := range d.sets {
		lack := &d.lack[class][i]
		if x < *lack {
			*lack--
			d.sets[i].Add(node)
			return
		}
		x -= *lack
	}
}

// eachLabel deals out the nodes that have a class.
func eachLabel(ctx context.Context, s *layout.Store, dev blockdev.Device, d *drawing) error {
	return eachRow(ctx, s, dev, func(first uint64, raw []byte) {
		for i, class := range mem.View[int32](raw) {
			if class >= 0 && int(class) < len(d.left) {
				d.draw(int(class), uint32(first)+uint32(i))
			}
		}
	})
}

// labeled deals out nodes with labels that are no classes: multi-labels or numbers.
func (d *drawing) labeled(ctx context.Context, s *layout.Store, dev blockdev.Device) error {
	m := s.Meta()
	d.addClass(m.Labels.Labeled)
	if m.Labels.Kind == "multi" {
		set, err := s.Catalog().Set(ctx, "labeled")
		if err != nil {
			return err
		}
		for it := set.Iterator(); it.HasNext(); {
			d.draw(0, it.Next())
		}
		return nil
	}
	return eachRow(ctx, s, dev, func(first uint64, raw []byte) {
		for i, v := range mem.View[float32](raw) {
			if v == v {
				d.draw(0, uint32(first)+uint32(i))
			}
		}
	})
}

// eachRow reads the labels as they are stored, some at a time.
func eachRow(ctx context.Context, s *layout.Store, dev blockdev.Device,
	fn func(first uint64, raw []byte)) (err error) {
	m := s.Meta()
	rows, err := rowfile.Open(ctx, s, dev, m.Labels.Rows, mem.NewBudget(0))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	buf := make([]byte, scanRows*m.Labels.Rows.RowBytes)
	for first := uint64(0); first < m.Nodes; first += scanRows {
		n := min(scanRows, m.Nodes-first)
		raw := buf[:n*uint64(m.Labels.Rows.RowBytes)]
		if err := rows.ScanRaw(ctx, layout.NodeID(first), int(n), raw); err != nil {
			return err
		}
		fn(first, raw)
	}
	return nil
}
