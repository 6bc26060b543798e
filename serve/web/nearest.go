package web

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"gdb/shell/lang"
)

// nearestIn asks for the nodes that are closest to one.
type nearestIn struct {
	Run string `json:"run,omitempty" jsonschema:"the run of links; else the first"`
	ID  id     `json:"id" jsonschema:"the node"`
	Top int    `json:"top,omitempty" jsonschema:"how many; else 10"`
	By  string `json:"by,omitempty" jsonschema:"cosine, dot or euclid; else what fits the run"`
}

func nearestEndpoint() *endpoint {
	return typed(endpoint{method: http.MethodPost, path: "/nearest", name: "nearest", atOnce: 2,
		about: "Find the nodes whose learned vectors are closest to that of a node.",
	}, func(ctx context.Context, r *request, in *nearestIn) (*table, error) {
		run, err := r.linkRun(in.Run)
		if err != nil {
			return nil, err
		}
		top, err := limitOf("top", in.Top, 10)
		if err != nil {
			return nil, err
		}
		if in.ID == "" {
			return nil, wrong("id", "it is missing", "name a node")
		}
		text := fmt.Sprintf("NEAREST %s TOP %d", lang.Literal(string(in.ID)), top)
		if in.By != "" {
			if !slices.Contains(lang.Closenesses, in.By) {
				return nil, wrong("by", fmt.Sprintf("%q", shortened(in.By)),
					"want one of "+strings.Join(lang.Closenesses, ", "))
			}
			text += " BY " + in.By
		}
		return r.statement(ctx, text+" RUN "+lang.Literal(run.name), nil)
	})
}
