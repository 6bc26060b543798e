package ui

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html/template"
	"net/http"

	"gdb"
	"gdb/kv"
	"gdb/serve/web"
	"gdb/shell/lang"
	"gdb/train/report"
)

// nodeView is what the page of a node shows.
type nodeView struct {
	ID      string
	Picture template.HTML
	Tables  []nodeTable
}

// nodeTable is the answer to a statement about a node.
type nodeTable struct {
	Statement string
	Columns   []string
	Rows      [][]string
}

// node writes the neighborhood of a node, and its labels and neighbors.
func (p *site) node(ctx context.Context, out *bytes.Buffer, q *http.Request) error {
	v := &nodeView{ID: q.URL.Query().Get("id")}
	if v.ID == "" {
		return p.render(out, "node.html", "Node", v)
	}
	near, err := NeighborhoodOf(ctx, p.DB(), v.ID)
	if errors.Is(err, kv.ErrNotFound) {
		return p.noNode(ctx, v.ID)
	}
	if err != nil {
		return err
	}
	near.Link = nodeURL
	v.Picture = template.HTML(near.SVG())
	statements := []string{"NEIGHBORS " + lang.Literal(v.ID) + " IN LIMIT 50"}
	if p.DB().Meta().Labels != nil {
		statements = append(statements, "LABELS "+lang.Literal(v.ID))
	}
	for _, text := range statements {
		t := nodeTable{Statement: text}
		if err := p.Ask(ctx, text, func(answer *web.Table) error {
			t.Columns, t.Rows = answer.Columns, shown(answer.Rows)
			return nil
		}); err != nil {
			return err
		}
		v.Tables = append(v.Tables, t)
	}
	return p.render(out, "node.html", "Node "+shortened(v.ID), v)
}

// noNode returns the error of an id that no node has.
func (p *site) noNode(ctx context.Context, id string) error {
	meant, examples := p.DB().Alternatives(ctx, id)
	do := "name a node of the store"
	switch {
	case meant != "":
		do = fmt.Sprintf("did you mean %q?", shortened(meant))
	case len(examples) > 0:
		do = fmt.Sprintf("name a node as the source does, such as %q", shortened(examples[0]))
	}
	return web.NotFound("id", fmt.Sprintf("no node %q", shortened(id)), do)
}

// NeighborhoodOf draws a sample around a node, with classes of the nodes or, without classes, their
// types. The error of an id that no node has wraps kv.ErrNotFound.
func NeighborhoodOf(ctx context.Context, db *gdb.DB, id string) (*report.Neighborhood, error) {
	node, err := db.Node(ctx, id)
	if err != nil {
		return nil, err
	}
	return around(ctx, db, node)
}

// around draws a sample around a node.
func around(ctx context.Context, db *gdb.DB, node kv.NodeID) (*report.Neighborhood, error) {
	d, err := db.Sample(ctx, []kv.NodeID{node}, report.NeighborhoodFanout, 1, 0, 0)
	if err != nil {
		return nil, err
	}
	n := &report.Neighborhood{Lists: &d.Lists}
	if n.Names, err = db.External(ctx, d.NodeIDs); err != nil {
		return nil, err
	}
	n.Of, err = kinds(ctx, db, d.NodeIDs)
	return n, err
}

// kinds returns what each node is: its class or, without classes, its type; "" for nothing.
func kinds(ctx context.Context, db *gdb.DB, nodes []kv.NodeID) ([]string, error) {
	of, m := make([]string, len(nodes)), db.Meta()
	if m.Labels != nil && len(m.Labels.Classes) > 0 {
		labels, err := db.Labels(ctx, nodes)
		if err != nil {
			return nil, err
		}
		if labels.Classes != nil {
			for i, class := range labels.Classes {
				if class >= 0 {
					of[i] = m.Labels.Classes[class]
				}
			}
			return of, nil
		}
	}
	if m.Typed() {
		for i, v := range nodes {
			of[i] = m.NodeTypes[m.TypeOf(v)].Name
		}
	}
	return of, nil
}
