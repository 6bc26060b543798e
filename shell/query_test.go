package shell

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout/layouttest"
	"gdb/shell/lang"
	"gdb/shell/query"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/parquet-go/parquet-go"
)

// TestQueryTypes holds names and types of columns, empty cells, and what a statement is said to
// have cost.
func TestQueryTypes(t *testing.T) {
	store := layouttest.Build(t, vfs.NewMem(), "s", richGraph())
	dev := mustDevice(t)
	e := query.NewEngine(store, dev, mem.NewBudget(64<<20), 1)
	before := dev.Stats()
	got, err := e.Query(t.Context(), "NEIGHBORS ada VIA knows", nil)
	if err != nil {
		t.Fatal(err)
	}
	cols := []query.Column{{Name: "node", Type: query.String}, {Name: "direction",
		Type: query.String}, {Name: "neighbor", Type: query.String},
		{Name: "type", Type: query.String}, {Name: "weight", Type: query.Float}, {Name: "time",
			Type: query.Int}}
	rows := [][]any{{"ada", "out", "bob", "knows", 2.25, int64(9000)},
		{"ada", "out", "cyd o'neill", "knows", 0.25, int64(1000)}}
	if !reflect.DeepEqual(got.Columns, cols) || !reflect.DeepEqual(got.Rows, rows) {
		t.Errorf("got %v %v", got.Columns, got.Rows)
	}
	s, reads := got.Stats, dev.Stats().Reads-before.Reads
	if s.Rows != 2 || s.Read != reads || s.Blocks != s.Read+s.Cached || s.Time <= 0 {
		t.Errorf("%+v, the device did %d reads", s, reads)
	}
	got, err = e.Query(t.Context(), "LABELS ada,'cyd o''neill'", nil)
	if err != nil || len(got.Rows) != 2 || got.Rows[1][1] != nil {
		t.Errorf("%v: a node without a label: %v", err, got)
	}
	var syntax *lang.SyntaxError
	if _, err := e.Query(t.Context(), "LABELS", nil); !errors.As(err, &syntax) {
		t.Errorf("a syntax error: %v", err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// TestQueryBudget holds that a result which does not fit is an error, and that nothing stays held.
func TestQueryBudget(t *testing.T) {
	store := layouttest.Build(t, vfs.NewMem(), "s", wideGraph())
	budget := mem.NewBudget(8 << 20)
	e := query.NewEngine(store, mustDevice(t), budget, 1)
	var full *mem.LimitError
	if _, err := e.Query(t.Context(), "FEATURES SPLIT all", nil); !errors.As(err, &full) {
		t.Errorf("30,000 rows in 8 MiB: %v", err)
	}
	if _, err := e.Query(t.Context(), "NEIGHBORS 5", nil); err != nil {
		t.Errorf("and then: %v", err)
	}
	if err := e.Close(); err != nil || budget.Used() != 0 {
		t.Errorf("%d bytes are held: %v", budget.Used(), err)
	}
}

// TestQueryConcurrent runs statements at the same time, cold, and compares with one after another.
func TestQueryConcurrent(t *testing.T) {
	store, dev := layouttest.Build(t, vfs.NewMem(), "s", wideGraph()), mustDevice(t)
	stmts := make([]string, 24)
	for i := range stmts {
		stmts[i] = []string{"NEIGHBORS %d HOPS 2 COUNT", "PATH 3 TO %d", "DEGREES OF %d",
			"SAMPLE %d FANOUT 3,3 SHOW edges", "FEATURES %d", "NEIGHBORS %d"}[i%6]
		stmts[i] = fmt.Sprintf(stmts[i], 100+7*i)
	}
	want := make([]string, len(stmts))
	for i, stmt := range stmts {
		e := query.NewEngine(store, dev, mem.NewBudget(64<<20), 1)
		r, err := e.Query(t.Context(), stmt, nil)
		if err != nil {
			t.Fatal(err)
		}
		want[i] = fmt.Sprint(r.Columns, r.Rows)
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	e := query.NewEngine(store, dev, mem.NewBudget(64<<20), 1)
	var wait sync.WaitGroup
	for worker := range 4 {
		wait.Go(func() {
			for i := range stmts {
				at := (i*5 + worker*7) % len(stmts)
				r, err := e.Query(t.Context(), stmts[at], nil)
				if err != nil {
					t.Error(err)
				} else if got := fmt.Sprint(r.Columns, r.Rows); got != want[at] {
					t.Errorf("%s: got %s, want %s", stmts[at], got, want[at])
				}
			}
		})
	}
	wait.Wait()
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// TestIntoParquet reads a file of INTO back with another implementation.
func TestIntoParquet(t *testing.T) {
	fs := vfs.NewMem()
	store := layouttest.Build(t, fs, "s", richGraph())
	mustRun(t, store, mustDevice(t), "csv", "NEIGHBORS ada INTO 'n.parquet'")
	f, err := fs.Open("n.parquet")
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(f)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	type edge struct {
		Node      string  `parquet:"node"`
		Direction string  `parquet:"direction"`
		Neighbor  string  `parquet:"neighbor"`
		Type      string  `parquet:"type"`
		Weight    float64 `parquet:"weight"`
		Time      int64   `parquet:"time"`
	}
	got, err := parquet.Read[edge](bytes.NewReader(all), int64(len(all)))
	want := []edge{{"ada", "out", "bob", "cites", 0, 0}, {"ada", "out", "bob", "knows", 2.25, 9000},
		{"ada", "out", "cyd o'neill", "knows", 0.25, 1000}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v: got %v, want %v", err, got, want)
	}
}

// TestTraceIO holds that the reads of a statement are recorded, whole and in order.
func TestTraceIO(t *testing.T) {
	store, dev := layouttest.Build(t, vfs.NewMem(), "s", richGraph()), mustDevice(t)
	before := dev.Stats().Reads
	out := mustRun(t, store, dev, "csv",
		"TRACE IO ON; NEIGHBORS ada INTO 'n.csv'; TRACE IO OFF; TRACE IO LAST 1000")
	reads := int(dev.Stats().Reads - before)
	at := bytes.LastIndex([]byte(out), []byte("at_ms,"))
	if rows := mustCSV(t, out[at:]); len(rows)-1 != reads || rows[1][2] != "open" {
		t.Errorf("%d reads, recorded:\n%s", reads, out[at:])
	}
}

// TestStatsIO holds that reads are grouped by what they were for.
func TestStatsIO(t *testing.T) {
	store, dev := layouttest.Build(t, vfs.NewMem(), "s", richGraph()), mustDevice(t)
	for by, want := range map[string]string{"file": "ids/reverse.ids", "phase": "query",
		"op": "names"} {
		out := mustRun(t, store, dev, "csv", "NEIGHBORS ada INTO 'n.csv'; STATS IO BY "+by)
		rows := mustCSV(t, out[strings.Index(out, "\n"+by+",reads")+1:])
		if !slices.ContainsFunc(rows, func(r []string) bool { return r[0] == want }) {
			t.Errorf("STATS IO BY %s lacks %s:\n%v", by, want, rows)
		}
	}
}

// TestRuns lists a run, draws a metric of it, and shows its cache.
func TestRuns(t *testing.T) {
	fs := vfs.NewMem()
	store, dev := layouttest.Build(t, fs, "s", richGraph()), mustDevice(t)
	run := kv.RunMeta{Name: "r0001", Created: time.Unix(1e9, 0), Status: "done", Model: "sage",
		Epochs: 3, Best: 0.75, Test: 0.5, Metric: "accuracy"}
	if err := store.Catalog().PutRun(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	if err := fs.MkdirAll(store.Path("runs", "r0001"), 0o755); err != nil {
		t.Fatal(err)
	}
	writeFile(t, fs, store.Path("runs", "r0001", "metrics.jsonl"),
		`{"epoch":1,"loss":3,"nodes":100,"hit":0.25,"read":4096}
{"epoch":2,"loss":2,"nodes":100,"hit":0.5,"read":2048}
{"epoch":3,"loss":1,"val":0.75,"nodes":100,"hit":1,"read":0,"lists":50,"neighbor_hit":0.5}
`)
	for stmt, want := range map[string]string{
		"RUNS": "run,status,model,epochs,metric,best,test,created\n" +
			"r0001,done,sage,3,accuracy,0.75,0.5,2001-09-09 01:46:40\n",
		"STATS CACHE BY epoch": "run,epoch,cache,requests,hits,hit ratio,bytes read\n" +
			"r0001,1,features,100,25,0.25,4096\nr0001,2,features,100,50,0.5,2048\n" +
			"r0001,3,features,100,100,1,0\nr0001,3,neighbors,50,25,0.5,\n",
	} {
		if got := mustRun(t, store, dev, "csv", stmt); got != want {
			t.Errorf("%s: got %q, want %q", stmt, got, want)
		}
	}
	run.Name, run.Best, run.Test = "r0002", 0, 0
	if err := store.Catalog().PutRun(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[string]string{"csv": "r0002,done,sage,3,accuracy,,,",
		"json": `"best":null,"test":null`, "box": "│ accuracy │ -    │ -    │"} {
		if got := mustRun(t, store, dev, mode, "RUNS"); !strings.Contains(got, want) {
			t.Errorf("a run without a test lacks %q:\n%s", want, got)
		}
	}
	got := mustRun(t, store, dev, "csv", "RUNS PLOT r0001 METRIC loss")
	if !strings.HasPrefix(got, `"loss of r0001, 3 epochs"`) || !strings.Contains(got, " 3.00 ┼╮") {
		t.Errorf("the plot is\n%s", got)
	}
	_, err := query.NewEngine(store, dev, mem.NewBudget(1<<24), 1).Query(t.Context(),
		"RUNS PLOT r0001 METRIC los", nil)

	if err == nil || !strings.Contains(err.Error(), "did you mean loss?") {
		t.Errorf("a misspelled metric: %v", err)
	}
}
