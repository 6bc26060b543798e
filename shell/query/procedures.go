package query

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"gdb/layout"
	"gdb/shell/cypher/check"
	"gdb/shell/cypher/store"
	"gdb/shell/exec"
	"gdb/shell/lang"
	"gdb/shell/words"
)

// asked is a procedure that a statement of the shell's own answers.
type asked struct {
	name, help string
	in         string // the arguments as "name TYPE, …"; those after a | may be left out
	out        string // the columns as "name TYPE, …"
	// columns names the columns of the statement, one for each of out; "" is its second, whose name
	// varies.
	columns []string
	// statement returns the text of the statement.
	statement func(args []any) (string, error)
}

// Procedures returns what statements of openCypher may CALL.
func Procedures() []store.Procedure {
	var out []store.Procedure
	for _, a := range []asked{
		{name: "gdb.neighbors", help: "neighbors of a node, as NEIGHBORS",
			in:        "node NODE|direction STRING",
			out:       "neighbor NODE, direction STRING, type STRING, weight FLOAT",
			columns:   []string{"neighbor", "direction", "type", "weight"},
			statement: askNeighbors},
		{name: "gdb.sample", help: "a batch as training draws it, as SAMPLE",
			in:        "seeds NODES, fanout LIST|seed INTEGER",
			out:       "hop INTEGER, node NODE, neighbor NODE, weight FLOAT",
			columns:   []string{"hop", "node", "neighbor", "weight"},
			statement: askSample},
		{name: "gdb.nearest", help: "nodes of the closest learned vectors",
			in: "node NODE, k INTEGER|run STRING", out: "node NODE, score FLOAT",
			columns: []string{"node", ""}, statement: askNearest},
		{name: "gdb.cache", help: "caches of the session and the newest run",
			out: "cache STRING, of STRING, used INTEGER, requests INTEGER, hits INTEGER, " +
				"ratio FLOAT",
			columns:   []string{"cache", "of", "used", "requests", "hits", "hit ratio"},
			statement: func([]any) (string, error) { return "STATS CACHE", nil }},
	} {
		out = append(out, a.procedure())
	}
	out = append(out, store.Procedure{Name: "gdb.predict", Run: runPredict,
		Help: "what a run predicts of nodes, exactly",
		Signature: signature("nodes NODES, run STRING|calibrated BOOLEAN",
			"node NODE, prediction ANY, probability FLOAT")})
	for _, p := range wholeGraphs {
		out = append(out, p.procedure())
	}
	return append(out, store.Procedure{Name: "gdb.procedures", Run: runProcedures,
		Help:      "all procedures, with signatures",
		Signature: signature("", "name STRING, signature STRING, help STRING")})
}

func runProcedures(_ context.Context, _ *exec.Execution, _ []any, yield func([]any) error) error {
	for _, p := range Procedures() {
		if err := yield([]any{p.Name, p.String(), p.Help}); err != nil {
			return err
		}
	}
	return nil
}

// signature reads the arguments and columns of asked.
func signature(in, out string) check.Signature {
	needed, optional, _ := strings.Cut(in, "|")
	s := check.Signature{In: fields(needed), Out: fields(out)}
	more := fields(optional)
	s.In, s.Optional = append(s.In, more...), len(more)
	return s
}

func fields(text string) (out []check.Field) {
	for part := range strings.SplitSeq(text, ", ") {
		if name, kind, ok := strings.Cut(part, " "); ok {
			out = append(out, check.Field{Name: name, Type: kind})
		}
	}
	return out
}

func (a asked) procedure() store.Procedure {
	p := store.Procedure{Name: a.name, Help: a.help, Signature: signature(a.in, a.out)}
	p.Run = func(ctx context.Context, x *exec.Execution, args []any,
		yield func([]any) error) error {
		text, err := a.statement(args)
		if err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
		parsed, err := lang.Parse(text)
		var wrong *lang.SyntaxError
		if errors.As(err, &wrong) { // its place is in a text that nobody wrote
			err = errors.New(wrong.Msg)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
		rows := &answers{procedure: a, out: p.Out, yield: yield}
		err = x.Ask(ctx, parsed, planners[parsed.Statement.Head], rows)
		if err != nil && rows.err == nil && ctx.Err() == nil {
			err = fmt.Errorf("%s: %w", a.name, err)
		}
		return err
	}
	return p
}

// answers is a renderer that makes rows of a procedure of those of a statement.
type answers struct {
	procedure asked
	out       []check.Field
	yield     func([]any) error
	at        []int // the columns that are handed out; -1 for one that the store does not have
	err       error // of yield
}

// Header finds the columns.
func (a *answers) Header(cols []string) error {
	for _, want := range a.procedure.columns {
		at := -1
		if want == "" {
			at = 1
		}
		for i, c := range cols {
			if c == want {
				at = i
			}
		}
		a.at = append(a.at, at)
	}
	return nil
}

// Row hands on a row.
func (a *answers) Row(vals []any) error {
	row := make([]any, len(a.out))
	for i, f := range a.out {
		if a.at[i] < 0 {
			continue
		}
		switch c := words.Of(vals[a.at[i]]); {
		case c.Kind == words.Empty:
		case f.Type == "NODE":
			n, err := strconv.ParseUint(strings.TrimPrefix(c.Text, "#"), 10, 32)
			if err != nil {
				return fmt.Errorf("%s: %q is no node: %w", a.procedure.name, c.Text, err)
			}
			row[i] = layout.NodeID(n)
		case c.Kind == words.Int && f.Type == "FLOAT":
			row[i] = float64(c.Int)
		case c.Kind == words.Int:
			row[i] = c.Int
		case c.Kind == words.Float:
			row[i] = c.Float
		default:
			row[i] = c.Text
		}
	}
	a.err = a.yield(row)
	return a.err
}

// Footer does nothing.
func (a *answers) Footer() error { return nil }

// nodesOf returns the nodes of an argument of type NODES.
func nodesOf(v any) (nodes []layout.NodeID, err error) {
	if one, ok := v.(layout.NodeID); ok {
		return []layout.NodeID{one}, nil
	}
	for _, item := range v.([]any) {
		node, ok := item.(layout.NodeID)
		if !ok {
			return nil, errors.New("the list of nodes holds something that is no node")
		}
		nodes = append(nodes, node)
	}
	return nodes, nil
}

// ref returns a node as statements name it.
func ref(v any) string { return lang.NodeRef{Internal: true, ID: uint64(v.(layout.NodeID))}.Text() }

func askNeighbors(args []any) (string, error) {
	text := "NEIGHBORS " + ref(args[0])
	if dir, ok := args[1].(string); ok {
		switch dir = strings.ToUpper(dir); dir {
		case "IN", "OUT", "BOTH":
			text += " " + dir
		default:
			return "", fmt.Errorf("there is no direction %s: want IN, OUT or BOTH",
				words.Quoted(dir))
		}
	}
	return text, nil
}

func askSample(args []any) (string, error) {
	seeds, err := nodesOf(args[0])
	if err != nil {
		return "", err
	}
	if len(seeds) == 0 {
		return "", errors.New("there are no seeds")
	}
	var nodes, fanout []string
	for _, v := range seeds {
		nodes = append(nodes, ref(v))
	}
	for _, v := range args[1].([]any) {
		if _, ok := v.(int64); ok || v == "all" {
			fanout = append(fanout, fmt.Sprint(v))
		}
	}
	if len(fanout) == 0 || len(fanout) < len(args[1].([]any)) {
		return "", errors.New("a fanout is a list of one number a hop, or 'all', as [10, 5]")
	}
	text := "SAMPLE " + strings.Join(nodes, ",") + " FANOUT " + strings.Join(fanout, ",") +
		" SHOW edges"
	if seed, ok := args[2].(int64); ok {
		text += fmt.Sprintf(" SEED %d", seed)
	}
	return text, nil
}

func askNearest(args []any) (string, error) {
	text := fmt.Sprintf("NEAREST %s TOP %d", ref(args[0]), args[1].(int64))
	if run, ok := args[2].(string); ok {
		text += " RUN " + lang.Literal(run)
	}
	return text, nil
}
