package serve

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gdb/internal/mem"
	"gdb/serve/protocol"
	"gdb/shell/columns"
)

// answer is the result of a statement, with the values of its columns.
type answer struct {
	rows    int
	columns []columns.Layout
	values  [][]any
}

// table asks for the result of a statement with parameters.
func (k *client) table(statement, params string) (*answer, error) {
	k.t.Helper()
	f, _, err := k.ask(protocol.KindQuery, protocol.Query{Statement: statement,
		Params: []byte(params)}, nil)
	if err != nil {
		return nil, err
	}
	var m protocol.Table
	if err := f.Decode(&m); err != nil {
		return nil, err
	}
	table := &answer{rows: m.Rows}
	err = json.Unmarshal(m.Columns, &table.columns)
	for _, l := range table.columns {
		table.values = append(table.values, valuesOf(l, f.Data))
	}
	return table, err
}

// valuesOf reads a column of int64, float64 or strings.
func valuesOf(l columns.Layout, data []byte) (out []any) {
	at := func(b columns.Buffer) []byte { return data[b[0] : b[0]+b[1]] }
	for i := range l.Rows {
		switch {
		case l.Type == columns.Null || l.Nulls > 0 && at(l.Valid)[i/8]>>(i%8)&1 == 0:
			out = append(out, nil)
		case l.Type == columns.Int:
			out = append(out, mem.View[int64](at(l.Values))[i])
		case l.Type == columns.Float:
			out = append(out, mem.View[float64](at(l.Values))[i])
		default:
			ends := mem.View[int32](at(l.Offsets))
			out = append(out, string(at(l.Values)[ends[i]:ends[i+1]]))
		}
	}
	return out
}

// TestRowsOfStatements: all rows of a result come in their order, with the names and types of their
// columns, also if there are none.
func TestRowsOfStatements(t *testing.T) {
	k := start(t, splitStore(t), Options{}).connect(t)
	for _, c := range []struct {
		statement, params string
		names             []string
		types             []columns.Kind
		values            string
	}{
		{"UNWIND [3, 1, 2] AS x RETURN x, 'n' + x AS name", "", []string{"x", "name"},
			[]columns.Kind{columns.Int, columns.String}, "[[3 1 2] [n3 n1 n2]]"},
		{"UNWIND $list AS x RETURN x, x * $by AS y", `{"list":[5,7.5,null],"by":6}`,
			[]string{"x", "y"}, []columns.Kind{columns.Float, columns.Float},
			"[[5 7.5 <nil>] [30 45 <nil>]]"},
		{"UNWIND [1.0, 0.0/0.0] AS x RETURN x", "", []string{"x"}, []columns.Kind{columns.Float},
			"[[1 NaN]]"},
		{"UNWIND [] AS x RETURN x", "", []string{"x"}, []columns.Kind{columns.Null}, "[[]]"},
		{"MATCH (n {id: '3'}) RETURN n, [n.id] AS l, n.id", "",
			[]string{"n", "l", "n.id"},
			[]columns.Kind{columns.Null, columns.Null, columns.Null}, "[[] [] []]"},
		{"DEGREES IN TOP 1", "", []string{"node", "direction", "degree"},
			[]columns.Kind{columns.String, columns.String, columns.Int}, "[[2] [in] [1]]"},
	} {
		table, err := k.table(c.statement, c.params)
		if err != nil {
			t.Errorf("%s: %v", c.statement, err)
			continue
		}
		var names []string
		var types []columns.Kind
		for _, l := range table.columns {
			names, types = append(names, l.Name), append(types, l.Type)
		}
		if got := fmt.Sprint(table.values); !slices.Equal(names, c.names) ||
			!slices.Equal(types, c.types) || got != c.values ||
			table.rows != len(table.values[0]) {
			t.Errorf("%s: columns %q of %q, %d rows, %s", c.statement, names, types,
				table.rows, got)
		}
	}
}

// TestRowsThatCannotBeSent: a client hears of a result that does not fit in memory or that fails,
// and then asks for another.
func TestRowsThatCannotBeSent(t *testing.T) {
	r := start(t, splitStore(t), Options{Memory: smallMemory})
	k := r.connect(t)
	long := strings.Repeat("y", 200)
	for statement, want := range map[string]string{
		"UNWIND range(1, 40000) AS x RETURN x + '" + long + "'": "LIMIT rows",
		"UNWIND range(1, 10) AS x RETURN 1/(x-5)":               "divided by zero",
	} {
		table, err := k.table(statement, "")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q; %v", statement, err, want, table)
		}
		r.checkFree(t)
		if table, err := k.table("RETURN 1", ""); err != nil || table.rows != 1 {
			t.Errorf("after %s: %v, %v", statement, table, err)
		}
		r.checkFree(t)
	}
}
