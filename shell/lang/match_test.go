package lang

import (
	"errors"
	"strings"
	"testing"
)

// TestMatchCarets holds that what MATCH refuses is named, at its column.
func TestMatchCarets(t *testing.T) {
	for _, c := range []struct {
		src, msg string
		col      int
	}{
		{"OPTIONAL MATCH (a) RETURN a", "OPTIONAL MATCH is not part of gdb; see .help match", 1},
		{"MATCH (a) RETURN a", "must be anchored", 7},
		{"MATCH (a {id: 1})-[*1..9]->(b) RETURN b", "from 1..1 to 1..4", 21},
		{"MATCH (a {id: 1}) RETURN b", `no variable "b"`, 26},
		{"MATCH (a {id: 1}) WHERE a.id ~ 3 RETURN a", "a comparison wants", 30},
		{"MATCH (a {id: 1}) WITH a", "WITH is not part of gdb", 19},
		{"MATCH (a {id: 1})-[]->b RETURN a", `a node wants "("`, 23},
		{"MATCH (a {id: 1}) RETURN cont(*)", `no function "cont"; did you mean count?`, 26},
		{"MATCH (a {id: 1}) RETURN a LIMIT x", "LIMIT wants a number", 34},
		{"MATCH (a {id: 1}) RETURN a ORDER a", "ORDER wants BY", 34},
		{"MATCH (a {id: 1}) RETURN a UNION", "UNION is not part of gdb", 28},
	} {
		_, err := Parse(c.src)
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || !strings.Contains(syntax.Msg, c.msg) ||
			syntax.Pos+1 != c.col {
			t.Errorf("%q: got %v, want %q at %d", c.src, err, c.msg, c.col)
		}
	}
}
