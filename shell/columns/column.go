package columns

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"gdb/shell/cypher/temporal"
	"gdb/shell/cypher/value"
	"gdb/shell/words"
)

// Kind is the type of a column.
type Kind string

// The types of columns. Any column may have nulls.
const (
	Null      Kind = "null" // no value is there
	Bool      Kind = "bool"
	Int       Kind = "int64"
	Float     Kind = "float64"
	String    Kind = "string"
	Date      Kind = "date"      // days since 1970
	Timestamp Kind = "timestamp" // microseconds since 1970, in UTC where the column has a zone
	Time      Kind = "time"      // microseconds since midnight
	List      Kind = "list"
	Struct    Kind = "struct"
)

// Column is the values of a column. It takes the type of its first values, and a wider one where
// others do not fit: whole numbers beside others become float64 if none changes by that, and
// everything else text. Nodes are structs of id, labels and properties; relationships of start,
// end, type and properties, where start and end are ids of nodes; paths of nodes and relationships;
// maps of their keys.
//
// Times with an offset alone, durations, and dates and times that the numbers of Kind cannot hold,
// such as nanoseconds, are text, and so are times of different zones.
type Column struct {
	Name string

	kind     Kind
	temporal string // the kind of value of Date, Timestamp and Time
	zone     string // of Timestamp; "" for none
	rows     int
	nulls    int
	valid    []byte // a bit a row
	ints     []int64
	floats   []float64
	offsets  []int32 // the ends of strings and lists
	text     []byte
	fields   []*Column // of structs; of lists the elements
	bytes    int64     // of the buffers, without those of fields
}

// entity is the fields of a struct, in order.
type entity struct {
	names  []string
	values []any
}

// Append adds a value.
func (c *Column) Append(v any) error {
	v, err := c.normal(v)
	if err != nil {
		return err
	}
	if v == nil {
		return c.add(nil)
	}
	if err := c.widen(v); err != nil {
		return err
	}
	if c.kind == String {
		if v, err = textOf(v); err != nil {
			return err
		}
	}
	return c.add(v)
}

// normal returns entities and maps as *entity.
func (c *Column) normal(v any) (any, error) {
	switch v := v.(type) {
	case value.Node:
		labels, err := v.G.Labels(v.ID)
		if err != nil {
			return nil, err
		}
		props, err := v.G.NodeProps(v.ID)
		return &entity{[]string{"id", "labels", "properties"}, []any{v.ID, listOf(labels), props}},
			err
	case value.Rel:
		props, err := v.G.RelProps(v)
		return &entity{[]string{"start", "end", "type", "properties"},
			[]any{v.From, v.To, v.Type, props}}, err
	case value.Path:
		return &entity{[]string{"nodes", "relationships"},
			[]any{listOf(v.Nodes), listOf(v.Rels)}}, nil
	case value.Map:
		e := &entity{names: slices.Sorted(maps.Keys(v))}
		for _, name := range e.names {
			e.values = append(e.values, v[name])
		}
		return e, nil
	}
	return v, nil
}

func listOf[T any](of []T) value.List {
	out := make(value.List, len(of))
	for i, v := range of {
		out[i] = v
	}
	return out
}

// kindOf returns the type that a value has as a column, and of times the number that stands for it.
func kindOf(v any) (kind Kind, n int64, zone string) {
	switch v := v.(type) {
	case bool:
		return Bool, 0, ""
	case int64:
		return Int, 0, ""
	case float64:
		return Float, 0, ""
	case value.List:
		return List, 0, ""
	case *entity:
		return Struct, 0, ""
	case temporal.Instant:
		n, zone, ok := v.Epoch()
		kinds := map[string]Kind{temporal.KindDate: Date, temporal.KindLocalTime: Time,
			temporal.KindDateTime: Timestamp, temporal.KindLocalDateTime: Timestamp}
		if ok {
			return kinds[v.Kind()], n, zone
		}
	}
	return String, 0, ""
}

// widen changes the type of the column so that it can hold v.
func (c *Column) widen(v any) error {
	kind, _, zone := kindOf(v)
	t, _ := v.(temporal.Instant)
	switch {
	case c.kind == Null:
		c.begin(kind)
		c.temporal, c.zone = t.Kind(), zone
		return nil
	case c.kind == String, kind == c.kind && t.Kind() == c.temporal && zone == c.zone:
		return nil
	case c.kind == Int && kind == Float && !slices.ContainsFunc(c.ints, inexact):
		c.kind = Float
		for _, n := range c.ints {
			c.floats = append(c.floats, float64(n))
		}
		c.ints = nil
		return nil
	case c.kind == Float && kind == Int && !inexact(v.(int64)):
		return nil
	}
	return c.toText()
}

// inexact reports whether a float64 may not hold an integer.
func inexact(n int64) bool { return n > 1<<53 || n < -1<<53 }

// begin makes a column of nulls one of a type.
func (c *Column) begin(kind Kind) {
	c.kind = kind
	nulls := c.rows
	c.rows, c.nulls = 0, 0
	if kind == List {
		c.fields = []*Column{{kind: Null}}
	}
	for range nulls {
		c.null()
	}
}

// toText makes the column one of text.
func (c *Column) toText() error {
	out := &Column{Name: c.Name, kind: String}
	for i := range c.rows {
		v := c.value(i)
		if v != nil {
			var err error
			if v, err = textOf(v); err != nil {
				return err
			}
		}
		if err := out.add(v); err != nil {
			return err
		}
	}
	*c = *out
	return nil
}

// textOf returns a value as text: as openCypher writes it, but strings and times without quotes.
func textOf(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case value.Temporal:
		return v.String(), nil
	case *entity:
		m := value.Map{}
		for i, name := range v.names {
			m[name] = v.values[i]
		}
		return value.Text(m)
	case nil, bool, int64, float64, value.List, value.Map:
		return value.Text(v)
	}
	return words.Raw(v), nil
}

// errLong says that the offsets of a column cannot reach more.
var errLong = errors.New("a column of a result would have more than 2 GiB: LIMIT rows")

// add adds null, or a value that fits the type.
func (c *Column) add(v any) error {
	if v == nil {
		c.null()
		return nil
	}
	_, n, _ := kindOf(v)
	switch v := v.(type) {
	case bool:
		if v {
			n = 1
		}
		c.number(n)
	case int64:
		if c.kind == Float {
			c.decimal(float64(v))
		} else {
			c.number(v)
		}
	case float64:
		c.decimal(v)
	case temporal.Instant:
		c.number(n)
	case string:
		if len(c.text)+len(v) > math.MaxInt32 {
			return errLong
		}
		c.text = append(c.text, v...)
		c.bytes += int64(len(v))
		c.end(len(c.text))
	case value.List:
		for _, x := range v {
			if err := c.element(x); err != nil {
				return err
			}
		}
		c.end(c.fields[0].rows)
	case *entity:
		if err := c.record(v); err != nil {
			return err
		}
	default:
		return fmt.Errorf("BUG: a column of %s is given a %T", c.kind, v)
	}
	c.mark(true)
	return nil
}

// null adds a null.
func (c *Column) null() {
	switch c.kind {
	case Null:
		c.rows++
		c.nulls++
		return
	case Float:
		c.decimal(0)
	case String:
		c.end(len(c.text))
	case List:
		c.end(c.fields[0].rows)
	case Struct:
		for _, f := range c.fields {
			f.null()
		}
	default:
		c.number(0)
	}
	c.mark(false)
}

// mark says whether the next row has a value.
func (c *Column) mark(there bool) {
	if c.rows%8 == 0 {
		c.valid = append(c.valid, 0)
		c.bytes++
	}
	if there {
		c.valid[c.rows/8] |= 1 << (c.rows % 8)
	} else {
		c.nulls++
	}
	c.rows++
}

func (c *Column) number(n int64) {
	c.ints = append(c.ints, n)
	c.bytes += 8
}

func (c *Column) decimal(x float64) {
	c.floats = append(c.floats, x)
	c.bytes += 8
}

// end ends a string or a list.
func (c *Column) end(at int) {
	c.offsets = append(c.offsets, int32(at))
	c.bytes += 4
}

// element adds a value to a list.
func (c *Column) element(v any) error {
	if c.fields[0].rows == math.MaxInt32 {
		return errLong
	}
	return c.fields[0].Append(v)
}

// record adds the fields of a struct. Those that it lacks are null, and new ones were.
func (c *Column) record(e *entity) error {
	for _, name := range e.names {
		if c.field(name) == nil {
			c.fields = append(c.fields, &Column{Name: name, kind: Null, rows: c.rows,
				nulls: c.rows})
		}
	}
	for _, f := range c.fields {
		at := slices.Index(e.names, f.Name)
		if at < 0 {
			f.null()
		} else if err := f.Append(e.values[at]); err != nil {
			return err
		}
	}
	return nil
}

func (c *Column) field(name string) *Column {
	i := slices.IndexFunc(c.fields, func(f *Column) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	return c.fields[i]
}

// span returns where the string or the list of a row begins and ends.
func (c *Column) span(i int) (from, end int32) {
	if i > 0 {
		from = c.offsets[i-1]
	}
	return from, c.offsets[i]
}

// value returns the value of a row. Structs are maps, without fields that are null.
func (c *Column) value(i int) any {
	if c.kind == Null || c.valid[i/8]>>(i%8)&1 == 0 {
		return nil
	}
	switch c.kind {
	case Bool:
		return c.ints[i] != 0
	case Int:
		return c.ints[i]
	case Float:
		return c.floats[i]
	case Date, Timestamp, Time:
		return temporal.AtEpoch(c.temporal, c.ints[i], c.zone)
	case List:
		out := value.List{}
		for from, end := c.span(i); from < end; from++ {
			out = append(out, c.fields[0].value(int(from)))
		}
		return out
	case Struct:
		out := value.Map{}
		for _, f := range c.fields {
			if v := f.value(i); v != nil {
				out[f.Name] = v
			}
		}
		return out
	}
	from, end := c.span(i)
	return string(c.text[from:end])
}

// size returns the bytes of all buffers, of fields too.
func (c *Column) size() int64 {
	n := c.bytes
	for _, f := range c.fields {
		n += f.size()
	}
	return n
}
