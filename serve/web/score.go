package web

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"gdb/shell/lang"
)

// scoreIn asks for the score of an edge, or for the best edges of a node.
type scoreIn struct {
	Run      string `json:"run,omitempty" jsonschema:"the run of links; else the first"`
	Head     id     `json:"head,omitempty" jsonschema:"where it begins; else the best are told"`
	Relation string `json:"relation,omitempty" jsonschema:"the type, where edges have types"`
	Tail     id     `json:"tail,omitempty" jsonschema:"where it ends; else the best are told"`
	Top      int    `json:"top,omitempty" jsonschema:"how many of the best; else 10"`
	New      bool   `json:"new,omitempty" jsonschema:"leave out those of the store"`
}

func scoreEndpoint() *endpoint {
	return typed(endpoint{method: http.MethodPost, path: "/score", name: "score", atOnce: 2,
		about: "Score an edge with a run that predicts links, or find the best heads or tails.",
	}, func(ctx context.Context, r *request, in *scoreIn) (*Table, error) {
		run, err := r.linkRun(in.Run)
		if err != nil {
			return nil, err
		}
		asks := in.Head == "" || in.Tail == ""
		switch {
		case in.Head == "" && in.Tail == "":
			return nil, wrong("body", "neither head nor tail", "give one or both")
		case !asks && (in.Top != 0 || in.New):
			return nil, wrong("body", "top and new are for a head or tail that is asked for",
				"leave them out, or one of head and tail")
		}
		end := func(v id) string {
			if v == "" {
				return "?"
			}
			return lang.Literal(string(v))
		}
		edge := []string{end(in.Head), end(in.Tail)}
		if in.Relation != "" {
			edge = []string{edge[0], lang.Literal(in.Relation), edge[1]}
		}
		text := "SCORE " + strings.Join(edge, ", ")
		if asks {
			top, err := limitOf("top", in.Top, 10)
			if err != nil {
				return nil, err
			}
			text += fmt.Sprintf(" TOP %d", top)
		}
		if in.New {
			text += " NEW"
		}
		return r.statement(ctx, text+" RUN "+lang.Literal(run.name), nil)
	})
}
