package main

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// damagedRunCommands read the run a of a store of nodes to predict, or of links where they say so.
var damagedRunCommands = []struct {
	line  string // STORE is the store, DIR a folder for files
	links bool
}{
	{line: "eval STORE --run a"}, {line: "eval STORE"},
	{line: "predict STORE --run a --out DIR/p.csv --force"},
	{line: "embed STORE --run a --out DIR/e.npy --force"},
	{line: "report STORE --run a --out DIR/r.html --force"},
	{line: "report STORE --runs b,a --out DIR/r.html --force"},
	{line: "runs STORE"}, {line: "runs STORE --json"}, {line: "runs STORE show a"},
	{line: "runs STORE compare b a"}, {line: "runs STORE compare a b --json"},
	{line: "runs STORE plot b a"}, {line: "runs STORE plot a --out DIR/r.svg --force"},
	{line: "runs STORE export a --out DIR/w.safetensors --force"},
	{line: "train STORE --resume a --epochs 3"},
	{line: "shell STORE -c RUNS"}, {line: "shell STORE -c RUNS_PLOT_a"},
	{line: "eval STORE --run a", links: true},
	{line: "predict STORE --run a --head n1 --relation r --top 3", links: true},
	{line: "embed STORE --run a --out DIR/e.npy --force", links: true},
	{line: "report STORE --run a --out DIR/r.html --force", links: true},
	{line: "report STORE --runs b,a --out DIR/r.html --force", links: true},
	{line: "runs STORE show a", links: true}, {line: "runs STORE compare b a", links: true},
	{line: "runs STORE plot a", links: true},
	{line: "train STORE --task link --resume a --epochs 3", links: true},
	{line: "shell STORE -c RUNS_PLOT_a", links: true},
	{line: "shell STORE -c NEAREST_n1_TOP_2", links: true},
}

// TestDamagedRunIsDamage flips a bit of the run.json of a run: each command that reads the run ends
// with exit code 3, and names the file.
func TestDamagedRunIsDamage(t *testing.T) {
	dir := t.TempDir()
	stores := map[bool]string{false: filepath.Join(dir, "nodes.gdb"),
		true: filepath.Join(dir, "links.gdb")}
	mustGDB(t, append(csvGraph(t, dir, 300, 1500), "--out", stores[false])...)
	mustGDB(t, append(linkText(t, dir), "--out", stores[true])...)
	for _, run := range []string{"b", "a"} {
		mustGDB(t, "train", stores[false], "--run", run, "--epochs", "1", "--fanout", "3",
			"--hidden", "4")
		mustGDB(t, "train", stores[true], "--run", run, "--epochs", "1", "--task", "link",
			"--decoder", "distmult", "--dim", "4", "--negatives", "4")
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for _, c := range damagedRunCommands {
		store := filepath.Join(t.TempDir(), "g.gdb")
		if err := os.CopyFS(store, os.DirFS(stores[c.links])); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(store, "runs", "a", "run.json")
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		args := strings.Fields(strings.NewReplacer("STORE", store, "DIR", dir).Replace(c.line))
		if args[0] == "shell" {
			args[len(args)-1] = strings.ReplaceAll(args[len(args)-1], "_", " ")
		}
		at, bit := r.IntN(len(b)), r.IntN(8)
		b[at] ^= 1 << bit
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		code, out, errs := said(args...)
		said := strings.Join(strings.Fields(errs), "")
		if code != exitDamaged || !strings.Contains(said, "runs/a/run.json") {
			t.Errorf("bit %d of byte %d: gdb %s: exit code %d, want %d and the name of the file: "+
				"%s%s", bit, at, c.line, code, exitDamaged, out, errs)
		}
	}
}
