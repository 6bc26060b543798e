package web

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestTools: a client of the protocol finds the endpoints as tools that only read, and gets their
// answers and errors.
func TestTools(t *testing.T) {
	s := mustOpen(t)
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	end := make(chan error, 1)
	go func() { end <- s.ServeTools(t.Context(), in, out) }()
	client := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil)
	session, err := client.Connect(t.Context(), &mcp.IOTransport{Reader: fromServer,
		Writer: toServer}, nil)
	if err != nil {
		t.Fatal(err)
	}
	list, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
		if tool.Annotations == nil || !tool.Annotations.ReadOnlyHint {
			t.Errorf("%s does not say that it only reads", tool.Name)
		}
	}
	slices.Sort(names)
	if got := strings.Join(names, " "); got != "info nearest neighbors predict query score" {
		t.Errorf("tools %s", got)
	}
	for _, c := range []struct {
		name string
		args map[string]any
		want string
		bad  bool
	}{
		{"info", nil, `"nodes":300`, false},
		{"predict", map[string]any{"ids": []any{7}}, `"id":"7"`, false},
		{"query", map[string]any{"statement": "MATCH (n) RETURN count(*) AS n"}, `[[300]]`, false},
		{"predict", map[string]any{"ids": []any{7000}}, `no node "7000"`, true},
	} {
		res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: c.name,
			Arguments: c.args})
		if err != nil {
			t.Fatal(c.name, err)
		}
		text := res.Content[0].(*mcp.TextContent).Text
		if res.IsError != c.bad || !strings.Contains(text, c.want) {
			t.Errorf("%s: %s, want %s", c.name, text, c.want)
		}
	}
	if err := session.Close(); err != nil {
		t.Error(err)
	}
	if err := <-end; err != nil {
		t.Errorf("the server ended with %v", err)
	}
}
