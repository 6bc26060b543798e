package web

import (
	"context"
	"net/http"
)

// nothing is what a request has that asks for one thing only.
type nothing struct{}

// info describes what is served.
type info struct {
	Version   string    `json:"version"`
	Snapshot  uint64    `json:"snapshot" jsonschema:"counts commits and compactions of the store"`
	Nodes     uint64    `json:"nodes" jsonschema:"without deleted ones"`
	Edges     uint64    `json:"edges"`
	NodeTypes []string  `json:"node_types,omitempty"`
	EdgeTypes []string  `json:"edge_types,omitempty"`
	Features  int       `json:"features,omitempty" jsonschema:"values in the row of a node"`
	Labels    []string  `json:"labels,omitempty"`
	Runs      []runInfo `json:"runs"`

	// Columns holds, by type of nodes and by the name of a column of its table, the column's type.
	Columns map[string]map[string]string `json:"columns,omitempty"`
}

// runInfo describes a run that is served.
type runInfo struct {
	Name     string `json:"name"`
	Predicts string `json:"predicts" jsonschema:"nodes or links"`
	NewNodes bool   `json:"new_nodes,omitempty" jsonschema:"it predicts new nodes too"`
	Columns  bool   `json:"columns,omitempty" jsonschema:"new nodes have columns, and no features"`
	// Calibrated says that the run has a temperature.
	Calibrated bool `json:"calibrated,omitempty" jsonschema:"it takes calibrated"`
}

func infoEndpoint() *endpoint {
	return typed(endpoint{method: http.MethodGet, path: "/info", name: "info",
		about: "Describe the graph and the runs that are served.",
	}, func(ctx context.Context, r *request, _ *nothing) (*info, error) {
		m := r.db.Meta()
		out := &info{Version: r.opt.Version, Snapshot: m.Snapshot, Nodes: m.Nodes, Edges: m.Edges,
			EdgeTypes: m.EdgeTypes,
			Runs:      []runInfo{}}
		deleted, err := r.opt.Store.Deleted(ctx)
		if err != nil {
			return nil, err
		}
		if deleted != nil {
			out.Nodes -= deleted.GetCardinality()
		}
		for _, t := range m.NodeTypes {
			out.NodeTypes = append(out.NodeTypes, t.Name)
			for _, c := range t.Columns {
				if out.Columns == nil {
					out.Columns = map[string]map[string]string{}
				}
				if out.Columns[t.Name] == nil {
					out.Columns[t.Name] = map[string]string{}
				}
				out.Columns[t.Name][c.Name] = c.Type
			}
		}
		if len(m.Features) > 0 {
			out.Features = m.Features[0].Dim
		}
		if m.Labels != nil {
			out.Labels = m.Labels.Classes
		}
		for _, one := range r.nodes {
			out.Runs = append(out.Runs, runInfo{Name: one.Run(), Predicts: "nodes",
				NewNodes: one.batcher != nil, Columns: one.batcher != nil && one.OfColumns(),
				Calibrated: one.CheckCalibrated() == nil})
		}
		for _, one := range r.links {
			out.Runs = append(out.Runs, runInfo{Name: one.name, Predicts: "links"})
		}
		return out, nil
	})
}
