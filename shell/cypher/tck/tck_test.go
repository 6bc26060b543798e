// Package tck runs the scenarios of the openCypher technology compatibility kit.
package tck

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gdb/shell/cypher/ast"
	"gdb/shell/cypher/check"
	"gdb/shell/cypher/engine"
	"gdb/shell/cypher/plain"
	"gdb/shell/cypher/value"

	"github.com/klauspost/compress/zstd"
)

// scenario is a line of the kit's file.
type scenario struct {
	ID, Kind string
	Setup    []string
	Params   map[string]string
	Steps    []struct {
		Query  string
		Expect expectation
	}
	Procedure *struct {
		Signature string
		Rows      [][]string
	}
}

type expectation struct {
	Columns         []string
	Rows            [][]string
	Ordered         bool
	ListsInAnyOrder bool `json:"lists_in_any_order"`
	Error, When     string
	Detail          string
}

// files returns the files of scenarios, which GDB_TCK names, or GDB_TEST_DATA a directory of.
func files(t *testing.T) []string {
	if names := os.Getenv("GDB_TCK"); names != "" {
		return strings.Split(names, ",")
	}
	if root := os.Getenv("GDB_TEST_DATA"); root != "" {
		name := filepath.Join(root, "opencypher-tck.jsonl.zst")
		if _, err := os.Stat(name); err == nil {
			return []string{name}
		}
	}
	t.Skip("neither GDB_TCK names files of scenarios, nor is opencypher-tck.jsonl.zst in " +
		"GDB_TEST_DATA")
	return nil
}

func scenarios(t *testing.T, name string) (out []scenario) {
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var s scenario
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// failing reads the scenarios that are known to fail, with the reason of each.
func failing(t *testing.T) map[string]string {
	text, err := os.ReadFile("testdata/failing.txt")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for line := range strings.Lines(string(text)) {
		id, reason, ok := strings.Cut(strings.TrimSpace(line), " | ")
		if ok && !strings.HasPrefix(id, "#") {
			out[id] = reason
		}
	}
	return out
}

// TestTCK runs all scenarios. One that fails and does not stand in testdata/failing.txt is an
// error, and so is one that stands there and passes, but where that depends on the system's zones.
// Scenarios that write are only counted.
func TestTCK(t *testing.T) {
	known := failing(t)
	all, passed, exact := map[string]int{}, map[string]int{}, 0
	for _, name := range files(t) {
		for _, s := range scenarios(t, name) {
			all[s.Kind]++
			same, err := s.run(false)
			if err == nil && s.Kind != "write" {
				if _, err := s.run(true); err != nil {
					t.Errorf("%s by the engine: %v", s.ID, err)
				}
			}
			if err == nil {
				passed[s.Kind]++
			}
			if same {
				exact++
			}
			reason, listed := known[s.ID]
			switch {
			case s.Kind == "write":
			case err != nil && !listed:
				t.Errorf("%s: %v", s.ID, err)
			case err == nil && listed && !strings.Contains(reason, "zone database"):
				t.Errorf("%s passes; take it out of testdata/failing.txt (%s)", s.ID, reason)
			}
		}
	}
	var out []string
	for _, k := range []string{"read", "temporal", "error", "write"} {
		out = append(out, fmt.Sprintf("%s %d of %d", k, passed[k], all[k]))
	}
	fmt.Printf("passed: %s; errors of the kit's type and detail %d\n",
		strings.Join(out, ", "), exact)
}

// run returns nil if the scenario passes; fast runs by package engine what it takes.
// same says that all its errors are of the kit's kind.
func (s scenario) run(fast bool) (same bool, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	g := &memory{}
	for _, setup := range s.Setup {
		if _, _, err := answer(g, setup, plain.Options{Write: g.write}); err != nil {
			return false, fmt.Errorf("setup: %w", err)
		}
	}
	params := value.Map{}
	for k, text := range s.Params {
		rows, _, err := answer(g, "RETURN "+text+" AS x", plain.Options{})
		if err != nil {
			return false, fmt.Errorf("$%s: %w", k, err)
		}
		params[k] = rows[0][0]
	}
	o := plain.Options{Params: params, Procedures: s.procedures()}
	for _, step := range s.Steps {
		rows, columns, err := answer(g, step.Query, o)
		if fast {
			o.Engine = &engine.Engine{Source: newSource(g, 0)}
			rows, columns, err = answer(g, step.Query, o)
		}
		if step.Expect.Error != "" {
			var e *ast.Error
			same = errors.As(err, &e) && e.Type == step.Expect.Error &&
				e.Detail == step.Expect.Detail
			if err == nil {
				return same, fmt.Errorf("no error; want %s, %s", step.Expect.Error,
					step.Expect.Detail)
			}
			continue
		}
		if err == nil {
			err = step.Expect.compare(columns, rows)
		}
		if err != nil {
			return false, fmt.Errorf("%w\n\t%s", err, strings.ReplaceAll(step.Query, "\n", " "))
		}
	}
	return same, nil
}

func answer(g *memory, text string, o plain.Options) (rows [][]any, columns []string, err error) {
	q, err := plain.Prepare(text, o)
	if err != nil {
		return nil, nil, err
	}
	err = q.Run(context.Background(), g, o, func(row []any) error {
		rows = append(rows, row)
		return nil
	})
	return rows, q.Columns, err
}

func (e expectation) compare(columns []string, rows [][]any) error {
	if e.Columns == nil && len(e.Rows) == 0 {
		columns = nil
	}
	if !slices.Equal(columns, e.Columns) {
		return fmt.Errorf("columns %q, want %q", columns, e.Columns)
	}
	var got, want []string
	for _, r := range rows {
		var cells []string
		for _, v := range r {
			text, err := value.Text(v)
			if err != nil {
				return err
			}
			cells = append(cells, canonical(text, e.ListsInAnyOrder))
		}
		got = append(got, strings.Join(cells, " | "))
	}
	for _, r := range e.Rows {
		var cells []string
		for _, text := range r {
			cells = append(cells, canonical(text, e.ListsInAnyOrder))
		}
		want = append(want, strings.Join(cells, " | "))
	}
	if !e.Ordered {
		slices.Sort(got)
		slices.Sort(want)
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("rows %q, want %q", got, want)
	}
	return nil
}

// procedures returns the procedure of a scenario, which answers from a table.
func (s scenario) procedures() map[string]plain.Procedure {
	if s.Procedure == nil {
		return nil
	}
	name, rest, _ := strings.Cut(s.Procedure.Signature, "(")
	in, out, _ := strings.Cut(rest, ") :: (")
	out, _, _ = strings.Cut(out, ")")
	p := plain.Procedure{Signature: check.Signature{In: fields(in), Out: fields(out)}}
	var table [][]any
	for _, r := range s.Procedure.Rows[1:] {
		var row []any
		for _, cell := range r {
			rows, _, err := answer(&memory{}, "RETURN "+cell+" AS x", plain.Options{})
			if err != nil {
				panic(err)
			}
			row = append(row, rows[0][0])
		}
		table = append(table, row)
	}
	p.Run = func(_ context.Context, args []any, yield func([]any) error) error {
		for _, row := range table {
			if value.Order(value.List(row[:len(args)]), value.List(args)) == 0 {
				if err := yield(row[len(args):]); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return map[string]plain.Procedure{name: p}
}

func fields(text string) (out []check.Field) {
	for part := range strings.SplitSeq(text, ",") {
		if name, kind, ok := strings.Cut(strings.TrimSpace(part), " :: "); ok {
			out = append(out, check.Field{Name: name, Type: strings.TrimSuffix(kind, "?")})
		}
	}
	return out
}
