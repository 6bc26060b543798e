package ui

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"gdb/internal/message"
	"gdb/serve/web"
	"gdb/shell/lang"
	"gdb/train/runs"
)

// What a page shows of the answer to a statement.
const (
	rowsShown      = 1000
	cellShown      = 300     // characters of a cell
	statementBytes = 8 << 10 // the longest statement, which stands in an address
)

// shellOnly are heads of statements that change a session, or read all files: they are for the
// shell.
var shellOnly = []string{"SET", "TRACE", "RESET", "CHECK", "SIMULATE"}

// statementView is what the page of a statement shows.
type statementView struct {
	Text     string
	Columns  []string
	Rows     [][]string
	Count    int
	Notes    []string
	Answered bool
	Failure  *failure
	Examples []string
}

// statement writes the box for statements, with the answer to one.
func (p *site) statement(ctx context.Context, out *bytes.Buffer, q *http.Request) error {
	v := &statementView{Text: strings.TrimSpace(q.URL.Query().Get("q")), Examples: examples()}
	if v.Text != "" {
		if err := p.answer(ctx, v); err != nil {
			v.Failure = newFailure(err)
		}
	}
	return p.render(out, "statement.html", "Statement", v)
}

// answer runs the statement, if it only reads.
func (p *site) answer(ctx context.Context, v *statementView) error {
	if len(v.Text) > statementBytes {
		return web.Wrong("statement", fmt.Sprintf("it has %d bytes", len(v.Text)),
			fmt.Sprintf("write at most %d", statementBytes))
	}
	if err := onlyReads(v.Text); err != nil {
		return err
	}
	return p.Ask(ctx, strings.TrimRight(v.Text, "; \r\n"), func(t *web.Table) error {
		v.Answered, v.Count, v.Notes = true, len(t.Rows), t.Notes
		v.Columns, v.Rows = t.Columns, shown(t.Rows)
		return nil
	})
}

// onlyReads returns an error about a statement that is not answered here.
func onlyReads(text string) error {
	words := strings.Fields(strings.ToUpper(text))
	for len(words) > 0 && (words[0] == "EXPLAIN" || words[0] == "PROFILE") {
		words = words[1:]
	}
	if len(words) == 0 {
		return web.Wrong("statement", "nothing follows EXPLAIN or PROFILE", "write a statement")
	}
	head := strings.TrimRight(words[0], ";")
	known := slices.Contains(web.QueryHeads, head) ||
		slices.ContainsFunc(lang.Statements, func(s lang.Statement) bool {
			first, _, _ := strings.Cut(s.Head, " ")
			return first == head
		})
	switch {
	case slices.Contains(shellOnly, head):
		return web.Wrong("statement", head+" is a statement of the shell alone",
			fmt.Sprintf("run it in %s shell", message.Program))
	case !known:
		return web.Wrong("statement", "it does not begin with a word that it could begin with",
			"HELP lists statements; those of openCypher begin with MATCH and the like")
	}
	return nil
}

// examples are statements to begin with.
func examples() []string {
	return []string{"STATS GRAPH", "DEGREES IN TOP 10", "DESCRIBE", "RUNS", "HELP",
		"MATCH (a)-[]->(b) RETURN a.id, b.id LIMIT 10"}
}

// shown returns rows as text, as far as a page shows them.
func shown(rows [][]any) (text [][]string) {
	for _, row := range rows[:min(len(rows), rowsShown)] {
		var cells []string
		for _, cell := range row {
			switch c := cell.(type) {
			case nil:
				cells = append(cells, "")
			case float64:
				cells = append(cells, runs.Figure(c, 6))
			case string:
				cells = append(cells, cut(c, cellShown))
			default:
				cells = append(cells, fmt.Sprint(c))
			}
		}
		text = append(text, cells)
	}
	return text
}

// cut shortens text to at most most characters.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	if r := []rune(text[:min(len(text), 4*most)]); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return text
}

// shortened returns text that is not too long for a message.
func shortened(text string) string { return cut(text, 80) }
