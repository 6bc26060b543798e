package web

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"gdb/shell/lang"
)

// neighborsIn asks for the neighbors of a node.
type neighborsIn struct {
	ID        id     `json:"id" jsonschema:"the node"`
	Direction string `json:"direction,omitempty" jsonschema:"in, out or both; else in"`
	Type      string `json:"type,omitempty" jsonschema:"edges of this type only"`
	Limit     int    `json:"limit,omitempty" jsonschema:"how many; else 100"`
}

func neighborsEndpoint() *endpoint {
	return typed(endpoint{method: http.MethodPost, path: "/neighbors", name: "neighbors",
		about: "List the neighbors of a node, with the types, weights and times of the edges."},
		func(ctx context.Context, r *request, in *neighborsIn) (*Table, error) {
			limit, err := limitOf("limit", in.Limit, 100)
			if err != nil {
				return nil, err
			}
			if in.ID == "" {
				return nil, wrong("id", "it is missing", "name a node")
			}
			if in.Direction == "" {
				in.Direction = "in"
			}
			if !slices.Contains([]string{"in", "out", "both"}, in.Direction) {
				return nil, wrong("direction", fmt.Sprintf("%q", shortened(in.Direction)),
					"want in, out or both")
			}
			text := "NEIGHBORS " + lang.Literal(string(in.ID)) + " " + strings.ToUpper(in.Direction)
			if in.Type != "" {
				text += " VIA " + lang.Literal(in.Type)
			}
			return r.statement(ctx, fmt.Sprintf("%s LIMIT %d", text, limit), nil)
		})
}
