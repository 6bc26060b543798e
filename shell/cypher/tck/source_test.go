package tck

import (
	"context"
	"slices"

	"gdb/internal/mem"
	"gdb/shell/cypher/adjacency"
	"gdb/shell/cypher/ast"
	"gdb/shell/cypher/engine"
	"gdb/shell/cypher/value"
	"gdb/shell/cypher/vector"
)

// source is a graph in memory as package engine reads it.
type source struct {
	*memory
	types []string
	// reads is how many bytes of lists are read at once; 0 if lists are in memory.
	reads int64
	// oneWay says that in-lists alone can be read.
	oneWay bool
}

func newSource(g *memory, reads int64) *source {
	s := &source{memory: g, reads: reads}
	for _, r := range g.rels {
		if r.Type != "" {
			s.types = append(s.types, r.Type)
		}
	}
	slices.Sort(s.types)
	s.types = slices.Compact(s.types)
	return s
}

func (s *source) Nodes() uint64                                  { return uint64(len(s.labels)) }
func (s *source) Undirected() bool                               { return false }
func (s *source) Unique(key string, _ engine.Set) bool           { return key == "i" }
func (s *source) Types(names []string, _, _ engine.Set) []string { return names }
func (s *source) Threads() int                                   { return 3 }
func (s *source) Grow(int64) error                               { return nil }
func (s *source) all() []engine.Range {
	if len(s.labels) == 0 {
		return nil
	}
	return []engine.Range{{From: 0, End: uint32(len(s.labels))}}
}

func (s *source) Labeled(labels []string) (engine.Set, bool) {
	out := engine.Set{Ranges: s.all()}
	if len(labels) > 0 {
		out.Bits = make([]uint64, len(s.labels)/64+1)
	}
	for i, has := range s.labels {
		if len(labels) > 0 && !slices.ContainsFunc(labels, func(l string) bool {
			return !slices.Contains(has, l)
		}) {
			out.Bits[i/64] |= 1 << (i % 64)
		}
	}
	return out, true
}

func (s *source) Ends([]string) (from, to engine.Set) {
	return engine.Set{Ranges: s.all()}, engine.Set{Ranges: s.all()}
}

// Find finds nodes by integers as their property i.
func (s *source) Find(_ context.Context, _ []string, key string, v any) (out []uint32, ok bool,
	err error) {
	if _, ok := v.(int64); !ok || key != "i" {
		return nil, false, nil
	}
	for i, of := range s.props {
		if of[key] == v {
			out = append(out, uint32(i))
		}
	}
	return out, true, nil
}

// number returns which of the relationships with the same ends and type a relationship is.
func (s *source) number(r value.Rel) (n int64) {
	for _, o := range s.rels[:r.ID] {
		if o.From == r.From && o.To == r.To && o.Type == r.Type {
			n++
		}
	}
	return n
}

func (s *source) Rel(e vector.Edge) value.Rel {
	for _, r := range s.rels {
		if r.From == int64(e.From) && r.To == int64(e.To) && r.Type == s.types[e.Type] &&
			s.number(r) == int64(e.Number) {
			return r
		}
	}
	panic("no such relationship")
}

func (s *source) Free() int64 {
	if s.reads == 0 {
		return 1 << 20
	}
	return s.reads * 30
}
func (s *source) InMemory([]engine.Want, float64) bool { return s.reads == 0 }

func (s *source) Outline(dir ast.Direction, types []string) *adjacency.Outline {
	if s.oneWay && dir != ast.In {
		return nil
	}
	return &adjacency.Outline{Entries: uint64(len(s.rels)), Loops: true, Multi: true, Told: true,
		Most: uint32(max(len(s.labels), 1) - 1), TypeBits: 4}
}

// Read reads lists as Lists has them. There is room for few.
func (s *source) Read(ctx context.Context, w engine.Want, nodes []uint32, into *adjacency.Lists,
	_ int64) error {
	all, err := s.Lists(ctx, w.Dir, w.Types)
	if err != nil {
		return err
	}
	if err := into.Begin(nodes, free); err != nil {
		return err
	}
	numbers := []uint32{}
	for i, v := range nodes {
		lo, hi := all.Of(v)
		if n := int64(len(into.Nbr)) + int64(hi-lo); i > 0 && n > s.reads {
			return &mem.LimitError{What: "lists", Want: n, Limit: s.reads}
		}
		if err := into.Room(int(hi-lo), true, free); err != nil {
			return err
		}
		for k := lo; k < hi; k++ {
			n, back := all.NumberOf(k)
			if n *= 2; back {
				n++
			}
			numbers = append(numbers, n)
			into.Nbr, into.Typ = append(into.Nbr, all.Nbr[k]), append(into.Typ, all.TypeOf(k))
		}
		into.Until(i)
	}
	into.Num = append(into.Num, numbers...)
	return into.Finish(ctx, free)
}

// ReadRange reads the lists of one or two nodes; of in-lists always one.
func (s *source) ReadRange(ctx context.Context, w engine.Want, of engine.Range, _ int64) (
	*adjacency.Lists, error) {
	l, err := s.Lists(ctx, w.Dir, w.Types)
	if err != nil {
		return nil, err
	}
	l.First, l.End = of.From, min(of.From+1+of.From%2, of.End)
	if w.Dir == ast.In {
		l.End = of.From + 1
	}
	l.Off = l.Off[l.First : l.End+1]
	return l, nil
}

func (s *source) Holds() func() { return func() {} }

func free(int64) error { return nil }

func (s *source) Lists(ctx context.Context, dir ast.Direction, types []string) (*adjacency.Lists,
	error) {
	grow := free
	if dir == ast.Both {
		out, err := s.Lists(ctx, ast.Out, types)
		if err != nil {
			return nil, err
		}
		in, err := s.Lists(ctx, ast.In, types)
		if err != nil {
			return nil, err
		}
		return adjacency.Both(ctx, out, in, grow)
	}
	b, err := adjacency.NewBuilder(0, uint32(len(s.labels)), true, grow)
	if err != nil {
		return nil, err
	}
	for v := range s.labels {
		for _, r := range s.rels {
			if r.Type == "" || len(types) > 0 && !slices.Contains(types, r.Type) {
				continue
			}
			owner, nbr := r.From, r.To
			if dir == ast.In {
				owner, nbr = nbr, owner
			}
			if owner == int64(v) {
				typ := uint16(slices.Index(s.types, r.Type))
				if err := b.Add(uint32(owner), uint32(nbr), typ); err != nil {
					return nil, err
				}
			}
		}
	}
	return b.Lists(ctx)
}

// Property writes values of one kind as such, so that all kinds are computed with.
func (s *source) Property(_ context.Context, of *vector.Vector, key string,
	out *vector.Vector) (bool, error) {
	var props []value.Map
	for _, v := range of.Nodes {
		if v == vector.NoNode {
			return false, nil
		}
		props = append(props, s.props[v])
	}
	for _, e := range of.Edges {
		props = append(props, s.of[s.Rel(e).ID])
	}
	kind := vector.Any
	for i, p := range props {
		k := vector.Any
		switch p[key].(type) {
		case nil:
			if i > 0 {
				k = kind
			}
		case int64:
			k = vector.Int
		case float64:
			k = vector.Float
		case string:
			k = vector.String
		case bool:
			k = vector.Bool
		default:
			return false, nil
		}
		if i > 0 && k != kind {
			return false, nil
		}
		kind = k
	}
	out.Reset(kind)
	for _, p := range props {
		x := p[key]
		out.Null = append(out.Null, x == nil)
		n, _ := x.(int64)
		f, _ := x.(float64)
		t, _ := x.(string)
		b, isBool := x.(bool)
		out.Ints, out.Floats, out.Strings = append(out.Ints, n), append(out.Floats, f),
			append(out.Strings, t)
		tri := value.Null
		if isBool {
			tri = value.Of(b)
		}
		out.Tris, out.Anys = append(out.Tris, tri), append(out.Anys, x)
	}
	return true, nil
}
