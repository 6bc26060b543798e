package query

import (
	"context"
	"errors"
	"fmt"

	"gdb/internal/pace"
	"gdb/layout"
	"gdb/layout/algorithm"
	"gdb/layout/listfile"
	"gdb/layout/topology"
	"gdb/shell/cypher/store"
	"gdb/shell/exec"
	"gdb/shell/words"
)

// wholeGraph is a procedure that gives nodes a value each, computed from all lists.
type wholeGraph struct {
	name, help, in, value string
	compute               func(ctx context.Context, g *algorithm.Graph,
		args []any) (*algorithm.Column, error)
}

// wholeGraphs lists them.
var wholeGraphs = []wholeGraph{
	{"gdb.components", "number of the component that a node is in", "", "INTEGER",
		func(ctx context.Context, g *algorithm.Graph, _ []any) (*algorithm.Column, error) {
			return algorithm.Components(ctx, g)
		}},
	{"gdb.pagerank", "share of time of random walks at a node", "|damping FLOAT", "FLOAT",
		func(ctx context.Context, g *algorithm.Graph, args []any) (*algorithm.Column, error) {
			damping, _ := args[0].(float64)
			if args[0] != nil && damping == 0 {
				return nil, errors.New("damping 0: it is between 0 and 1")
			}
			return algorithm.PageRank(ctx, g, algorithm.RankOptions{Damping: damping})
		}},
	{"gdb.triangles", "how many triangles a node is in", "", "INTEGER",
		func(ctx context.Context, g *algorithm.Graph, _ []any) (*algorithm.Column, error) {
			return algorithm.Triangles(ctx, g)
		}},
	{"gdb.kcore", "greatest k of a k-core that a node is in", "", "INTEGER",
		func(ctx context.Context, g *algorithm.Graph, _ []any) (*algorithm.Column, error) {
			return algorithm.Cores(ctx, g)
		}},
	{"gdb.labelpropagation", "number of the community that a node is in", "", "INTEGER",
		func(ctx context.Context, g *algorithm.Graph, _ []any) (*algorithm.Column, error) {
			return algorithm.Labels(ctx, g)
		}},
	{"gdb.distances", "edges of a shortest way to each node", "from NODE",
		"INTEGER",
		func(ctx context.Context, g *algorithm.Graph, args []any) (*algorithm.Column, error) {
			return algorithm.Distances(ctx, g, args[0].(layout.NodeID))
		}},
	{"gdb.shortestPaths", "least sum of weights of ways to each node",
		"from NODE, weight STRING", "FLOAT",
		func(ctx context.Context, g *algorithm.Graph, args []any) (*algorithm.Column, error) {
			return algorithm.ShortestPaths(ctx, g, args[0].(layout.NodeID))
		}},
}

func (p wholeGraph) procedure() store.Procedure {
	return store.Procedure{Name: p.name, Help: p.help,
		Signature: signature(p.in, "node NODE, value "+p.value),
		Run: func(ctx context.Context, x *exec.Execution, args []any,
			yield func([]any) error) (err error) {
			g := wholeOf(x)
			g.Deleted, err = x.Graph.Deleted(ctx)
			if err == nil && len(args) == 2 {
				err = checkWeight(x, args[1].(string))
			}
			var c *algorithm.Column
			if err == nil {
				c, err = p.compute(ctx, g, args)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			defer func() { err = errors.Join(err, c.Free()) }()
			x.Note("%s: %s", p.name, c.Note)
			var steps pace.Steps
			for v := range layout.NodeID(g.Nodes) {
				if value := c.At(v); value != nil {
					if err := yield([]any{v, value}); err != nil {
						return err
					}
				}
				if err := steps.Took(ctx, 1); err != nil {
					return err
				}
			}
			return nil
		}}
}

// wholeOf returns the store as algorithms read it.
func wholeOf(x *exec.Execution) *algorithm.Graph {
	g := x.Graph
	m := g.Meta()
	return &algorithm.Graph{Nodes: m.Nodes, Undirected: m.Undirected,
		Budget: g.Budget, Threads: g.Threads,
		Scan: func(ctx context.Context,
			fn func(layout.NodeID, bool, *listfile.Lists) error) error {
			if len(g.Store.Levels()) == 0 {
				return listfile.ScanTogether(ctx, g.Store, g.Dev, layout.In, fn)
			}
			t, err := g.Topology(ctx, layout.In)
			if err != nil {
				return err
			}
			return topology.ScanOpen(ctx, t, fn)
		}}
}

// checkWeight returns an error if edges do not have a weight of a name.
func checkWeight(x *exec.Execution, name string) error {
	switch {
	case !x.Graph.Meta().Weighted:
		return errors.New("the edges of this store have no weights: ingest them with " +
			"--weight-col NAME; gdb.distances counts edges")
	case name != "weight":
		return fmt.Errorf("ways are measured by 'weight', not by %s%s", words.Quoted(name),
			words.Near(name, []string{"weight"}))
	}
	return nil
}
