// Package query runs the statements of the language on a store, for gdb shell and for gdb.DB.Query.
// Each statement has a planner, which turns it into operators of package exec.
package query

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/internal/message"
	"gdb/layout"
	"gdb/layout/openfiles"
	"gdb/shell/columns"
	"gdb/shell/cypher/store"
	"gdb/shell/cypher/value"
	"gdb/shell/exec"
	"gdb/shell/graph"
	"gdb/shell/lang"
	"gdb/shell/match"
	"gdb/shell/result"
	"gdb/shell/words"
)

// Engine runs statements for programs. It may be used from any goroutine; statements run at the
// same time share the block caches.
type Engine struct {
	graph *graph.Graph
	seed  uint64
}

// NewEngine returns an engine over a store, which it reads through dev. The caller closes both
// after Close. budget counts caches, sets of nodes and the rows of results. Statements that name no
// seed draw with seed.
func NewEngine(st *layout.Store, dev blockdev.Device, budget *mem.Budget, seed uint64) *Engine {
	return &Engine{graph: graph.New(st, dev, budget), seed: seed}
}

// Learned sets how statements use what runs have learned: NEAREST and SCORE open vectors, and
// gdb.predict predicts. It is called before the first statement. Each may be nil, which makes
// what wants it an error; without nearest, NEAREST uses no index.
func (e *Engine) Learned(open graph.OpenVectors, nearest graph.OpenNearest,
	predict graph.Predict) {
	e.graph.OpenVectors, e.graph.OpenNearest, e.graph.Predict = open, nearest, predict
}

// SetThreads sets how many goroutines a statement computes on; 0 is as many as processors. It is
// called before the first statement.
func (e *Engine) SetThreads(n int) {
	if n > 0 {
		e.graph.Threads = n
	}
}

// Files returns the open files of the store, which statements share with the program.
func (e *Engine) Files() *openfiles.Set { return e.graph.Files }

// Close closes the files. No statement may be running.
func (e *Engine) Close() error { return e.graph.Close() }

// Type is the type of a column.
type Type uint8

// The types of columns. A cell of any column may be nil.
const (
	String Type = iota // string
	Int                // int64
	Float              // float64
)

// String returns the name of the type in Go.
func (t Type) String() string { return [...]string{"string", "int64", "float64"}[t] }

// Column is a column of a result.
type Column struct {
	Name string
	Type Type
}

// Stats says what a statement cost.
type Stats struct {
	Rows   uint64
	Time   time.Duration
	Blocks uint64 // requests for blocks
	Cached uint64 // those of Blocks that a cache had
	Read   uint64 // reads from the device, also those that opened files
	Bytes  uint64 // bytes that were read
}

// Result is the answer to a statement.
type Result struct {
	Columns []Column
	Rows    [][]any // string, int64, float64 or nil
	// Notes say what the rows do not show and the user must know.
	Notes []string
	Stats Stats
}

// ErrInto says that a program asked for a file. INTO would write the file on the machine that reads
// the store. For a client of gdb serve that is another machine, on which clients may not write.
var ErrInto = errors.New("INTO writes a file where the store is, and only in " + message.Program +
	" shell: leave INTO out, and write the rows that come back")

// rowBytes is the memory that is counted for a cell of a result, besides the text of a string.
const rowBytes = 32

// Query runs one statement and returns all its rows. They take 32 bytes for each cell, and the
// bytes of strings, which are counted in the budget while the statement runs. params are the values
// of $NAME in a statement of openCypher, as value.FromGo takes them; it may be nil. A mistake in
// the statement is a *SyntaxError.
func (e *Engine) Query(ctx context.Context, stmt string, params map[string]any) (*Result, error) {
	rows := &collector{budget: e.graph.Budget}
	defer func() { rows.budget.Release(rows.held) }()
	notes, stats, err := e.run(ctx, stmt, params, rows)
	if err != nil {
		return nil, err
	}
	out := &Result{Rows: rows.rows, Notes: notes, Stats: stats}
	for _, c := range rows.columns {
		kind := map[words.Kind]Type{words.Int: Int, words.Float: Float}[c.Kind]
		out.Columns = append(out.Columns, Column{c.Name, kind})
	}
	rows.convert()
	return out, nil
}

// Columns is the answer to a statement by columns. Release no longer counts it in the budget.
type Columns struct {
	*columns.Table
	Notes []string // as in Result
	Stats Stats
}

// Columns runs one statement as Query does, and returns its rows by columns, which have the types
// of their values: lists, structs and times too. They are counted in the budget until the caller
// releases them.
func (e *Engine) Columns(ctx context.Context, stmt string, params map[string]any) (*Columns,
	error) {
	table := columns.NewTable(e.graph.Budget)
	notes, stats, err := e.run(ctx, stmt, params, table)
	if err != nil {
		table.Release()
		return nil, err
	}
	return &Columns{table, notes, stats}, nil
}

// run runs one statement, whose rows go to render. It returns what the rows do not show, and what
// they cost.
func (e *Engine) run(ctx context.Context, stmt string, params map[string]any,
	render result.Renderer) (notes []string, stats Stats, err error) {
	p, err := Parse(stmt)
	if err != nil {
		return nil, stats, err
	}
	if p.Has("INTO") {
		return nil, stats, exec.Failed(p, ErrInto)
	}
	x := New(ctx, e.graph, p, e.seed, render)
	if x.Params, err = values(params); err != nil {
		return nil, stats, exec.Failed(p, err)
	}
	begun := time.Now()
	if err := x.Run(ctx); err != nil {
		return nil, stats, exec.Failed(p, err)
	}
	sum := x.Counts()
	return x.Warnings(), Stats{Rows: x.Rows, Time: time.Since(begun),
		Cached: sum.Cached, Read: sum.Read + sum.Opened, Bytes: sum.Bytes + sum.OpenedBytes,
		Blocks: sum.Cached + sum.Read + sum.Opened}, nil
}

// values returns parameters as values of statements.
func values(params map[string]any) (map[string]any, error) {
	out := make(map[string]any, len(params))
	for name, v := range params {
		var err error
		if out[name], err = value.FromGo(v); err != nil {
			return nil, fmt.Errorf("$%s: %w", name, err)
		}
	}
	return out, nil
}

// planners holds the planner of each statement of the language, by its head.
var planners = map[string]exec.Planner{
	"NEIGHBORS":        planNeighbors,
	"DEGREES":          planDegrees,
	"PATH":             planPath,
	"SAMPLE":           planSample,
	"FEATURES":         planFeatures,
	"LABELS":           planLabels,
	"NEAREST":          planNearest,
	"SCORE":            planScore,
	"STATS GRAPH":      exec.Session(runStatsGraph),
	"STATS CACHE":      exec.Session(runStatsCache),
	"STATS IO":         exec.Session(runStatsIO),
	"STATS PARTITIONS": exec.Session(runStatsPartitions),
	"STATS BUCKETS":    planBuckets,
	"SIMULATE CACHE":   planSimulate,
	"TRACE IO":         exec.Session(runTraceIO),
	"RESET STATS":      exec.Session(runResetStats),
	"SET":              exec.Session(runSet),
	"RUNS":             exec.Session(runRuns),
	"BLOCK":            planBlock,
	"CHECK":            planCheck,
	"DESCRIBE":         exec.Session(runDescribe),
	"HELP":             exec.Session(runHelp),
}

func init() { // a literal would be a cycle: procedures ask statements
	planners["openCypher"], planners["MATCH"] = store.Planner(Procedures()), planMatch
}

// planMatch plans a MATCH of the shell's own. What takes lists that the store does not keep is
// planned as openCypher, which makes them of the others.
func planMatch(x *exec.Execution) (*exec.Plan, error) {
	p, err := match.Plan(x)
	if !errors.Is(err, graph.ErrNoLists) {
		return p, err
	}
	src, _ := x.Cypher()
	other, _ := lang.OpenCypher(src)
	if other == nil || store.Check(other, Procedures()) != nil {
		return nil, err
	}
	x.Parsed = other
	return store.Planner(Procedures())(x)
}

// Parse reads a statement: of the shell's own, or else of openCypher. A mistake is a
// *lang.SyntaxError; of a MATCH that neither can read, the one that is farther in the text.
func Parse(src string) (*lang.Parsed, error) {
	p, err := lang.Parse(src)
	if err == nil {
		return p, nil
	}
	p, head := lang.OpenCypher(src)
	if p == nil {
		return nil, err
	}
	mistake := store.Check(p, Procedures())
	if mistake == nil {
		return p, nil
	}
	var own, other *lang.SyntaxError
	if head == "MATCH" && errors.As(err, &own) && errors.As(mistake, &other) && !own.Foreign &&
		own.Pos >= other.Pos {
		return nil, err
	}
	return nil, mistake
}

// New prepares a parsed statement to run. Its rows go to render. seed is the seed of a statement
// that names none.
func New(ctx context.Context, g *graph.Graph, p *lang.Parsed, seed uint64,
	render result.Renderer) *exec.Execution {
	return exec.New(ctx, g, p, planners[p.Statement.Head], seed, render)
}

// collector is a renderer that keeps rows in memory.
type collector struct {
	budget  *mem.Budget
	held    int64
	columns []result.Column
	rows    [][]any
}

// Header keeps the names.
func (c *collector) Header(cols []string) error {
	for _, name := range cols {
		c.columns = append(c.columns, result.Column{Name: name})
	}
	return nil
}

// Row keeps a row.
func (c *collector) Row(vals []any) error {
	bytes := int64(rowBytes * len(vals))
	row := make([]any, len(vals))
	for i, v := range vals {
		cell := words.Of(v)
		c.columns[i].Take(cell)
		bytes += int64(len(cell.Text))
		row[i] = cell
	}
	if err := c.budget.Reserve("rows of a result", bytes); err != nil {
		return fmt.Errorf("%w; LIMIT rows, or write them with INTO", err)
	}
	c.held += bytes
	c.rows = append(c.rows, row)
	return nil
}

// Footer does nothing.
func (c *collector) Footer() error { return nil }

// convert gives every value the type of its column.
func (c *collector) convert() {
	for _, row := range c.rows {
		for i, v := range row {
			cell, _ := v.(words.Cell)
			if cell.Kind == words.Empty {
				row[i] = nil
				continue
			}
			switch cell = cell.As(c.columns[i].Kind); cell.Kind {
			case words.Int:
				row[i] = cell.Int
			case words.Float:
				row[i] = cell.Float
			default:
				row[i] = cell.Text
			}
		}
	}
}
