// Package splits deals nodes and edges to the splits train, val and test: nodes at random, edges of
// an ingest as the source says or at random. It writes the files of edges of the splits, says which
// edges are in the lists, and counts nodes and types without an edge in train.
package splits

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
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

// ParseShares reads "random=60/20/20". What is missing to 100 stays in no split. Shares that sum to
// 1 are meant as fractions, and refused.
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
	if math.Abs(sum-1) < 1e-9 && max(s[0], s[1], s[2]) < 1 {
		return s, fmt.Errorf("split %q: these sum to 1 %% of the nodes; shares are percentages: "+
			"write random=%v/%v/%v", text, percent(s[0]), percent(s[1]), percent(s[2]))
	}
	return s, nil
}

// percent is a fraction as a percentage, rounded to what people write.
func percent(fraction float64) float64 { return math.Round(fraction*1e8) / 1e6 }

// scanRows is how many labels are read together.
const scanRows = 1 << 16

// Random draws splits of the labeled nodes, or of all nodes if there are no labels. Of each class,
// each split gets its share, to within one node; the same holds over all classes. No split is empty
// if there are as many nodes as splits. The same seed gives the same splits. It takes the memory of
// the sets, and a few words per class.
func Random(ctx context.Context, s *layout.Store, dev blockdev.Device, shares Shares,
	seed uint64) (sets map[string]*roaring.Bitmap, err error) {
	d := &drawing{rnd: rand.New(rand.NewPCG(seed, 0x73706c697473)), shares: shares}
	for range Names {
		d.sets = append(d.sets, roaring.New())
	}
	m := s.Meta()
	if d.deleted, err = s.Deleted(ctx); err != nil {
		return nil, err
	}
	if d.deleted == nil {
		d.deleted = roaring.New()
	}
	switch {
	case m.Labels == nil:
		d.setClasses([]uint64{m.Nodes - d.deleted.GetCardinality()})
		for v := range m.Nodes {
			d.draw(0, uint32(v))
		}
	case m.Labels.Kind == "class":
		err = d.classes(ctx, s, dev)
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

// drawing deals nodes one after the other so that in the end each split has its quota of each
// class: the chance that a node goes to a split is the number that the split still lacks, divided
// by the number of nodes still to come.
type drawing struct {
	rnd    *rand.Rand
	shares Shares
	left   []uint64 // nodes still to come, by class
	lack   []counts // nodes that splits still lack, by class
	sets   []*roaring.Bitmap

	deleted *roaring.Bitmap // nodes that are in no split
}

// counts are numbers of nodes by split; the last is for nodes in no split.
type counts [len(Shares{}) + 1]uint64

// rounding bounds the rounding error of quotas.
const rounding = 1e-9

// setClasses sets the numbers of nodes in the classes, and decides how many of each go to each
// split: its share, rounded down, or one more. The rest of a class goes to the splits that lack
// most over all classes so far, so that shares hold over all classes too. Classes are taken in
// random order.
func (d *drawing) setClasses(nodes []uint64) {
	d.left, d.lack = nodes, make([]counts, len(nodes))
	var lacking [len(counts{})]float64 // what each split lacks, over the classes so far
	for _, class := range d.rnd.Perm(len(nodes)) {
		lack, left := &d.lack[class], nodes[class]
		var open [len(counts{})]bool // splits that may get one more
		for i := range lack {
			quota := d.quota(class, i)
			lack[i] = min(uint64(quota+rounding), left)
			left -= lack[i]
			lacking[i] += quota - float64(lack[i])
			open[i] = quota-float64(lack[i]) > rounding
		}
		for ; left > 0; left-- {
			best := len(lack) - 1
			for i := len(lack) - 1; i >= 0; i-- {
				if open[i] && (!open[best] || lacking[i] > lacking[best]-rounding) {
					best = i
				}
			}
			lack[best]++
			lacking[best]--
			open[best] = false
		}
	}
	d.fillEmpty()
}

// quota returns a split's share of the nodes of a class.
func (d *drawing) quota(class, split int) float64 {
	share := 100.0
	if split < len(d.shares) {
		share = d.shares[split]
	} else {
		for _, s := range d.shares {
			share -= s
		}
	}
	return float64(d.left[class]) * max(0, share) / 100
}

// fillEmpty gives a node to each split that has a share but got none. It takes the node from where
// most are above their quota; train is the first to get one.
func (d *drawing) fillEmpty() {
	var total counts
	for _, lack := range d.lack {
		for i, n := range lack {
			total[i] += n
		}
	}
	for i, share := range d.shares {
		if share == 0 || total[i] > 0 {
			continue
		}
		class, from := d.richest(i, total)
		if class < 0 {
			continue
		}
		d.lack[class][from]--
		d.lack[class][i]++
		total[from]--
		total[i]++
	}
}

// richest returns the class and split that are most above their quota and may give a node to split
// to: a split with more than one node, or any if to is train. Class is -1 if there is none.
func (d *drawing) richest(to int, total counts) (class, from int) {
	class, most := -1, math.Inf(-1)
	for c, lack := range d.lack {
		for i, n := range lack {
			spare := i == len(d.shares) || total[i] > 1 || to == 0
			if over := float64(n) - d.quota(c, i); spare && n > 0 && over > most {
				class, from, most = c, i, over
			}
		}
	}
	return class, from
}

func (d *drawing) draw(class int, node uint32) {
	if d.left[class] == 0 || d.deleted.Contains(node) {
		return // the catalog counts fewer
	}
	x := d.rnd.Uint64N(d.left[class])
	d.left[class]--
	for i := range d.sets { // what is left of the class is in no split
		lack := &d.lack[class][i]
		if x < *lack {
			*lack--
			d.sets[i].Add(node)
			return
		}
		x -= *lack
	}
}

// classes deals the nodes that have a class. The catalog counts deleted nodes too, so these are
// counted first.
func (d *drawing) classes(ctx context.Context, s *layout.Store, dev blockdev.Device) error {
	counts := slices.Clone(s.Meta().Labels.ClassCounts)
	each := func(fn func(class int, node uint32)) error {
		return eachRow(ctx, s, dev, func(first uint64, raw []byte) {
			for i, class := range mem.View[int32](raw) {
				if class >= 0 && int(class) < len(counts) {
					fn(int(class), uint32(first)+uint32(i))
				}
			}
		})
	}
	if !d.deleted.IsEmpty() {
		err := each(func(class int, node uint32) {
			if d.deleted.Contains(node) && counts[class] > 0 {
				counts[class]--
			}
		})
		if err != nil {
			return err
		}
	}
	d.setClasses(counts)
	return each(d.draw)
}

// labeled deals nodes with labels that are not classes: multi-labels or numbers.
func (d *drawing) labeled(ctx context.Context, s *layout.Store, dev blockdev.Device) error {
	m, set := s.Meta(), roaring.New()
	if m.Labels.Kind == "multi" {
		stored, err := s.Catalog().Set(ctx, "labeled")
		if err != nil {
			return err
		}
		set = stored
	} else {
		err := eachRow(ctx, s, dev, func(first uint64, raw []byte) {
			for i, v := range mem.View[float32](raw) {
				if v == v {
					set.Add(uint32(first) + uint32(i))
				}
			}
		})
		if err != nil {
			return err
		}
	}
	set.AndNot(d.deleted)
	d.setClasses([]uint64{set.GetCardinality()})
	for it := set.Iterator(); it.HasNext(); {
		d.draw(0, it.Next())
	}
	return nil
}

// eachRow calls fn with the labels as they are stored, some at a time.
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
