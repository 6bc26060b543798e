package match

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"gdb/internal/pace"
	"gdb/shell/lang"
	"gdb/shell/words"
)

// matchOutput filters matches, looks up what RETURN asks for, and groups, sorts and cuts the rows.
type matchOutput struct {
	m      *matcher
	places map[string]int // the places of nodes in a match, by name
	edges  map[string]int
	grouped,
	done bool
	groups map[string]*matchGroup // by key: the groups of a grouped result, or of DISTINCT rows
	order  []*matchGroup          // the groups in the order in which they appeared
	kept   [][]words.Cell         // rows of ORDER BY without groups
	seen   map[string]struct{}    // keys of the rows that DISTINCT has shown; see fresh
	key    []byte
	shown  int64
}

// matchGroup is a group of matches whose plain items are equal.
type matchGroup struct {
	cells []words.Cell // one for each item; for aggregates the least or the most so far
	n     []uint64     // for each aggregate, how many values it has seen
	sum   []float64
}

func newMatchOutput(m *matcher) *matchOutput {
	o := &matchOutput{m: m, places: map[string]int{}, edges: map[string]int{},
		groups: map[string]*matchGroup{}, seen: map[string]struct{}{}}
	for i, n := range m.q.Nodes {
		if _, ok := o.places[n.Name]; !ok {
			o.places[n.Name] = i
		}
	}
	for i, h := range m.q.Hops {
		o.edges[h.Name] = i
	}
	for _, item := range m.q.Items {
		o.grouped = o.grouped || item.Aggregate != ""
	}
	return o
}

func (o *matchOutput) columns() (cols []string) {
	for _, item := range o.m.q.Items {
		cols = append(cols, item.As)
	}
	return cols
}

// The memory that a sorted row and a group take besides their cells: lists and a table that are
// copied as they grow.
const (
	sortedBytes = 112
	groupBytes  = 320
)

// cellBytes is the memory that is counted for a cell of a kept row, besides its text.
const cellBytes = 64

// hold reserves memory for the cells of a kept row, and n bytes more.
func (o *matchOutput) hold(row []words.Cell, n int64) error {
	for _, c := range row {
		n += cellBytes + int64(len(c.Text))
	}
	return o.m.x.Hold("rows that MATCH groups or sorts", n)
}

// take filters a batch of matches and hands on those that are left. It returns false if no more are
// wanted.
func (o *matchOutput) take(ctx context.Context, rows []matchRow) (more bool, err error) {
	err = o.m.p.root.Run(ctx, func(ctx context.Context) error {
		more, err = o.takeBatch(ctx, rows)
		return err
	})
	return more, err
}

func (o *matchOutput) takeBatch(ctx context.Context, rows []matchRow) (more bool, err error) {
	if rows, err = o.filter(ctx, rows); err != nil {
		return false, err
	}
	if o.m.q.Distinct && !o.grouped {
		if rows, err = o.fresh(rows); err != nil {
			return false, err
		}
	}
	vals := newMatchValues()
	for i := range o.m.q.Items {
		if err := o.load(ctx, vals, rows, &o.m.q.Items[i].MatchExpr); err != nil {
			return false, err
		}
	}
	for i := range rows {
		if err := o.add(vals, i); err != nil || o.done {
			return false, err
		}
	}
	return true, ctx.Err()
}

// filter returns the rows for which WHERE holds.
func (o *matchOutput) filter(ctx context.Context, rows []matchRow) ([]matchRow, error) {
	where := o.m.p.where
	if len(where) == 0 {
		return rows, nil
	}
	vals := newMatchValues()
	if err := o.loadWhere(ctx, vals, rows); err != nil {
		return nil, err
	}
	kept := rows[:0]
	for i := range rows {
		ok, err := o.holdsWhere(where, vals, &rows[i], i)
		if err != nil {
			return nil, err
		}
		if ok {
			kept = append(kept, rows[i])
		}
	}
	o.m.p.filter.Emit(len(kept), 0)
	return kept, nil
}

// seenBytes is the memory that a match takes that DISTINCT remembers, besides its key.
const seenBytes = 64

// fresh returns the rows whose nodes and edges, as far as RETURN names them, have not occurred in
// an earlier row. The other rows would only give rows that DISTINCT drops, so nothing is looked up
// for them.
func (o *matchOutput) fresh(rows []matchRow) ([]matchRow, error) {
	kept := rows[:0]
	for i := range rows {
		o.key = o.key[:0]
		for k := range o.m.q.Items {
			o.key = o.appendKey(o.key, &rows[i], &o.m.q.Items[k].MatchExpr)
		}
		if _, ok := o.seen[string(o.key)]; ok {
			continue
		}
		n := int64(seenBytes + len(o.key))
		if err := o.m.x.Hold("rows that MATCH keeps distinct", n); err != nil {
			return nil, err
		}
		o.seen[string(o.key)] = struct{}{}
		kept = append(kept, rows[i])
	}
	return kept, nil
}

// appendKey appends everything from which the value of an expression follows.
func (o *matchOutput) appendKey(key []byte, r *matchRow, e *lang.MatchExpr) []byte {
	le := binary.LittleEndian
	if e.Literal != nil {
		return key
	}
	edge, ok := o.edges[e.Name]
	if !ok {
		return le.AppendUint32(key, uint32(r.nodes[o.places[e.Name]]))
	}
	switch v := &r.edges[edge]; e.Prop {
	case "type":
		return le.AppendUint16(key, v.edgeType)
	case "weight":
		return le.AppendUint32(key, math.Float32bits(v.weight))
	default:
		return le.AppendUint64(key, uint64(v.time))
	}
}

// add adds one match to the result.
func (o *matchOutput) add(vals *matchValues, row int) error {
	q := o.m.q
	cells := make([]words.Cell, len(q.Items))
	var key strings.Builder
	for i := range q.Items {
		if e := &q.Items[i].MatchExpr; e.Aggregate == "" {
			cells[i] = vals.of(e, row)
			text := cells[i].As(words.String).Text
			fmt.Fprintf(&key, "%d:%d:%s", cells[i].Kind, len(text), text)
		}
	}
	if !o.grouped && !q.Distinct {
		return o.emit(cells)
	}
	g := o.groups[key.String()]
	if g == nil {
		g = &matchGroup{cells: cells, n: make([]uint64, len(cells)),
			sum: make([]float64, len(cells))}
		if err := o.hold(cells, groupBytes+int64(key.Len())); err != nil {
			return err
		}
		o.groups[key.String()] = g
		o.order = append(o.order, g)
		if !o.grouped {
			return o.emit(cells)
		}
	}
	for i := range q.Items {
		if e := &q.Items[i].MatchExpr; e.Aggregate != "" {
			before := len(g.cells[i].Text)
			err := g.add(i, e, vals, row)
			if more := len(g.cells[i].Text) - before; err == nil && more > 0 {
				err = o.hold(nil, int64(more)) // the least or the most is a longer text now
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// add adds a value to an aggregate. Empty values do not count.
func (g *matchGroup) add(i int, e *lang.MatchExpr, vals *matchValues, row int) error {
	if e.Name == "*" {
		g.n[i]++
		return nil
	}
	v := vals.of(e, row)
	if v.Kind == words.Empty {
		return nil
	}
	switch e.Aggregate {
	case "avg":
		x, ok := numberOf(v)
		if !ok {
			return fmt.Errorf("%s: %s is no number", e.Text, words.Quoted(v.Text))
		}
		g.sum[i] += x.float()
	case "min", "max":
		order := orderCells(v, g.cells[i])
		switch {
		case g.n[i] == 0, isNaN(g.cells[i]): // NaN counts only if nothing else came
			g.cells[i] = v
		case !isNaN(v) && (order < 0) == (e.Aggregate == "min") && order != 0:
			g.cells[i] = v
		}
	}
	g.n[i]++
	return nil
}

// emit shows a row, or keeps it if rows are sorted.
func (o *matchOutput) emit(cells []words.Cell) error {
	q := o.m.q
	if q.Order < 0 {
		return o.show(cells)
	}
	if err := o.hold(cells, sortedBytes); err != nil {
		return err
	}
	o.kept = append(o.kept, cells)
	return nil
}

func (o *matchOutput) show(cells []words.Cell) error {
	if o.m.q.Limit >= 0 && o.shown >= o.m.q.Limit {
		o.done = true
		return nil
	}
	o.shown++
	vals := make([]any, len(cells))
	for i, c := range cells {
		vals[i] = o.shownAs(&o.m.q.Items[i].MatchExpr, c)
	}
	o.m.x.Row(vals...)
	return o.m.x.Err()
}

// shownAs returns a value as people and files get it: times as the source wrote them, and numbers
// of the store with the digits that they have.
func (o *matchOutput) shownAs(e *lang.MatchExpr, c words.Cell) any {
	_, ofEdge := o.edges[e.Name]
	counted := e.Aggregate == "count"
	switch {
	case c.Kind == words.String:
		return c.Text
	case c.Kind == words.Empty:
		return nil
	case ofEdge && e.Prop == "time" && !counted && c.Kind == words.Int:
		return o.m.x.Graph.TimeOf(c.Int)
	case ofEdge && e.Prop == "time" && !counted:
		return o.m.x.Graph.Time(c.Float)
	case c.Kind == words.Int:
		return c.Int
	case e.Literal == nil && e.Aggregate != "avg":
		return float32(c.Float)
	}
	return c.Float
}

// finish shows groups and sorted rows. A result of only aggregates has a row even if nothing
// matched.
func (o *matchOutput) finish(ctx context.Context) error {
	q := o.m.q
	if o.grouped {
		plain := slices.ContainsFunc(q.Items,
			func(i lang.MatchItem) bool { return i.Aggregate == "" })
		if len(o.order) == 0 && !plain {
			n := len(q.Items)
			o.order = []*matchGroup{{make([]words.Cell, n), make([]uint64, n), make([]float64, n)}}
		}
		for n, g := range o.order {
			if n%pace.EverySlow == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			for i, item := range q.Items {
				switch {
				case item.Aggregate == "count":
					g.cells[i] = words.Cell{Kind: words.Int, Int: int64(g.n[i])}
				case item.Aggregate == "avg" && g.n[i] > 0:
					g.cells[i] = words.Cell{Kind: words.Float, Float: g.sum[i] / float64(g.n[i])}
				}
			}
			if err := o.emit(g.cells); err != nil {
				return err
			}
		}
	}
	if err := o.sort(ctx); err != nil {
		return err
	}
	for _, cells := range o.kept {
		if err := o.show(cells); err != nil || o.done {
			return err
		}
	}
	return ctx.Err()
}

// sort puts the kept rows in order.
func (o *matchOutput) sort(ctx context.Context) error {
	by := o.m.q.Order
	return pace.SortStableFunc(ctx, o.kept, func(a, b []words.Cell) int {
		if o.m.q.Desc {
			return orderCells(b[by], a[by])
		}
		return orderCells(a[by], b[by])
	})
}
