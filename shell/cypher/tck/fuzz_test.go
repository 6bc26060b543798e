package tck

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"gdb/internal/mem"
	"gdb/shell/cypher/engine"
	"gdb/shell/cypher/plain"
	"gdb/shell/cypher/value"
)

// fuzzer makes statements that may be wrong in any way.
type fuzzer struct {
	*rand.Rand
	valid  statements
	whole  []string
	pieces []string // clauses and what else is between words that begin a clause
}

// begins are words that begin a piece of a statement.
var begins = regexp.MustCompile(`(?i)\b(OPTIONAL MATCH|MATCH|WHERE|WITH|UNWIND|RETURN|ORDER BY|` +
	`SKIP|LIMIT|UNION ALL|UNION|CALL|YIELD|AND|OR|AS|IN)\b|[(\[{,]`)

// seeds are the statements of which fuzzed ones are made, besides random ones and those of the kit.
var seeds = []string{
	"MATCH p = (a:A {n: $y})-[r:R|S*1..3]->(b) WHERE a.n = 1 " +
		"WITH DISTINCT a, count(*) AS n ORDER BY n DESC LIMIT 2 RETURN [x IN [n] | x], *",
	"UNWIND [1, null] AS x RETURN CASE x WHEN 1 THEN 'a' END, x[0..1] UNION RETURN {a: 1}.a",
	"RETURN all(x IN [1] WHERE x > 0) AND EXISTS { (a)-->() } OR reduce(a = 0, x IN [1] | a)",
	"RETURN date('2020-01-01').year + duration('P1D'), -0x1F ^ 1e3, `a b`, 'a\u0041'",
	"MATCH (a), (b), (c), (d) RETURN a.n + b.n % c.i, count(DISTINCT d), collect(a.s)[1..]",
	"UNWIND range(1, 10000000) AS x UNWIND range(1, 1000) AS y RETURN sum(x / y), max(x ^ y)",
	"MATCH (a)-[*]-(b)-[*]-(c) RETURN count(*)",
	"MATCH p = allShortestPaths((a)-[*]-(b)) RETURN nodes(p), relationships(p), length(p)",
}

func newFuzzer(t *testing.T, r *rand.Rand) *fuzzer {
	f := &fuzzer{Rand: r, valid: statements{Rand: r}, whole: seeds}
	if os.Getenv("GDB_TCK") != "" || os.Getenv("GDB_TEST_DATA") != "" {
		for _, name := range files(t) {
			for _, s := range scenarios(t, name) {
				for _, step := range s.Steps {
					f.whole = append(f.whole, step.Query)
				}
			}
		}
	}
	for _, text := range f.whole {
		at := 0
		for _, to := range begins.FindAllStringIndex(text, -1) {
			f.pieces = append(f.pieces, text[at:to[0]])
			at = to[0]
		}
		f.pieces = append(f.pieces, text[at:])
	}
	return f
}

func (f *fuzzer) some() string {
	if f.IntN(2) == 0 {
		return f.valid.statement()
	}
	return f.whole[f.IntN(len(f.whole))]
}

// statement returns a random statement, one with pieces of others, or one with other bytes.
func (f *fuzzer) statement() string {
	switch f.IntN(4) {
	case 0:
		return f.valid.statement()
	case 1:
		text := ""
		for range 1 + f.IntN(8) {
			text += f.pieces[f.IntN(len(f.pieces))] + " "
		}
		return text
	case 2:
		text := f.some()
		if at := begins.FindAllStringIndex(text, -1); len(at) > 0 {
			from := at[f.IntN(len(at))][0]
			to := from + f.IntN(len(text)-from)
			text = text[:from] + f.pieces[f.IntN(len(f.pieces))] + " " + text[to:]
		}
		return text
	}
	text := []byte(f.some())
	for range 1 + f.IntN(4) {
		text = f.mutate(text)
	}
	return string(text)
}

// mutate changes, drops, inserts or repeats bytes.
func (f *fuzzer) mutate(text []byte) []byte {
	if len(text) == 0 {
		return []byte{byte(f.IntN(256))}
	}
	at := f.IntN(len(text))
	to := min(at+1+f.IntN(12), len(text))
	switch f.IntN(5) {
	case 0:
		text[at] = byte(f.IntN(256))
	case 1:
		text[at] = `(){}[]<>-=*|:;,.'"$0123456789`[f.IntN(29)]
	case 2:
		return append(text[:at:at], text[to:]...)
	case 3:
		return append(append(text[:to:to], text[at:to]...), text[to:]...)
	case 4:
		return append(append(text[:at:at], f.pieces[f.IntN(len(f.pieces))]...), text[at:]...)
	}
	return text
}

// These bound a fuzzed statement.
const (
	fuzzTime = 30 * time.Millisecond
	fuzzRows = 200
	fuzzRoom = 4 << 20
	// fuzzStuck is when a statement that was cancelled is taken to run for ever.
	fuzzStuck = 2 * time.Minute
)

// run runs a statement with its bounds, and returns what became of it.
func (f *fuzzer) run(t *testing.T, g *memory, text string) (what string) {
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("%q panics: %v\n%s", text, p, debug.Stack())
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), fuzzTime)
	defer cancel()
	stuck := time.AfterFunc(fuzzStuck, func() {
		panic(fmt.Sprintf("%q was cancelled and runs on", text))
	})
	defer stuck.Stop()
	var held atomic.Int64
	o := plain.Options{Params: value.Map{"y": int64(1)}, Grow: func(n int64) error {
		if held.Add(n) > fuzzRoom {
			held.Add(-n)
			return &mem.LimitError{What: "a statement", Want: n, Used: fuzzRoom, Limit: fuzzRoom}
		}
		return nil
	}}
	if f.IntN(4) > 0 {
		o.Engine = &engine.Engine{Source: newSource(g, int64(f.IntN(3)*50))}
	}
	q, err := plain.Prepare(text, o)
	if err != nil {
		return "refused"
	}
	rows := 0
	err = q.Run(ctx, g, o, func(row []any) error {
		if _, err := value.Text(value.List(row)); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if rows++; rows > fuzzRows {
			cancel()
		}
		return nil
	})
	switch {
	case ctx.Err() != nil:
		return "cancelled"
	case err != nil:
		return "failed"
	}
	return "answered"
}

// TestFuzz holds that no statement panics and that all can be cancelled. GDB_FUZZ_STATEMENTS is how
// many there are; GDB_FUZZ_SEED makes others.
func TestFuzz(t *testing.T) {
	count, seed := 4000, uint64(1)
	for name, set := range map[string]func(uint64){
		"GDB_FUZZ_STATEMENTS": func(n uint64) { count = int(n) },
		"GDB_FUZZ_SEED":       func(n uint64) { seed = n },
	} {
		if text := os.Getenv(name); text != "" {
			n, err := strconv.ParseUint(text, 10, 32)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			set(n)
		}
	}
	r := rand.New(rand.NewPCG(seed, 0))
	f := newFuzzer(t, r)
	became := map[string]int{}
	var g *memory
	for i := range count {
		if i%100 == 0 {
			g = randomGraph(r, 1+r.IntN(30), r.IntN(120))
		}
		became[f.run(t, g, f.statement())]++
	}
	for _, what := range []string{"answered", "refused"} {
		if became[what] < count/20 {
			t.Errorf("of %d statements %d are %s", count, became[what], what)
		}
	}
	t.Logf("%d statements: %v", count, became)
}
