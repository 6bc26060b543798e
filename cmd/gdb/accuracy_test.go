package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gdb/cmd/gdb/cli"
)

// realGraph returns the directory of a graph below GDB_TEST_DATA, or the end of the test.
func realGraph(t *testing.T, name string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("trains on a real graph")
	}
	root := os.Getenv("GDB_TEST_DATA")
	if root == "" {
		t.Skip("GDB_TEST_DATA names no directory of graphs")
	}
	dir := filepath.Join(root, name)
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no graph %s: %v", name, err)
	}
	return dir
}

// gdbOutput runs gdb in this process, and returns its exit code and what it wrote.
func gdbOutput(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, bad strings.Builder
	code = execute(t.Context(), args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &bad})
	return code, out.String(), bad.String()
}

// TestAccuracy trains models on real graphs, GraphSAGE with the settings of docs/training.md and
// others with those of bench/accuracy.py, and holds the mean test figure of a few seeds or splits
// against what the model is known to reach.
func TestAccuracy(t *testing.T) {
	for _, c := range []struct {
		name, flags string
		each        []string // flags of the trainings
		least       float64
	}{
		{"cora", "--fanout 10,10 --lr 0.01 --weight-decay 1e-4 --dropout 0.7 --epochs 60",
			[]string{"--seed=1"}, 0.79},
		{"cora", "--model gcn --fanout all,all --lr 0.01 --epochs 300 --patience 50 " +
			"--eval-every 2", []string{"--seed=1"}, 0.81},
		{"cora", "--model gat --heads 8 --fanout all,all --lr 0.01 --dropout 0.6 --epochs 100 " +
			"--eval-every 2", []string{"--seed=1"}, 0.80},
		// A quarter of the epochs, and not yet the best figure, but one that needs all layers.
		{"minesweeper", "--metric roc-auc --residual --norm layer --fanout all,all,all,all,all " +
			"--batch 5000 --lr 0.006 --weight-decay 0 --dropout 0.2 --input-dropout 0 " +
			"--epochs 100 --eval-every 20", []string{"--split=0"}, 0.90},
		{"amazon-photo", "--fanout 10,10 --lr 0.03 --weight-decay 1e-4 --epochs 60 --eval-every 6",
			[]string{"--split=0", "--split=1"}, 0.90},
		// The largest by far; one split, seldom evaluated, keeps the test short.
		{"coauthor-cs", "--fanout 10,10 --lr 0.03 --weight-decay 1e-4 --epochs 18 --eval-every 6",
			[]string{"--split=0"}, 0.90},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, store := realGraph(t, c.name), filepath.Join(t.TempDir(), "g.gdb")
			code, _, stderr := gdbOutput(t, "ingest", dir, "--undirected", "--normalize", "row",
				"--memory", "1GiB", "--out", store)
			if code != 0 {
				t.Fatalf("ingest: exit code %d: %s", code, stderr)
			}
			args := append(strings.Fields("train "+store+" --hidden 64 --json --quiet "+
				"--memory 2GiB "+c.flags), "")
			sum := 0.0
			for _, flag := range c.each {
				args[len(args)-1] = flag
				code, stdout, stderr := gdbOutput(t, args...)
				if code != 0 {
					t.Fatalf("train %s: exit code %d: %s", flag, code, stderr)
				}
				sum += testValue(t, stdout)
			}
			if mean := sum / float64(len(c.each)); mean < c.least {
				t.Errorf("mean test accuracy %.4f, want %g", mean, c.least)
			} else {
				t.Logf("mean test accuracy %.4f", mean)
			}
		})
	}
}

// testValue returns the test metric in the last line of a training's --json.
func testValue(t *testing.T, stdout string) float64 {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	var done struct {
		Event string
		Test  *float64
	}
	last := lines[len(lines)-1]
	if err := json.Unmarshal([]byte(last), &done); err != nil || done.Test == nil {
		t.Fatalf("last line %q: %v", last, err)
	}
	return *done.Test
}

// TestNoFeatures asks for a training on a graph without features: it is refused, with what to do.
func TestNoFeatures(t *testing.T) {
	dir, store := realGraph(t, "pubmed-nofeat"), filepath.Join(t.TempDir(), "g.gdb")
	code, _, stderr := gdbOutput(t, "ingest", dir, "--undirected", "--out", store)
	if code != 0 {
		t.Fatalf("ingest: exit code %d: %s", code, stderr)
	}
	code, stdout, stderr := gdbOutput(t, "train", store)
	if code != exitFailed || stdout != "" || !strings.Contains(stderr, "no features") ||
		!strings.Contains(stderr, "--features") {
		t.Errorf("exit code %d, want %d: %s%s", code, exitFailed, stdout, stderr)
	}
}
