package shell

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gdb/internal/pace"
	"gdb/layout"
)

// matchOutput filters matches, looks up what RETURN asks for, and groups, sorts and cuts.
type matchOutput struct {
	m      *matcher
	places map[string]int // of nodes, by name
	edges  map[string]int
	grouped,
	done bool
	groups map[string]*matchGroup // of grouped results, or of DISTINCT rows
	order  []*matchGroup          // in order of appearance
	kept   [][]cell               // of ORDER BY without groups
	seen   map[string]struct{}    // of DISTINCT: what its values come from; see fresh
	key    []byte
	shown  int64
}

// matchGroup is a group of matches with the same plain items.
type matchGroup struct {
	cells []cell   // one an item; of aggregates the least or most so far
	n     []uint64 // of each aggregate: values seen
	sum   []float64
}

func newMatchOutput(m *matcher) *matchOutput {
	o := &matchOutput{m: m, places: map[string]int{}, edges: map[string]int{},
		groups: map[string]*matchGroup{}, seen: map[string]struct{}{}}
	for i, n := range m.q.nodes {
		if _, ok := o.places[n.name]; !ok {
			o.places[n.name] = i
		}
	}
	for i, h := range m.q.hops {
		o.edges[h.name] = i
	}
	for _, item := range m.q.items {
		o.grouped = o.grouped || item.aggregate != ""
	}
	return o
}

func (o *matchOutput) columns() (cols []string) {
	for _, item := range o.m.q.items {
		cols = append(cols, item.as)
	}
	return cols
}

// What a row that is sorted, and a group, take besides their cells: lists and a table that are
// copied as they grow.
const (
	sortedBytes = 112
	groupBytes  = 320
)

// hold counts the cells of a row that is kept, and n bytes more.
func (o *matchOutput) hold(row []cell, n int64) error {
	for _, c := range row {
		n += rowBytes*2 + int64(len(c.s))
	}
	return o.m.x.hold("rows that MATCH groups or sorts", n)
}

// uses says whether a query needs an operator for its properties.
func (q *matchQuery) uses(kind string) bool {
	return slices.ContainsFunc(q.exprs(), func(e matchExpr) bool { return propKind(e) == kind })
}

// propKind is the operator that finds a property; "" for what a match carries.
func propKind(e matchExpr) string {
	switch {
	case e.prop == "id":
		return "names"
	case e.prop == "label":
		return "labels"
	case featureProp.MatchString(e.prop):
		return "features"
	}
	return ""
}

func featureColumn(prop string) int {
	k, _ := strconv.Atoi(prop[1:]) // featureProp matched
	return k
}

// matchValues are properties of a batch of matches, by variable and property.
type matchValues map[[2]string][]cell

// load finds the properties of expressions for all rows.
func (o *matchOutput) load(ctx context.Context, vals matchValues, rows []matchRow,
	exprs []matchExpr) (err error) {
	for _, e := range exprs {
		key := [2]string{e.name, e.prop}
		if vals[key] != nil || e.prop == "" {
			continue
		}
		if edge, ok := o.edges[e.name]; ok {
			vals[key] = o.edgeValues(rows, edge, e.prop)
			continue
		}
		nodes := make([]layout.NodeID, len(rows))
		for i := range rows {
			nodes[i] = rows[i].nodes[o.places[e.name]]
		}
		if vals[key], err = o.nodeValues(ctx, nodes, e); err != nil {
			return err
		}
	}
	return nil
}

func (o *matchOutput) edgeValues(rows []matchRow, edge int, prop string) []cell {
	out := make([]cell, len(rows))
	for i := range rows {
		switch e := rows[i].edges[edge]; prop {
		case "type":
			out[i] = cellOf(o.m.x.engine.meta().EdgeTypes[e.edgeType])
		case "weight":
			out[i] = cellOf(e.weight)
		default:
			out[i] = cellOf(e.time)
		}
	}
	return out
}

func (o *matchOutput) nodeValues(ctx context.Context, nodes []layout.NodeID,
	e matchExpr) ([]cell, error) {
	x, out := o.m.x, make([]cell, len(nodes))
	switch propKind(e) {
	case "names":
		names, err := x.names(ctx, nodes)
		for i, name := range names {
			out[i] = cellOf(name)
		}
		return out, err
	case "labels":
		r, err := x.labels(ctx)
		if err != nil {
			return nil, err
		}
		return out, r.each(ctx, nodes, func(i int, row []byte) error {
			label, err := r.text(nodes[i], row)
			out[i] = cellOf(label)
			return err
		})
	}
	rows, err := x.engine.open(ctx, x.engine.meta().Features[0])
	if err != nil {
		return nil, err
	}
	at, column, dim := 0, featureColumn(e.prop), rows.Meta().Dim
	return out, x.featureRows(ctx, rows, nodes,
		func(part []layout.NodeID, data []float32) error {
			for i := range part {
				out[at] = cellOf(data[i*dim+column])
				at++
			}
			return nil
		})
}

func (v matchValues) of(e *matchExpr, row int) cell {
	if e.literal != nil {
		return *e.literal
	}
	return v[[2]string{e.name, e.prop}][row]
}

// take filters a batch of matches and hands on the rest; false if no more are wanted.
func (o *matchOutput) take(ctx context.Context, rows []matchRow) (bool, error) {
	before := o.m.x.watch.Switch(&o.m.x.root.span)
	defer o.m.x.watch.Switch(before)
	vals := matchValues{}
	if len(o.m.q.where) > 0 {
		var asked []matchExpr
		for _, and := range o.m.q.where {
			for _, c := range and {
				asked = append(append(asked, c.left), c.right...)
			}
		}
		if err := o.load(ctx, vals, rows, asked); err != nil {
			return false, err
		}
		kept := rows[:0]
		for i := range rows {
			if holdsWhere(o.m.q.where, vals, i) {
				kept = append(kept, rows[i])
			}
		}
		rows, vals = kept, matchValues{}
		o.m.x.emit("filter", len(rows), 0)
	}
	if o.m.q.distinct && !o.grouped {
		var err error
		if rows, err = o.fresh(rows); err != nil {
			return false, err
		}
	}
	var items []matchExpr
	for _, item := range o.m.q.items {
		items = append(items, item.matchExpr)
	}
	if err := o.load(ctx, vals, rows, items); err != nil {
		return false, err
	}
	for i := range rows {
		if err := o.add(vals, i); err != nil || o.done {
			return false, err
		}
	}
	return true, ctx.Err()
}

// seenBytes is what a match that DISTINCT remembers takes besides its key.
const seenBytes = 64

// fresh keeps of rows those whose nodes and edges, of those that RETURN names, came in no row
// before: the others would only give rows that DISTINCT drops, so nothing is looked up for them.
func (o *matchOutput) fresh(rows []matchRow) ([]matchRow, error) {
	kept := rows[:0]
	for i := range rows {
		o.key = o.key[:0]
		for k := range o.m.q.items {
			o.key = o.appendKey(o.key, &rows[i], &o.m.q.items[k].matchExpr)
		}
		if _, ok := o.seen[string(o.key)]; ok {
			continue
		}
		n := int64(seenBytes + len(o.key))
		if err := o.m.x.hold("rows that MATCH keeps distinct", n); err != nil {
			return nil, err
		}
		o.seen[string(o.key)] = struct{}{}
		kept = append(kept, rows[i])
	}
	return kept, nil
}

// appendKey appends what the value of an expression follows from.
func (o *matchOutput) appendKey(key []byte, r *matchRow, e *matchExpr) []byte {
	le := binary.LittleEndian
	if e.literal != nil {
		return key
	}
	edge, ok := o.edges[e.name]
	if !ok {
		return le.AppendUint32(key, uint32(r.nodes[o.places[e.name]]))
	}
	switch v := &r.edges[edge]; e.prop {
	case "type":
		return le.AppendUint16(key, v.edgeType)
	case "weight":
		return le.AppendUint32(key, math.Float32bits(v.weight))
	default:
		return le.AppendUint64(key, uint64(v.time))
	}
}

func holdsWhere(or [][]matchCondition, vals matchValues, row int) bool {
	return slices.ContainsFunc(or, func(and []matchCondition) bool {
		return !slices.ContainsFunc(and, func(c matchCondition) bool {
			return !c.holds(vals, row)
		})
	})
}

// holds compares; with an empty value every comparison is false.
func (c *matchCondition) holds(vals matchValues, row int) bool {
	left := vals.of(&c.left, row)
	for i := range c.right {
		order, ok := compareCells(left, vals.of(&c.right[i], row))
		if !ok {
			continue
		}
		switch c.op {
		case "=", "IN":
			ok = order == 0
		case "<>":
			ok = order != 0
		case "<":
			ok = order < 0
		case "<=":
			ok = order <= 0
		case ">":
			ok = order > 0
		case ">=":
			ok = order >= 0
		}
		if ok {
			return true
		}
	}
	return false
}

// compareCells orders two values. Ids and labels that are written as numbers compare as numbers;
// text that stands for one number in two ways, such as 7 and 07, is not equal. It is false for
// values that do not compare.
func compareCells(a, b cell) (int, bool) {
	if a.kind == cellString && b.kind == cellString {
		if a.s == b.s {
			return 0, true
		}
		x, okX := number(a.s)
		y, okY := number(b.s)
		if okX && okY {
			if order := compareNumbers(x, y); order != 0 {
				return order, true
			}
		}
		return strings.Compare(a.s, b.s), true
	}
	x, okX := numeric(a)
	y, okY := numeric(b)
	if !okX || !okY || isNaN(x) || isNaN(y) {
		return 0, false
	}
	return compareNumbers(x, y), true
}

func isNaN(c cell) bool { return c.kind == cellFloat && c.f != c.f }

func compareNumbers(x, y cell) int {
	if x.kind == cellInt && y.kind == cellInt {
		return cmp.Compare(x.n, y.n)
	}
	return cmp.Compare(x.as(cellFloat).f, y.as(cellFloat).f)
}

func numeric(c cell) (cell, bool) {
	if c.kind == cellString {
		return number(c.s)
	}
	return c, c.kind != cellEmpty
}

// add takes one match.
func (o *matchOutput) add(vals matchValues, row int) error {
	q := o.m.q
	cells := make([]cell, len(q.items))
	var key strings.Builder
	for i := range q.items {
		if e := &q.items[i].matchExpr; e.aggregate == "" {
			cells[i] = vals.of(e, row)
			text := cells[i].as(cellString).s
			fmt.Fprintf(&key, "%d:%d:%s", cells[i].kind, len(text), text)
		}
	}
	if !o.grouped && !q.distinct {
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
	for i := range q.items {
		if e := &q.items[i].matchExpr; e.aggregate != "" {
			before := len(g.cells[i].s)
			err := g.add(i, e, vals, row)
			if more := len(g.cells[i].s) - before; err == nil && more > 0 {
				err = o.hold(nil, int64(more)) // the least or most is a longer text now
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// add counts a value into an aggregate; empty values do not count.
func (g *matchGroup) add(i int, e *matchExpr, vals matchValues, row int) error {
	if e.name == "*" {
		g.n[i]++
		return nil
	}
	v := vals.of(e, row)
	if v.kind == cellEmpty {
		return nil
	}
	switch e.aggregate {
	case "avg":
		x, ok := numeric(v)
		if !ok {
			return fmt.Errorf("%s: %s is no number", e.text, named(v.s))
		}
		g.sum[i] += x.as(cellFloat).f
	case "min", "max":
		order := orderCells(v, g.cells[i])
		switch {
		case g.n[i] == 0, isNaN(g.cells[i]): // NaN is the least and the most of nothing else
			g.cells[i] = v
		case !isNaN(v) && (order < 0) == (e.aggregate == "min") && order != 0:
			g.cells[i] = v
		}
	}
	g.n[i]++
	return nil
}

// emit shows a row, or keeps it where rows are sorted.
func (o *matchOutput) emit(cells []cell) error {
	q := o.m.q
	if q.order < 0 {
		return o.show(cells)
	}
	if err := o.hold(cells, sortedBytes); err != nil {
		return err
	}
	o.kept = append(o.kept, cells)
	return nil
}

func (o *matchOutput) show(cells []cell) error {
	if o.m.q.limit >= 0 && o.shown >= o.m.q.limit {
		o.done = true
		return nil
	}
	o.shown++
	vals := make([]any, len(cells))
	for i, c := range cells {
		switch c.kind {
		case cellInt:
			vals[i] = c.n
		case cellFloat:
			vals[i] = c.f
		case cellString:
			vals[i] = c.s
		}
	}
	return o.m.x.row(vals...)
}

// finish shows groups and sorted rows. Aggregates alone have a row even of no match.
func (o *matchOutput) finish(ctx context.Context) error {
	q := o.m.q
	if o.grouped {
		plain := slices.ContainsFunc(q.items, func(i matchItem) bool { return i.aggregate == "" })
		if len(o.order) == 0 && !plain {
			n := len(q.items)
			o.order = []*matchGroup{{make([]cell, n), make([]uint64, n), make([]float64, n)}}
		}
		for n, g := range o.order {
			if n%cancelEvery == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			for i, item := range q.items {
				switch {
				case item.aggregate == "count":
					g.cells[i] = cell{kind: cellInt, n: int64(g.n[i])}
				case item.aggregate == "avg" && g.n[i] > 0:
					g.cells[i] = cell{kind: cellFloat, f: g.sum[i] / float64(g.n[i])}
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

// sort puts the rows that are kept in order.
func (o *matchOutput) sort(ctx context.Context) error {
	by := o.m.q.order
	return pace.SortStableFunc(ctx, o.kept, func(a, b []cell) int {
		if o.m.q.desc {
			return orderCells(b[by], a[by])
		}
		return orderCells(a[by], b[by])
	})
}

// orderCells sorts numbers before NaN before text, and nothing last.
func orderCells(a, b cell) int {
	if order := cmp.Compare(rank(a), rank(b)); order != 0 {
		return order
	}
	order, _ := compareCells(a, b)
	return order
}

func rank(c cell) int {
	n, ok := numeric(c)
	switch {
	case ok && isNaN(n):
		return 1
	case ok:
		return 0
	case c.kind == cellString:
		return 2
	}
	return 3
}
