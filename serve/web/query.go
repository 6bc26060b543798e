package web

import (
	"context"
	"net/http"
	"slices"
	"strings"
)

// queryIn asks for the rows of a statement.
type queryIn struct {
	Statement string         `json:"statement" jsonschema:"MATCH (a {id: $x})-->(b) RETURN b.id"`
	Params    map[string]any `json:"params,omitempty" jsonschema:"values of $NAME in the statement"`
}

// QueryHeads are the words that begin statements that are answered: those of openCypher that read.
var QueryHeads = []string{"MATCH", "OPTIONAL", "WITH", "UNWIND", "RETURN", "CALL"}

func queryEndpoint() *endpoint {
	return typed(endpoint{method: http.MethodPost, path: "/query", name: "query", atOnce: 2,
		about: "Run a statement of openCypher that reads: MATCH and its like, with parameters.",
	}, func(ctx context.Context, r *request, in *queryIn) (*Table, error) {
		text := strings.TrimRight(strings.TrimSpace(in.Statement), "; \n")
		head, _, _ := strings.Cut(strings.Join(strings.Fields(text), " "), " ")
		if !slices.Contains(QueryHeads, strings.ToUpper(head)) {
			return nil, wrong("statement", "it does not begin with "+strings.Join(QueryHeads, ", "),
				"send a statement that matches a pattern")
		}
		return r.statement(ctx, text, in.Params)
	})
}
