package serve

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gdb/serve/protocol"
)

// table asks for the result of a statement with parameters.
func (k *client) table(statement, params string) (*protocol.Table, error) {
	k.t.Helper()
	f, _, err := k.ask(protocol.KindQuery, protocol.Query{Statement: statement,
		Params: []byte(params)}, nil)
	if err != nil {
		return nil, err
	}
	var table protocol.Table
	return &table, f.Decode(&table)
}

// TestRowsOfStatements: all rows of a result come in their order, with the names and kinds of their
// columns, and none are an empty list.
func TestRowsOfStatements(t *testing.T) {
	k := start(t, splitStore(t), Options{}).connect(t)
	for _, c := range []struct {
		statement, params string
		columns, kinds    []string
		rows              string
	}{
		{"UNWIND [3, 1, 2] AS x RETURN x, 'n' + x AS name", "", []string{"x", "name"},
			[]string{"int64", "string"}, "[[3 n3] [1 n1] [2 n2]]"},
		{"UNWIND $list AS x RETURN x, x * $by AS y", `{"list":[5,7,null],"by":6}`,
			[]string{"x", "y"}, []string{"int64", "int64"}, "[[5 30] [7 42] [<nil> <nil>]]"},
		{"UNWIND [] AS x RETURN x", "", []string{"x"}, []string{"string"}, "[]"},
	} {
		table, err := k.table(c.statement, c.params)
		if err != nil {
			t.Errorf("%s: %v", c.statement, err)
			continue
		}
		if !slices.Equal(table.Columns, c.columns) || !slices.Equal(table.Kinds, c.kinds) ||
			table.Rows == nil || fmt.Sprint(table.Rows) != c.rows {
			t.Errorf("%s: columns %q of %q, rows %v", c.statement, table.Columns, table.Kinds,
				table.Rows)
		}
	}
}

// TestRowsThatCannotBeSent: a client hears of a result that does not fit in memory, that fails or
// that has no text in JSON, and then asks for another.
func TestRowsThatCannotBeSent(t *testing.T) {
	r := start(t, splitStore(t), Options{Memory: smallMemory})
	k := r.connect(t)
	for statement, want := range map[string]string{
		"UNWIND [1.0, 0.0/0.0, 2.0] AS x RETURN x": "NaN",
		"UNWIND range(1, 1000000) AS x RETURN x":   "raise --memory",
		"UNWIND range(1, 10) AS x RETURN 1/(x-5)":  "divided by zero",
	} {
		table, err := k.table(statement, "")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q; %v", statement, err, want, table)
		}
		r.checkFree(t)
		if table, err := k.table("RETURN 1", ""); err != nil || len(table.Rows) != 1 {
			t.Errorf("after %s: %v, %v", statement, table, err)
		}
	}
}
