// Package match runs the statement MATCH, which finds patterns. A matcher begins at an anchored end
// of the pattern, a node or a split that the statement names, and extends matches hop by hop;
// matchOutput then filters, groups and sorts them.
package match

import (
	"context"
	"fmt"
	"strings"

	"gdb/shell/exec"
	"gdb/shell/lang"
)

// plan holds the operators of a MATCH, and a matcher for each end at which it could begin.
type plan struct {
	x        *exec.Execution
	matchers []*matcher // the first is used unless the ends are compared

	anchor   *exec.Find
	ends     *exec.Operator // nil if the search can begin at one end only
	hops     []exec.Lists
	anchors  *exec.Operator // finds the anchors except the first; nil without them
	names    exec.Names     // names, labels, features: without an operator if not asked for
	labels   *exec.Labels
	features exec.Features
	filter   *exec.Operator // nil without WHERE
	where    [][]condition
	root     *exec.Operator
}

// Plan plans a MATCH.
func Plan(x *exec.Execution) (*exec.Plan, error) {
	p := &plan{x: x}
	var err error
	if p.matchers, err = newMatchers(p); err != nil {
		return nil, err
	}
	m := p.matchers[0]
	w := whereMaker{meta: x.Graph.Meta(), note: x.Warn}
	if p.where, err = w.conditions(m.q.Where); err != nil {
		return nil, err
	}
	if len(m.q.Hops) > 0 {
		x.WarnApart()
	}
	if p.anchor, err = x.Find("anchor", anchorSet(&m.q.Nodes[0])); err != nil {
		return nil, err
	}
	op := p.anchor.Operator
	if len(p.matchers) > 1 && len(m.q.Hops) > 0 {
		p.ends = x.Operator("ends", "begins at the end with fewer neighbors", op.Rows, 2, op)
		op = p.ends
	}
	for i, h := range m.q.Hops {
		lists := x.Lists(fmt.Sprintf("expand %d", i+1),
			exec.Hop{Directions: m.dirs[i], Via: m.types[i]}, op)
		lists.Detail = m.hopDetail(i)
		if h.Most > 1 {
			lists.Rows, lists.Blocks = -1, -1
		}
		p.hops = append(p.hops, lists)
		op = lists.Operator
	}
	p.planOutput(m, op)
	return &exec.Plan{Root: p.root, Run: p.run}, nil
}

// planOutput plans what is done with the matches that in hands on.
func (p *plan) planOutput(m *matcher, in *exec.Operator) {
	x, op := p.x, in
	if behind := m.anchorsBehind(); len(behind) > 0 {
		p.anchors = x.Operator("anchors", strings.Join(behind, ", "), op.Rows,
			float64(len(behind)), op)
		op = p.anchors
	}
	if p.uses(m.q, propName) {
		p.names = exec.Names{Operator: x.Operator("names", "", op.Rows, -1, op)}
		op = p.names.Operator
	}
	if p.uses(m.q, propLabel) {
		p.labels = exec.NewLabels(x.Operator("labels", "", op.Rows, -1, op))
		op = p.labels.Operator
	}
	if p.uses(m.q, propFeature) {
		p.features = exec.Features{Operator: x.Operator("features", "", op.Rows, -1, op)}
		op = p.features.Operator
	}
	if len(p.where) > 0 {
		blocks := float64(lookups(p.where))
		if x.Graph.DenseIDs() {
			blocks = 0
		}
		p.filter = x.Operator("filter", "", -1, blocks, op)
		op = p.filter
	}
	p.root = x.Operator("return", "", -1, 0, op)
}

// uses reports whether properties of a kind are looked up.
func (p *plan) uses(q *lang.MatchQuery, kind propKind) (found bool) {
	is := func(e *lang.MatchExpr) bool { return e.Literal == nil && kindOf(e) == kind }
	for i := range q.Items {
		found = found || is(&q.Items[i].MatchExpr)
	}
	eachComparison(p.where, func(c *comparison) {
		found = found || c.by != byNode && (is(c.left) || is(c.right))
	})
	return found
}

// run begins at the anchor and extends matches from there.
func (p *plan) run(ctx context.Context) error {
	m := p.matchers[0]
	defer func() { m.free() }()
	if err := m.resolve(ctx); err != nil {
		return err
	}
	if p.filter != nil {
		err := p.filter.Run(ctx, func(ctx context.Context) error {
			return findNodes(ctx, p.x, p.where)
		})
		if err != nil {
			return err
		}
	}
	if p.ends != nil {
		var err error
		if m, err = m.narrower(ctx, p.matchers[1]); err != nil {
			return err
		}
	}
	m.out = newMatchOutput(m)
	if err := p.x.Hold("matches under way", m.stepBytes()); err != nil {
		return err
	}
	p.x.Header(m.out.columns()...)
	if err := m.begin(ctx); err != nil {
		return err
	}
	return m.out.finish(ctx)
}

// anchorSet returns the set of nodes that the pattern allows for a node.
func anchorSet(n *lang.MatchNode) lang.NodeSet {
	set := lang.NodeSet{Split: n.Split}
	if n.Ref != nil {
		set.IDs = lang.OneNode(*n.Ref)
	}
	return set
}
