package probe

import (
	"context"
	"slices"

	"gdb/layout/rowfile"
	"gdb/sample"
	"gdb/sample/loader"
	"gdb/sample/rowcache"
	"gdb/train/plan"
)

// rowPricer fills in the curve of one policy.
type rowPricer struct {
	*Probe
	s     *plan.Costs
	tr    *trace
	cache string  // the policy
	steps float64 // batches of a superbatch
	curve *plan.Curve
}

// misses counts what a cache missed, summed over batches: the rows it was asked for (nodes), those
// it did not hold (missed), and the reads and bytes that it takes to read these.
type misses struct {
	nodes, missed, reads int
	bytes                int64
}

// add counts the rows that are read; a store without features reads none.
func (m *misses) add(ctx context.Context, rows *rowfile.Reader, missed []sample.NodeID) error {
	if rows == nil {
		m.missed += len(missed)
		return nil
	}
	reads, bytes, err := rows.Cost(ctx, missed)
	m.missed, m.reads, m.bytes = m.missed+len(missed), m.reads+reads, m.bytes+bytes
	return err
}

// addSome counts about how much a batch reads that misses some of all its rows.
func (m *misses) addSome(r *rowPricer, missed, all int) {
	missed = min(missed, all)
	read := r.s.Apart.Of(float64(missed))
	m.missed, m.reads, m.bytes = m.missed+missed, m.reads+int(read.Reads), m.bytes+read.Bytes
}

// since returns what was counted after before was taken.
func (m *misses) since(before misses) misses {
	return misses{m.nodes - before.nodes, m.missed - before.missed, m.reads - before.reads,
		m.bytes - before.bytes}
}

// cost returns the mean cost of a batch, the misses being summed over a number of batches.
func (m *misses) cost(batches int, d *plan.Profile) plan.RowsCost {
	n := float64(batches)
	read := d.Reading(float64(m.reads)/n, float64(m.bytes)/n)
	return plan.RowsCost{Hit: float64(m.nodes-m.missed) / float64(max(1, m.nodes)),
		Bytes: read.Bytes,
		Wait:  read.Wait, CPU: read.CPU}
}

// hottest prices the static cache, which holds the rows of the nodes that occur in most lists.
func (r *rowPricer) hottest(ctx context.Context) error {
	hot, err := r.src.HotRowsAbout(ctx, slices.Max(r.curve.Bytes))
	if err != nil {
		return err
	}
	return r.static(ctx, hot)
}

// static prices caches that hold the rows of the first nodes of hot.
func (r *rowPricer) static(ctx context.Context, hot []sample.NodeID) error {
	held, err := sample.NewNodeSet(r.src.RowCount(), r.src.Budget)
	if err != nil {
		return err
	}
	defer held.Free()
	for _, bytes := range r.curve.Bytes {
		rows := rowcache.RowsIn(bytes, r.facts.RowDim(), int(loader.HotBytes(1)))
		held.Clear()
		for _, v := range hot[:min(rows, len(hot))] {
			held.Add(uint32(v))
		}
		m, err := r.missesOf(ctx, held)
		if err != nil {
			return err
		}
		r.curve.Costs = append(r.curve.Costs, m.cost(len(r.tr.batches), r.s.Device))
	}
	return nil
}

// uncached prices having no cache: all rows are read.
func (r *rowPricer) uncached(ctx context.Context) error {
	if r.tr.played.share == 1 {
		return r.static(ctx, nil)
	}
	var m misses
	for _, b := range r.tr.asked {
		m.addSome(r, len(b), len(b))
		m.nodes += len(b)
	}
	for range r.curve.Bytes {
		r.curve.Costs = append(r.curve.Costs, m.cost(len(r.tr.batches), r.s.Device))
	}
	return nil
}

// missesOf returns what a cache misses that always holds the nodes of a set.
func (r *rowPricer) missesOf(ctx context.Context, held *sample.NodeSet) (m misses, err error) {
	a := &r.tr.played
	var missed []sample.NodeID
	for i, b := range a.of(r.tr) {
		missed = missed[:0]
		for _, v := range b {
			if a.ids != nil {
				v = a.ids[v]
			}
			if !held.Has(uint32(v)) {
				missed = append(missed, v)
			}
		}
		if a.share > 1 {
			m.addSome(r, len(missed)*a.share, len(r.tr.asked[i]))
		} else if err = m.add(ctx, r.src.Rows, missed); err != nil {
			return m, err
		}
		m.nodes += len(r.tr.asked[i])
	}
	return m, nil
}

// slotBytes returns how many bytes the cache takes for a row besides its values.
func (r *rowPricer) slotBytes() int {
	if r.cache == "static" {
		return int(loader.HotBytes(1))
	}
	return rowcache.NewSIEVE().SlotBytes()
}

// later returns the range of batches whose costs are forecast, from begin up to end.
func (r *rowPricer) later() (begin, end float64) {
	if r.facts.Epochs > 1 {
		begin = r.s.Full
	}
	return begin, r.s.Full * float64(r.facts.Epochs)
}
