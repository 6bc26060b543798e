package loader

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout/columnfile"
	"gdb/sample"

	"github.com/RoaringBitmap/roaring/v2"
)

// NodeTimes are the times of the nodes of a type, in the unit of the times of edges. They are a
// sample.Seeding: seeds are sampled as of their times.
type NodeTimes struct {
	column string
	first  sample.NodeID
	times  []int64
}

// noTime is the time of a node that has none.
const noTime = math.MinInt64

// LoadTimes reads the times of the nodes of a type of a typed store ("" for the only one): a column
// of its table. Timestamps become seconds since 1970, and dates their first second. They take 8
// bytes a node, counted in budget.
func LoadTimes(ctx context.Context, s *Source, of, column string) (t *NodeTimes, err error) {
	meta, c, err := timeColumn(s.Meta, of, column)
	if err != nil {
		return nil, err
	}
	held := 8 * int64(meta.Nodes)
	if err := s.Budget.Reserve("times of nodes", held); err != nil {
		return nil, fmt.Errorf("loader: %w", err)
	}
	r, err := columnfile.Open(ctx, s.Store, s.Device, c, s.Budget)
	if err != nil {
		return nil, fmt.Errorf("loader: open column %s: %w", column, err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	t = &NodeTimes{column: column, first: sample.NodeID(meta.First),
		times: make([]int64, meta.Nodes)}
	scale := map[string]int64{columnfile.Date: 24 * 3600, columnfile.Int64: 1}[c.Type]
	return t, r.Scan(ctx, 0, meta.Nodes, nil, func(at uint64, v *columnfile.Values) error {
		for k := range v.Rows {
			x := v.Ints[k]
			switch {
			case len(v.Valid) > 0 && v.Valid[k/64]>>(k%64)&1 == 0:
				x = noTime
			case scale == 0: // microseconds, rounded down
				x = (x - (x%1e6+1e6)%1e6) / 1e6
			default:
				x *= scale
			}
			t.times[at+uint64(k)] = x
		}
		return nil
	})
}

// timeColumn returns a column of times, and the type of nodes whose table has it.
func timeColumn(m *kv.Meta, of, column string) (t *kv.NodeTypeMeta, c kv.TableColumn,
	err error) {
	if !m.Typed() {
		return nil, c, errors.New("loader: the nodes of this store have no table: ingest them " +
			"with --nodes NAME=FILE and --edges NAME:REL:NAME=FILE, also where there is one " +
			"type, and the columns of FILE are kept")
	}
	for i := range m.NodeTypes {
		t = &m.NodeTypes[i]
		if t.Name != of && !(of == "" && len(m.NodeTypes) == 1) {
			continue
		}
		var names []string
		for _, c = range t.Columns {
			isTime := c.Type == columnfile.Date || c.Type == columnfile.Timestamp ||
				c.Type == columnfile.Int64
			if c.Name == column && isTime {
				return t, c, nil
			}
			if isTime {
				names = append(names, c.Name)
			}
		}
		return nil, c, fmt.Errorf("loader: nodes of type %s have no column %q of dates, "+
			"timestamps or integers (those there are: %s)", t.Name, column,
			strings.Join(names, ", "))
	}
	return nil, c, fmt.Errorf("loader: no type of nodes is known to have the column %q", column)
}

// Of returns the time of a node; ok is false if it has none.
func (t *NodeTimes) Of(v sample.NodeID) (at int64, ok bool) {
	i := uint64(v) - uint64(t.first)
	if i >= uint64(len(t.times)) || t.times[i] == noTime {
		return 0, false
	}
	return t.times[i], true
}

// Expand gives each seed its time.
func (t *NodeTimes) Expand(_ context.Context, seeds []sample.NodeID, out *sample.Seeded) error {
	out.Nodes = append(out.Nodes, seeds...)
	for _, v := range seeds {
		at, ok := t.Of(v)
		if !ok {
			return fmt.Errorf("node #%d has no time in the column %s: leave it out of the split, "+
				"or split by time (--split-time), where nodes without a time are in none", v,
				t.column)
		}
		out.Times = append(out.Times, at)
	}
	return nil
}

// Splits returns the splits of these names by one or two times: train has the nodes before the
// first, test those from the last on, and val those between. Nodes without a time are in none. The
// sets are counted in budget; the caller releases their bytes.
func (t *NodeTimes) Splits(bases []string, times []int64, budget *mem.Budget) ([]Split, error) {
	return splitsByTime(bases, times, budget, func(set *roaring.Bitmap, from, to int64) {
		for i, x := range t.times {
			if x != noTime && x >= from && (x < to || to == math.MaxInt64) {
				set.Add(uint32(t.first) + uint32(i))
			}
		}
	})
}

// splitsByTime returns splits by times; add adds what is from a time on, and before another.
func splitsByTime(bases []string, times []int64, budget *mem.Budget,
	add func(set *roaring.Bitmap, from, to int64)) (all []Split, err error) {
	first, last := times[0], times[len(times)-1]
	spans := map[string][2]int64{"train": {math.MinInt64, first}, "val": {first, last},
		"test": {last, math.MaxInt64}}
	for _, base := range bases {
		span, ok := spans[base]
		if !ok {
			return nil, fmt.Errorf("loader: %w: the run splits by time: there is train, val and "+
				"test, and no %q", ErrNoSplit, base)
		}
		set := roaring.New()
		add(set, span[0], span[1])
		split := Split{Set: set, Held: int64(set.GetSizeInBytes())}
		if err := budget.Reserve("split "+base, split.Held); err != nil {
			return nil, fmt.Errorf("loader: %w", err)
		}
		if set.IsEmpty() {
			budget.Release(split.Held)
			split = Split{Err: fmt.Errorf("loader: %w: no time of a seed is in %s of --split-time",
				ErrEmptySplit, base)}
		}
		all = append(all, split)
	}
	return all, nil
}
