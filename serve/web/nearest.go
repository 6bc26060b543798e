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

	Features string `json:"features,omitempty" jsonschema:"compare rows of these features instead"`
	Type     string `json:"type,omitempty" jsonschema:"only nodes of this type"`
	Split    string `json:"split,omitempty" jsonschema:"only nodes of this split"`
	Exact    bool   `json:"exact,omitempty" jsonschema:"compare with all, without an index"`
}

func nearestEndpoint() *endpoint {
	return typed(endpoint{method: http.MethodPost, path: "/nearest", name: "nearest", atOnce: 2,
		about: "Find the nodes whose learned vectors, or features, are closest to those of a node.",
	}, func(ctx context.Context, r *request, in *nearestIn) (*Table, error) {
		which, err := in.vectors(r)
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
		if in.Type != "" {
			text += " TYPE " + lang.Literal(in.Type)
		}
		if in.Split != "" {
			text += " AMONG SPLIT " + lang.Literal(in.Split)
		}
		if in.Exact {
			text += " EXACT"
		}
		return r.statement(ctx, text+which, nil)
	})
}

// vectors returns the clause that says which vectors are compared.
func (in *nearestIn) vectors(r *request) (string, error) {
	if in.Features != "" && in.Run != "" {
		return "", wrong("features", "a run is named too", "name one of them")
	}
	if in.Features != "" {
		return " FEATURES " + lang.Literal(in.Features), nil
	}
	run, err := r.linkRun(in.Run)
	if err != nil {
		return "", err
	}
	return " RUN " + lang.Literal(run.name), nil
}
