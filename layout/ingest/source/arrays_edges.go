package source

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"gdb/internal/mem"
	"gdb/internal/tables"
	"gdb/layout/ingest/input"
)

// lane is a run of elements of an array that holds one column of the edges.
type lane struct {
	array         *tables.Array
	first, stride int64 // elements
}

// edgeArrays are the arrays of the edges, all checked to be of one length.
type edgeArrays struct {
	src, dst, typ lane // typ.array is nil if edges have no type
	weight, times *tables.Array
	edges         int64
	unit          string // what an edge is in src's file: "row" or "column"
}

func (s *arraySet) describeEdges() error {
	e := &edgeArrays{unit: "row"}
	if err := s.edgeLanes(e); err != nil {
		return err
	}
	if e.edges == 0 {
		return input.Wrong(e.src.array.Name, "", "there are no edges")
	}
	var typ *tables.Array
	for _, side := range []struct {
		what  string
		stems []string
		to    **tables.Array
	}{{"edge types", typeStems, &typ}, {"edge weights", weightStems, &e.weight},
		{"edge times", timeStems, &e.times}} {
		a, err := s.one(side.what, "", side.stems...)
		if err != nil {
			return err
		}
		if a != nil && a.Elements() != e.edges {
			return wrongShape(a, fmt.Sprintf("(%d,), one value for each edge", e.edges))
		}
		*side.to = a
	}
	if typ != nil {
		if e.typ.array != nil {
			return &input.Error{Where: typ.Name, Do: "remove one", What: "the edges have types " +
				"already, in " + e.typ.array.Name}
		}
		e.typ = lane{array: typ, stride: 1}
	}
	for _, a := range []*tables.Array{e.src.array, e.dst.array, e.typ.array, e.times} {
		if a != nil && !a.DType.Integer() {
			return wrongType(a, "integers")
		}
	}
	s.info.Edges, s.info.Typed = uint64(e.edges), e.typ.array != nil
	s.info.Weighted, s.info.Timed = e.weight != nil, e.times != nil
	// Without a number of nodes, ids are names: gaps between them are not nodes.
	s.info.RowIDs = s.nodesFrom != ""
	s.parts.edges = func(ctx context.Context, fn func(*EdgeChunk) error) error {
		return e.stream(ctx, s.parts, fn)
	}
	if s.info.Typed && s.dir != "" {
		return s.edgeTypeNames(s.fs.PathJoin(s.dir, "edge_types.tsv"))
	}
	return nil
}

// edgeLanes finds where sources and destinations are.
func (s *arraySet) edgeLanes(e *edgeArrays) (err error) {
	var a *tables.Array
	if s.opt.Edges != "" {
		a, err = s.given("--edges", s.opt.Edges)
	} else {
		found := s.find(func(stem string) bool { return stem == "src" || stem == "dst" })
		if a, err = s.one("edges", "--edges", edgeStems...); err == nil && a == nil {
			return s.separateLanes(e, found)
		}
		if err == nil && len(found) == 2 {
			return s.several("edges", "--edges", append(found, &namedArray{name: a.Name}))
		}
	}
	if err != nil {
		return err
	}
	typed := a.Stem == "edges_typed"
	return e.layout(a, typed)
}

// separateLanes takes src and dst.
func (s *arraySet) separateLanes(e *edgeArrays, found []*namedArray) (err error) {
	if len(found) != 2 || found[0].stem == found[1].stem {
		where := s.dir
		if where == "" && len(s.list) > 0 {
			where = s.list[0].name
		}
		return input.Wrong(where, "want edges.npy, edges_typed.npy, or src.npy and dst.npy; or "+
			"name a file with --edges", "no edges were found")
	}
	for _, n := range found {
		a, err := s.open(n)
		if err != nil {
			return err
		}
		if n.stem == "src" {
			e.src = lane{array: a, stride: 1}
		} else {
			e.dst = lane{array: a, stride: 1}
		}
	}
	e.edges = e.src.array.Elements()
	for _, l := range []lane{e.src, e.dst} {
		if len(l.array.Shape) != 1 || l.array.Elements() != e.edges {
			return wrongShape(l.array, "one value for each edge, as many in src as in dst")
		}
	}
	return nil
}

// layout decides how one array holds the edges: (E, 2), (2, E), and with types (E, 3), (3, E).
func (e *edgeArrays) layout(a *tables.Array, typed bool) error {
	want := int64(2)
	if typed {
		want = 3
	}
	if len(a.Shape) != 2 {
		return wrongShape(a, fmt.Sprintf("(E, %d) or (%d, E)", want, want))
	}
	rows, cols := a.Shape[0], a.Shape[1]
	if rows == want && cols == want {
		return wrongShape(a, fmt.Sprintf("a shape that tells rows from columns: %d edges can be "+
			"read both ways; give src.npy and dst.npy", want))
	}
	switch byColumn := rows == want; {
	case !byColumn && cols != want:
		err := wrongShape(a, fmt.Sprintf("(E, %d) or (%d, E)", want, want))
		if !typed && (cols == 3 || rows == 3) {
			err = wrongShape(a, "(E, 2) or (2, E); edges with a type belong in edges_typed.npy")
		}
		return err
	case byColumn == a.Fortran:
		// A Fortran (2, E) lies in the file as a C (E, 2) does.
		e.edges = rows * cols / want
		e.src, e.dst = lane{a, 0, want}, lane{a, 1, want}
		e.typ = lane{a, 2, want}
	default:
		e.edges = rows * cols / want
		e.src, e.dst = lane{a, 0, 1}, lane{a, e.edges, 1}
		e.typ = lane{a, 2 * e.edges, 1}
	}
	if rows == want {
		e.unit = "column"
	}
	if !typed {
		e.typ = lane{}
	}
	return nil
}

// edgeTypeNames reads the names of the types, if there is a file of them: number TAB name, where
// the name may be several fields.
func (s *arraySet) edgeTypeNames(file string) error {
	if _, err := s.fs.Stat(file); err != nil {
		return nil
	}
	head, all, err := input.TextHead(s.fs, file, 1<<20)
	if err != nil {
		return err
	}
	rows := input.TextRows(head, all, input.Format{Delim: '\t'}, EdgeTypesMost)
	for i, row := range rows {
		if len(row) < 2 || row[0] != fmt.Sprint(i) {
			s.note("%s does not number edge types from 0, so they go by their numbers", file)
			s.info.EdgeTypes = nil
			return nil
		}
		s.info.EdgeTypes = append(s.info.EdgeTypes, edgeTypeName(row))
	}
	s.info.Paths = append(s.info.Paths, file)
	return nil
}

// edgeTypeName joins source type, relation and destination type; a count may follow.
func edgeTypeName(row []string) string {
	if len(row) >= 4 {
		return strings.Join(row[1:4], ":")
	}
	return row[1]
}

// stream reads the lanes in parallel.
func (e *edgeArrays) stream(ctx context.Context, s *parts, fn func(*EdgeChunk) error) (err error) {
	r := edgeArrayReader{edgeArrays: e, s: s, nodes: s.info.Nodes}
	defer func() { err = errors.Join(err, arrayStreams(r.streams[:]).close()) }()
	if err := r.open(); err != nil {
		return err
	}
	for first := int64(0); first < e.edges; first += chunkRows {
		n := int(min(chunkRows, e.edges-first))
		r.chunk.First = first
		if err := r.read(ctx, n); err != nil {
			return err
		}
		if err := fn(&r.chunk); err != nil {
			return err
		}
	}
	return nil
}

// edgeArrayReader is one pass over the edges.
type edgeArrayReader struct {
	*edgeArrays
	s       *parts
	nodes   uint64            // 0: not known
	streams [5]*tables.Stream // src, dst, type, weight, time; src holds all if they are interleaved
	chunk   EdgeChunk
	types   []uint64
	doubles []float64
}

func (r *edgeArrayReader) interleaved() bool { return r.src.stride > 1 }

func (r *edgeArrayReader) open() (err error) {
	lanes := [5]lane{r.src, r.dst, r.typ, {array: r.weight}, {array: r.times}}
	if r.interleaved() {
		lanes[1].array = nil
		if r.typ.array == r.src.array {
			lanes[2].array = nil
		}
	}
	for i, l := range lanes {
		if l.array != nil {
			if r.streams[i], err = l.array.Stream(l.first); err != nil {
				return err
			}
		}
	}
	r.chunk.Where = Where{File: r.src.array.Name, Unit: r.unit}
	return nil
}

func (r *edgeArrayReader) read(ctx context.Context, n int) error {
	c := &r.chunk
	c.SrcInt, c.DstInt = mem.Sized(c.SrcInt, n), mem.Sized(c.DstInt, n)
	b, err := r.streams[0].Next(ctx, n*int(r.src.stride))
	if err != nil {
		return err
	}
	d := r.src.array.DType
	src := d.IDs(c.SrcInt, b, 0, int(r.src.stride))
	dst, typ := -1, -1
	if r.interleaved() {
		dst = d.IDs(c.DstInt, b, 1, int(r.dst.stride))
	} else {
		if b, err = r.streams[1].Next(ctx, n); err != nil {
			return err
		}
		dst = r.dst.array.DType.IDs(c.DstInt, b, 0, 1)
	}
	if r.typ.array != nil {
		r.types = mem.Sized(r.types, n)
		if r.streams[2] == nil {
			typ = d.IDs(r.types, b, 2, int(r.typ.stride))
		} else {
			if b, err = r.streams[2].Next(ctx, n); err != nil {
				return err
			}
			typ = r.typ.array.DType.IDs(r.types, b, 0, 1)
		}
	}
	if err := r.check(src, dst, typ); err != nil {
		return err
	}
	return r.readPayload(ctx, n)
}

// check refuses ids that are negative (the first one at src, dst or typ, if not -1), or too large.
func (r *edgeArrayReader) check(src, dst, typ int) error {
	c := &r.chunk
	if src >= 0 {
		return r.badID(c.SrcInt, src, "source", r.src.array)
	}
	if dst >= 0 {
		return r.badID(c.DstInt, dst, "destination", r.dst.array)
	}
	if r.nodes > 0 {
		var most uint64
		for i, v := range c.SrcInt {
			most = max(most, v, c.DstInt[i])
		}
		for i := 0; most >= r.nodes; i++ {
			if c.SrcInt[i] >= r.nodes {
				return r.badID(c.SrcInt, i, "source", r.src.array)
			}
			if c.DstInt[i] >= r.nodes {
				return r.badID(c.DstInt, i, "destination", r.dst.array)
			}
		}
	}
	if r.typ.array == nil {
		return nil
	}
	c.TypeInt = mem.Sized(c.TypeInt, len(r.types))
	for i, v := range r.types {
		if typ >= 0 && int64(v) < 0 || v > math.MaxUint32 {
			return r.badID(r.types, i, "type", r.typ.array)
		}
		c.TypeInt[i] = uint32(v)
	}
	return nil
}

func (r *edgeArrayReader) badID(ids []uint64, i int, what string, a *tables.Array) error {
	where := r.chunk.Where
	where.File = a.Name
	if a.DType.Kind != 'i' && what == "type" {
		return input.Wrong(where.Position(i), "", "type %d is too large", ids[i])
	}
	return r.s.outOfRange(where.Position(i), what, ids[i], a.DType.Kind == 'i')
}

func (r *edgeArrayReader) readPayload(ctx context.Context, n int) error {
	c := &r.chunk
	if r.weight != nil {
		b, err := r.streams[3].Next(ctx, n)
		if err != nil {
			return err
		}
		if err := r.takeWeights(n, b); err != nil {
			return err
		}
	}
	if r.times != nil {
		b, err := r.streams[4].Next(ctx, n)
		if err != nil {
			return err
		}
		r.types, c.Time = mem.Sized(r.types, n), mem.Sized(c.Time, n)
		r.times.DType.IDs(r.types, b, 0, 1)
		for i, v := range r.types {
			if c.Time[i] = int64(v); c.Time[i] < 0 && r.times.DType.Kind == 'u' {
				return input.Wrong(fmt.Sprintf("%s row %d", r.times.Name, c.First+int64(i)),
					"times are signed integers of 64 bits", "time %d is too large", v)
			}
		}
	}
	return nil
}

// takeWeights makes the weights of the chunk of the n elements b.
func (r *edgeArrayReader) takeWeights(n int, b []byte) error {
	c, d := &r.chunk, r.weight.DType
	row := func(i int) string { return fmt.Sprintf("%s row %d", r.weight.Name, c.First+int64(i)) }
	c.Weight, c.Rounded = mem.Sized(c.Weight, n), RoundedWeights{}
	d.Floats(c.Weight, b)
	if i := firstNotFinite(c.Weight); i >= 0 {
		written, what := d.AppendText(nil, b, i), "weight %s is not a finite number"
		if string(written) != fmt.Sprint(c.Weight[i]) {
			what += " of float32"
		}
		return input.Wrong(row(i), "", what, written)
	}
	if d.Size < 4 || d.Kind == 'f' && d.Size == 4 {
		return nil // float32 holds all numbers of the type
	}
	r.doubles = mem.Sized(r.doubles, n)
	d.Doubles(r.doubles, b)
	for i, v := range r.doubles {
		if !input.MayRound(v) {
			continue
		}
		if written := d.AppendText(nil, b, i); input.Rounds(written) {
			c.Rounded.add(func() string { return row(i) }, written, c.Weight[i])
		}
	}
	return nil
}
