package columns

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"gdb/internal/mem"
	"gdb/shell/cypher/temporal"
	"gdb/shell/cypher/value"
	"gdb/shell/words"
)

// graph has properties that the number of a node says.
type graph struct{}

func (graph) Labels(int64) ([]string, error) { return []string{"user"}, nil }
func (graph) NodeProps(n int64) (value.Map, error) {
	if n == 2 {
		return value.Map{"age": int64(7), "id": "b"}, nil
	}
	return value.Map{"id": "a"}, nil
}
func (graph) NodeProp(int64, string) (any, error)    { return nil, nil }
func (graph) RelProp(value.Rel, string) (any, error) { return nil, nil }
func (graph) RelProps(value.Rel) (value.Map, error)  { return value.Map{"w": .5}, nil }
func at(t *testing.T, kind, text string) (v value.Temporal) {
	t.Helper()
	v, err := temporal.New(kind, text, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// column returns a column of values.
func column(t *testing.T, vals ...any) *Column {
	t.Helper()
	table := NewTable(mem.NewBudget(1 << 20))
	if err := table.Header([]string{"c"}); err != nil {
		t.Fatal(err)
	}
	for _, v := range vals {
		if err := table.Row([]any{v}); err != nil {
			t.Fatal(err)
		}
	}
	if table.Rows != len(vals) || table.Columns[0].rows != len(vals) {
		t.Errorf("%d rows, %d in the column, want %d", table.Rows, table.Columns[0].rows, len(vals))
	}
	return table.Columns[0]
}

// TestTypes: a column takes the type of its values, a wider one where they differ, and gives them
// back.
func TestTypes(t *testing.T) {
	a, b := value.Node{ID: 1, G: graph{}}, value.Node{ID: 2, G: graph{}}
	r := value.Rel{From: 1, To: 2, Type: "knows", G: graph{}}
	day := at(t, temporal.KindDate, "2015-07-21")
	noon := at(t, temporal.KindDateTime, "2015-07-21T12:00:00.000001[Europe/Stockholm]")
	utc := at(t, temporal.KindDateTime, "1969-12-31T23:59:59.5Z")
	for _, c := range []struct {
		vals []any
		kind Kind
		want string // of all values
	}{
		{[]any{nil, nil}, Null, "[<nil> <nil>]"},
		{[]any{nil, true, false}, Bool, "[<nil> true false]"},
		{[]any{int64(1) << 62, nil, int64(-1)}, Int, "[4611686018427387904 <nil> -1]"},
		{[]any{int64(1), 2.5, int64(3)}, Float, "[1 2.5 3]"},
		{[]any{int64(1)<<53 + 1, 2.5}, String, "[9007199254740993 2.5]"},
		{[]any{2.5, int64(1)<<53 + 1}, String, "[2.5 9007199254740993]"},
		{[]any{words.Count(3), 4, uint32(5), words.Absent{}}, Int, "[3 4 5 <nil>]"},
		{[]any{words.Ratio(.5), float32(.25)}, Float, "[0.5 0.25]"},
		{[]any{"x", nil, "", "yö"}, String, "[x <nil>  yö]"},
		{[]any{nil, int64(1), true, "z", nil, value.List{"y", nil}}, String,
			"[<nil> 1 true z <nil> ['y', null]]"},
		{[]any{nil, day, nil}, Date, "[<nil> 2015-07-21 <nil>]"},
		{[]any{noon, noon}, Timestamp, "[2015-07-21T12:00:00.000001+02:00[Europe/Stockholm] " +
			"2015-07-21T12:00:00.000001+02:00[Europe/Stockholm]]"},
		{[]any{utc}, Timestamp, "[1969-12-31T23:59:59.500Z]"},
		{[]any{utc, noon}, String, "[1969-12-31T23:59:59.500Z " +
			"2015-07-21T12:00:00.000001+02:00[Europe/Stockholm]]"},
		{[]any{at(t, temporal.KindLocalDateTime, "2015-07-21T12:00"), day}, String,
			"[2015-07-21T12:00 2015-07-21]"},
		{[]any{at(t, temporal.KindLocalDateTime, "2015-07-21T12:00:00.000000001")}, String,
			"[2015-07-21T12:00:00.000000001]"},
		{[]any{day, at(t, temporal.KindDate, "+999999999-01-01")}, String,
			"[2015-07-21 +999999999-01-01]"},
		{[]any{at(t, temporal.KindLocalTime, "12:30:01.5")}, Time, "[12:30:01.5]"},
		{[]any{at(t, temporal.KindTime, "12:30Z"), at(t, temporal.KindDuration, "P1D")}, String,
			"[12:30Z P1D]"},
		{[]any{nil, value.List{int64(1), nil}, value.List{}, value.List{.5}}, List,
			"[<nil> [1 <nil>] [] [0.5]]"},
		{[]any{value.Map{"k": int64(1)}, value.Map{"l": value.List{"x"}}, nil, value.Map{}}, Struct,
			"[map[k:1] map[l:[x]] <nil> map[]]"},
		{[]any{nil, a, b}, Struct, "[<nil> map[id:1 labels:[user] properties:map[id:a]] " +
			"map[id:2 labels:[user] properties:map[age:7 id:b]]]"},
		{[]any{r}, Struct, "[map[end:2 properties:map[w:0.5] start:1 type:knows]]"},
		{[]any{value.Path{Nodes: []value.Node{a}}}, Struct,
			"[map[nodes:[map[id:1 labels:[user] properties:map[id:a]]] relationships:[]]]"},
		{[]any{a, "x"}, String, "[{id: 1, labels: ['user'], properties: {id: 'a'}} x]"},
	} {
		col := column(t, c.vals...)
		got := make([]any, len(c.vals))
		for i := range got {
			got[i] = col.value(i)
		}
		text := strings.ReplaceAll(fmt.Sprint(got), ".500Z", ".5Z")
		if want := strings.ReplaceAll(c.want, ".500Z", ".5Z"); col.kind != c.kind || text != want {
			t.Errorf("%v: %s %s, want %s %s", c.vals, col.kind, text, c.kind, want)
		}
	}
}

// TestLayouts: buffers have the format of Arrow, and begin at places that are multiples of eight.
func TestLayouts(t *testing.T) {
	table := NewTable(mem.NewBudget(1 << 20))
	if err := table.Header([]string{"t", "b", "d", "l", "n"}); err != nil {
		t.Fatal(err)
	}
	for _, row := range [][]any{
		{"ab", true, temporal.FromEpochDay(-1), value.List{int64(7), int64(8)}, nil},
		{nil, false, temporal.FromEpochDay(2), value.List{}, nil},
		{"c", true, temporal.FromEpochDay(3), value.List{int64(9)}, nil},
	} {
		if err := table.Row(row); err != nil {
			t.Fatal(err)
		}
	}
	layouts, parts := table.Layouts()
	var data []byte
	for _, part := range parts {
		data = append(data, part...)
	}
	at := func(b Buffer) []byte {
		if b[0]%alignment != 0 {
			t.Errorf("a buffer at %d", b[0])
		}
		return data[b[0] : b[0]+b[1]]
	}
	words := func(b Buffer) (out []int32) {
		for raw := at(b); len(raw) > 0; raw = raw[4:] {
			out = append(out, int32(binary.LittleEndian.Uint32(raw)))
		}
		return out
	}
	l := layouts[0]
	if l.Type != String || l.Rows != 3 || l.Nulls != 1 || at(l.Valid)[0] != 0b101 ||
		fmt.Sprint(words(l.Offsets)) != "[0 2 2 3]" || string(at(l.Values)) != "abc" {
		t.Errorf("%+v", l)
	}
	if l = layouts[1]; l.Type != Bool || l.Valid != (Buffer{}) || at(l.Values)[0] != 0b101 {
		t.Errorf("%+v", l)
	}
	if l = layouts[2]; l.Type != Date || fmt.Sprint(words(l.Values)) != "[-1 2 3]" {
		t.Errorf("%+v", l)
	}
	if l = layouts[3]; l.Type != List || fmt.Sprint(words(l.Offsets)) != "[0 2 2 3]" ||
		l.Fields[0].Rows != 3 || mem.View[int64](at(l.Fields[0].Values))[2] != 9 {
		t.Errorf("%+v", l)
	}
	if l = layouts[4]; l.Type != Null || l.Rows != 3 || l.Nulls != 3 {
		t.Errorf("%+v", l)
	}
}

// TestMemory: rows past the budget are refused, and what they took is given back.
func TestMemory(t *testing.T) {
	budget := mem.NewBudget(1 << 20)
	table := NewTable(budget)
	if err := table.Header([]string{"c"}); err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("x", 1000)
	var err error
	rows := 0
	for ; err == nil && rows < 1000; rows++ {
		err = table.Row([]any{value.List{text}})
	}
	if err == nil || !strings.Contains(err.Error(), "LIMIT rows") || rows < 400 || rows > 530 {
		t.Errorf("%d rows, %v", rows, err)
	}
	if table.Release(); budget.Used() != 0 {
		t.Errorf("%d bytes are held", budget.Used())
	}
	c := &Column{kind: String, text: make([]byte, 0)}
	c.text = c.text[:0]
	if c.fields = []*Column{{kind: Null, rows: math.MaxInt32}}; c.element(nil) != errLong {
		t.Error("a list is too long")
	}
}
