package engine

import (
	"reflect"
	"slices"
	"strconv"

	"gdb/shell/cypher/adjacency"
	"gdb/shell/cypher/ast"
	"gdb/shell/cypher/vector"
)

// pattern is the graph that some MATCH clauses look for.
type pattern struct {
	nodes []*node
	rels  []*rel
	// cross are conditions that are computed as soon as all their variables are there, and last
	// those that may fail, and so are computed for whole matches only.
	cross, last []*condition
	byName      map[string]int // nodes
	relByName   map[string]int
	in          *input     // nil if the pattern begins a statement
	shortest    *distances // nil if the pattern is not of distances
	// grouped says that rows are only grouped, each as often as it counts.
	grouped bool
}

// node is a variable for nodes.
type node struct {
	name    string // of the statement, or one that no statement can have
	named   bool
	labels  []string
	set     Set
	filters []ast.Expr // conditions of this node alone
	anchor  []uint32   // the only nodes that it can be, if anchored
	anchored,
	needed bool // its values are wanted
	check *check
	gone  bool // counted by a factor
	outer bool // of OPTIONAL MATCH: it need not be there
	// bound says that rows of the clauses before have the node, and matched that a bound one is in
	// the pattern, where it is not null.
	bound, matched bool
	at             ast.At // in the statement
	// by is what a property of the node must equal that finds it, for each row: key.
	by  ast.Expr
	key string
}

// rel is a variable for relationships.
type rel struct {
	name       string
	from, to   int  // nodes, in the direction of the edge
	undirected bool // either way
	types      []string
	clause     int
	needed     bool
	outer      bool
	// owner is the node in whose lists it is looked for, and side their direction, seen from there.
	// It is set when a plan says from which end the relationship is followed.
	owner   int
	side    ast.Direction
	outline *adjacency.Outline
	lists   *adjacency.Lists // nil if they are read for the rows of each batch
	turn    *adjacency.Lists // those of a range of nodes that take turns
	id      int              // of the lists of a worker
	squares [3]float64       // of lists in memory, by side; 0 if they have not been asked for
}

// other returns the end that is not the owner.
func (r *rel) other() int { return r.from + r.to - r.owner }

// condition is a part of WHERE.
type condition struct {
	x     ast.Expr
	nodes []int
	rels  []int
	// unequal says that the condition is that nodes[0] and nodes[1] differ.
	unequal bool
	// edge is the relationship that nodes[0] and nodes[1] must have, or must not have.
	edge *rel
	not  bool
}

// newPattern returns the pattern of some clauses before another, for rows of an input if it is not
// nil; false if the engine does not run one of them.
func newPattern(clauses []*ast.Match, in *input, next ast.Clause) (*pattern, bool) {
	p := &pattern{byName: map[string]int{}, relByName: map[string]int{}, in: in}
	p.bind()
	for i, m := range clauses {
		if len(clauses) == 1 && p.distances(m, next) {
			break
		}
		nodes, rels := len(p.nodes), len(p.rels)
		for _, path := range m.Patterns {
			if path.Name != "" || path.Shortest != "" || !p.path(path, i) {
				return nil, false
			}
		}
		if m.Optional && i > 0 && !p.optional(nodes, rels) {
			return nil, false
		}
	}
	for i, m := range clauses {
		if m.Where == nil {
			continue
		}
		for _, x := range ast.Conjuncts(m.Where) {
			if !p.condition(x) || m.Optional && i > 0 && !p.own(x) {
				return nil, false
			}
		}
	}
	return p, true
}

// optional marks what OPTIONAL MATCH has added: nodes and relationships from some number on. It is
// false if these do not hang together at one node of what was there before.
func (p *pattern) optional(nodes, rels int) bool {
	joins := 0
	for _, r := range p.rels[rels:] {
		r.outer = true
		if r.from < nodes || r.to < nodes {
			joins++
		}
	}
	for _, n := range p.nodes[nodes:] {
		n.outer = true
	}
	return joins == 1 && len(p.rels)-rels == len(p.nodes)-nodes
}

// own reports whether a condition of OPTIONAL MATCH is of one node that it adds.
func (p *pattern) own(x ast.Expr) bool {
	if !p.safe(x) {
		return false
	}
	n := -1
	for name := range names(x) {
		i, ok := p.byName[name]
		if !ok || n >= 0 || !p.nodes[i].outer {
			return false
		}
		n = i
	}
	return n >= 0
}

// path adds a path of a clause.
func (p *pattern) path(path *ast.Pattern, clause int) bool {
	at, ok := p.node(path.Nodes[0])
	if !ok {
		return false
	}
	for i, r := range path.Rels {
		next, ok := p.node(path.Nodes[i+1])
		if !ok || r.Variable {
			return false
		}
		if at == next && !p.itself(&next) {
			return false
		}
		name := r.Name
		if _, twice := p.relByName[name]; name != "" && (twice || p.in.has(name)) {
			return false
		}
		if name == "" {
			name = hidden + "r" + strconv.Itoa(len(p.rels))
		}
		x := &rel{name: name, from: at, to: next, undirected: r.Dir == ast.Both, types: r.Types,
			clause: clause}
		if r.Dir == ast.In {
			x.from, x.to = next, at
		}
		p.relByName[name] = len(p.rels)
		p.rels = append(p.rels, x)
		if !p.props(name, r.Props) {
			return false
		}
		at = next
	}
	return true
}

// itself adds a node that equals another, for a relationship of that with itself.
func (p *pattern) itself(n *int) bool {
	is, name := p.nodes[*n], hidden+"n"+strconv.Itoa(len(p.nodes))
	p.byName[name] = len(p.nodes)
	*n = len(p.nodes)
	p.nodes = append(p.nodes, &node{name: name, at: is.at})
	return p.condition(&ast.Compare{At: is.at, Ops: []string{"="},
		Xs: []ast.Expr{&ast.Var{Name: is.name}, &ast.Var{Name: name}}})
}

// hidden is what names begin with that no statement can have.
const hidden = "\x00"

// node returns the number of a node of a path.
func (p *pattern) node(n *ast.Node) (int, bool) {
	name := n.Name
	if name == "" {
		name = hidden + "n" + strconv.Itoa(len(p.nodes))
	}
	i, ok := p.byName[name]
	if !ok {
		i = len(p.nodes)
		p.byName[name] = i
		p.nodes = append(p.nodes, &node{name: name, named: n.Name != "", bound: p.in.has(name)})
	}
	p.nodes[i].matched, p.nodes[i].at = p.nodes[i].bound, n.At
	p.nodes[i].labels = append(p.nodes[i].labels, n.Labels...)
	return i, p.props(name, n.Props)
}

// props adds the properties of a pattern as conditions.
func (p *pattern) props(name string, props ast.Expr) bool {
	if props == nil {
		return true
	}
	m, ok := props.(*ast.Map)
	if !ok {
		return false
	}
	for i, key := range m.Keys {
		x := &ast.Compare{At: m.At, Ops: []string{"="}, Xs: []ast.Expr{
			&ast.Prop{At: m.At, Of: &ast.Var{At: m.At, Name: name}, Key: key}, m.Values[i]}}
		if !p.condition(x) {
			return false
		}
	}
	return true
}

// condition adds a condition where it belongs.
func (p *pattern) condition(x ast.Expr) bool {
	c := &condition{x: x}
	rows := false // whether it reads what rows of clauses before have
	for name := range names(x) {
		if i, ok := p.byName[name]; ok {
			rows = rows || p.nodes[i].bound
			c.nodes = append(c.nodes, i)
		} else if i, ok := p.relByName[name]; ok {
			c.rels = append(c.rels, i)
			c.nodes = append(c.nodes, p.rels[i].from, p.rels[i].to)
		} else {
			rows = rows || p.in.has(name)
		}
	}
	slices.Sort(c.nodes)
	c.nodes = slices.Compact(c.nodes)
	slices.Sort(c.rels)
	if h, ok := x.(*ast.HasLabels); ok && len(c.nodes) == 1 && len(c.rels) == 0 {
		if _, ok := h.X.(*ast.Var); ok {
			p.nodes[c.nodes[0]].labels = append(p.nodes[c.nodes[0]].labels, h.Labels...)
			return true
		}
	}
	if p.adjacent(c) {
		p.cross = append(p.cross, c)
		return true
	}
	switch {
	case !p.safe(x):
		p.last = append(p.last, c)
	case len(c.nodes) == 1 && len(c.rels) == 0 && !rows:
		n := p.nodes[c.nodes[0]]
		n.filters = append(n.filters, x)
	default:
		c.unequal = isUnequal(x) && len(c.nodes) == 2 && len(c.rels) == 0 && !p.mayBeNull(c.nodes)
		p.cross = append(p.cross, c)
	}
	return true
}

// isUnequal reports whether x says that two variables differ.
func isUnequal(x ast.Expr) bool {
	c, ok := x.(*ast.Compare)
	if !ok || len(c.Ops) != 1 || c.Ops[0] != "<>" {
		return false
	}
	_, l := c.Xs[0].(*ast.Var)
	_, r := c.Xs[1].(*ast.Var)
	return l && r
}

// adjacent reports whether a condition is that two nodes have a relationship, or have none, and
// fills it in.
func (p *pattern) adjacent(c *condition) bool {
	x := c.x
	if u, ok := x.(*ast.Unary); ok && u.Op == "NOT" {
		x, c.not = u.X, true
	}
	e, ok := x.(*ast.Exists)
	if !ok || e.Query != nil || e.Match == nil || e.Match.Where != nil ||
		len(e.Match.Patterns) != 1 {
		return false
	}
	path := e.Match.Patterns[0]
	if len(path.Rels) != 1 || path.Name != "" || path.Shortest != "" {
		return false
	}
	r := path.Rels[0]
	if r.Variable || r.Name != "" || r.Props != nil {
		return false
	}
	var ends [2]int
	for i, n := range path.Nodes {
		at, ok := p.byName[n.Name]
		if !ok || n.Name == "" || len(n.Labels) > 0 || n.Props != nil {
			return false
		}
		ends[i] = at
	}
	if ends[0] == ends[1] {
		return false
	}
	c.edge = &rel{from: ends[0], to: ends[1], undirected: r.Dir == ast.Both, types: r.Types,
		clause: -1}
	if r.Dir == ast.In {
		c.edge.from, c.edge.to = ends[1], ends[0]
	}
	return true
}

// safe reports whether a condition cannot fail, so that it may be computed for nodes that are in no
// match.
func (p *pattern) safe(x ast.Expr) bool {
	if vector.Constant(x) {
		switch x.(type) {
		case *ast.Literal, *ast.Param, *ast.Call:
			return true
		}
	}
	switch x := x.(type) {
	case *ast.Compare:
		return !slices.ContainsFunc(x.Xs, func(x ast.Expr) bool { return !p.safeValue(x) })
	case *ast.IsNull:
		return p.safeValue(x.X)
	case *ast.HasLabels:
		return p.entity(x.X)
	case *ast.Unary:
		return x.Op == "NOT" && p.safe(x.X)
	case *ast.Binary:
		switch x.Op {
		case "AND", "OR", "XOR":
			return p.safe(x.L) && p.safe(x.R)
		case "STARTS WITH", "ENDS WITH", "CONTAINS":
			return p.safeValue(x.L) && p.safeValue(x.R)
		case "IN":
			_, ok := x.R.(*ast.List)
			return ok && p.safeValue(x.L) && vector.Constant(x.R)
		}
	}
	return false
}

// safeValue reports whether x is a value that is always there.
func (p *pattern) safeValue(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.Var:
		return true
	case *ast.Prop:
		return p.entity(x.Of)
	case *ast.Call:
		if x.Name == "id" && len(x.Args) == 1 {
			return p.entity(x.Args[0])
		}
	}
	return vector.Constant(x)
}

// entity reports whether x is a node or a relationship of the pattern, or null.
func (p *pattern) entity(x ast.Expr) bool {
	v, ok := x.(*ast.Var)
	if !ok {
		return false
	}
	_, node := p.byName[v.Name]
	_, rel := p.relByName[v.Name]
	return node || rel
}

// names returns the names of all variables in a part of a statement, also in its patterns.
func names(x any) map[string]bool {
	out := map[string]bool{}
	collect(reflect.ValueOf(x), out)
	return out
}

func collect(v reflect.Value, out map[string]bool) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return
		}
		switch x := v.Interface().(type) {
		case *ast.Var:
			out[x.Name] = true
			return
		case *ast.Node:
			out[x.Name] = true
		case *ast.Rel:
			out[x.Name] = true
		}
		collect(v.Elem(), out)
	case reflect.Struct:
		for i := range v.NumField() {
			collect(v.Field(i), out)
		}
	case reflect.Slice:
		for i := range v.Len() {
			collect(v.Index(i), out)
		}
	}
}
