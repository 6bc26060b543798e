package shell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/shell/lang"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestTerminal holds what an interactive session writes where: results on one stream, prompts,
// errors and the timing line on the other; a failed statement does not end it.
func TestTerminal(t *testing.T) {
	store := layouttest.Build(t, vfs.NewMem(), "s", plainGraph())
	var out, notes bytes.Buffer
	err := Run(t.Context(), Options{Store: store, Dev: mustDevice(t), Out: &out, Err: &notes,
		In:    strings.NewReader("DEGREES\nOF 5;\nDEGREES OF 99; NEIGBORS 5;\nDEGREES OF 5;"),
		InTTY: true, OutTTY: true, ErrTTY: true, Seed: 1, Memory: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "│ 5    │ in        │ 2      │"); n != 2 {
		t.Errorf("%d results, want 2:\n%s", n, out.String())
	}
	// What opening the files reads is not this test's business.
	got := regexp.MustCompile(`[0-9.]+ ms, |[0-9]+ blocks .0 cached., .*`).ReplaceAllString(
		notes.String(), "")
	want := `gdb> ...> 1 row, 
gdb> shell: DEGREES: id "99": not found: ids are 0 to 9
syntax error at column 1: unknown statement "NEIGBORS"; did you mean NEIGHBORS?
  NEIGBORS 5;
  ^
gdb> 1 row, 1 block (1 cached), 0 B read
`
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// TestNarrowTerminal holds that a box without its last columns says how to see them, and that this
// shows them.
func TestNarrowTerminal(t *testing.T) {
	store := layouttest.Build(t, vfs.NewMem(), "s", plainGraph())
	var out bytes.Buffer
	err := Run(t.Context(), Options{Store: store, Dev: mustDevice(t), Out: &out, Err: io.Discard,
		In: strings.NewReader("DEGREES OF 5;\n.mode line\n.last\n"), InTTY: true, OutTTY: true,
		Width: func() int { return 20 }, Memory: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	box, rest, ok := strings.Cut(out.String(),
		"2 of 3 columns shown; .mode line, then .last for all\n")
	if !ok || strings.Contains(box, "degree") || !strings.Contains(rest, "degree = 2") {
		t.Errorf("got:\n%s", out.String())
	}
}

func TestQuietTerminal(t *testing.T) {
	store := layouttest.Build(t, vfs.NewMem(), "s", plainGraph())
	var out, notes bytes.Buffer
	err := Run(t.Context(), Options{Store: store, Dev: mustDevice(t), Out: &out, Err: &notes,
		In: strings.NewReader("DEGREES;\n"), InTTY: true, ErrTTY: true, Quiet: true,
		Memory: 64 << 20})
	if err != nil || notes.Len() > 0 || !strings.HasPrefix(out.String(), "direction,degrees") {
		t.Errorf("%v, %q, %q", err, out.String(), notes.String())
	}
}

func TestTimingLine(t *testing.T) {
	got := timingLine(1204, 3100*time.Microsecond, cost{reads: 10, bytes: 100, hits: 5},
		cost{reads: 13, bytes: 100 + 192<<10, hits: 43})
	if want := "1,204 rows, 3.1 ms, 41 blocks (38 cached), 192.0 KiB read"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// cancelWriter cancels a context with the first byte written.
type cancelWriter struct {
	cancel context.CancelFunc
	wrote  int
}

func (w *cancelWriter) Write(b []byte) (int, error) {
	w.cancel()
	w.wrote += len(b)
	return len(b), nil
}

// wideGraph has much to show: a hub, and features.
func wideGraph() layouttest.Graph {
	g := layouttest.Random(5, 30_000, 200_000)
	g.Dim, g.Features = 16, layouttest.Features(g.Nodes, 16)
	g.Splits = map[string][]layout.NodeID{"all": nil}
	for v := range g.Nodes {
		g.Splits["all"] = append(g.Splits["all"], layout.NodeID(v))
	}
	return g
}

// TestCancel holds that a statement ends soon after its context: it has written a buffer or two
// of many when it notices.
func TestCancel(t *testing.T) {
	store, dev := layouttest.Build(t, vfs.NewMem(), "s", wideGraph()), mustDevice(t)
	for _, stmt := range []string{"NEIGHBORS SPLIT all", "NEIGHBORS SPLIT all HOPS 1",
		"DEGREES OF SPLIT all", "FEATURES SPLIT all"} {
		ctx, cancel := context.WithCancel(t.Context())
		w := &cancelWriter{cancel: cancel}
		err := Run(ctx, Options{Store: store, Dev: dev, Out: w, Err: io.Discard, Mode: "csv",
			Statements: []string{stmt, "DEGREES"}, KeepGoing: true, Memory: 64 << 20})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want it cancelled", stmt, err)
		}
		if w.wrote > 3*outBytes {
			t.Errorf("%s: %d bytes were written after the end", stmt, w.wrote)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, st := range lang.Statements {
		stmt := strings.NewReplacer("42", "4", "43", "5", "train", "all").Replace(st.Example)
		err := Run(ctx, Options{Store: store, Dev: dev, Out: io.Discard, Err: io.Discard,
			Statements: []string{stmt}, Memory: 64 << 20})
		if err == nil {
			t.Errorf("%s succeeded under a cancelled context", st.Head)
		}
	}
}

// heapWriter watches the live heap while output streams through it.
type heapWriter struct {
	wrote, peak uint64
	r           *rand.Rand
}

func (w *heapWriter) Write(b []byte) (int, error) {
	w.wrote += uint64(len(b))
	if w.r.IntN(16) == 0 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		w.peak = max(w.peak, m.HeapAlloc)
	}
	return len(b), nil
}

// TestOutputStreams holds that results are not kept in memory, in any mode but the box, which
// keeps what it shows.
func TestOutputStreams(t *testing.T) {
	store, dev := layouttest.Build(t, vfs.NewMem(), "s", wideGraph()), mustDevice(t)
	for _, mode := range []string{"csv", "tsv", "json", "jsonl", "md"} {
		for _, stmt := range []string{"FEATURES SPLIT all", "NEIGHBORS SPLIT all"} {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			w := &heapWriter{r: rand.New(rand.NewPCG(1, 1))}
			err := Run(t.Context(), Options{Store: store, Dev: dev, Out: w, Err: io.Discard,
				Mode: mode, Statements: []string{stmt}, Memory: 64 << 20})
			if err != nil {
				t.Fatal(err)
			}
			grown := int64(w.peak) - int64(m.HeapAlloc)
			if w.peak == 0 || w.wrote < 2<<20 || grown > 3<<20 {
				t.Errorf("%s as %s: %d bytes were written, the heap grew by %d", stmt, mode,
					w.wrote, grown)
			}
		}
	}
}

// TestReadersDoNotLock holds that a second shell, and a writer of the catalog, are never locked
// out by an open one.
func TestReadersDoNotLock(t *testing.T) {
	fs := vfs.NewMem()
	g := plainGraph()
	g.Splits = layouttest.Splits(g.Nodes)
	store, dev := layouttest.Build(t, fs, "s", g), mustDevice(t)
	in, typed := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- Run(t.Context(), Options{Store: store, Dev: dev, In: in, Out: io.Discard,
			Err: io.Discard, Memory: 64 << 20})
	}()
	if _, err := fmt.Fprintln(typed, "NEIGHBORS SPLIT train;"); err != nil {
		t.Fatal(err)
	}
	if got := mustRun(t, store, dev, "csv", "DEGREES OF SPLIT val"); !strings.Contains(got, "in") {
		t.Errorf("the second shell answers %q", got)
	}
	if err := typed.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
