package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"gdb/bench/gen"
	"gdb/internal/mem"

	"golang.org/x/sys/unix"
)

// gdbInGroup is a command that joins the cgroup of its first argument, and becomes gdb with the
// others.
func gdbInGroup() {
	path, err := exec.LookPath("gdb")
	if err == nil {
		err = mem.JoinCgroup(os.Args[1])
	}
	if err == nil {
		err = unix.Exec(path, append([]string{"gdb"}, os.Args[2:]...), os.Environ())
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(exitFailed)
}

// runBounded runs gdb with --memory in a cgroup of just as many bytes, page cache included: a
// process that takes more is killed.
func runBounded(t *testing.T, memory string, args ...string) {
	t.Helper()
	limit, err := mem.ParseSize(memory)
	if err != nil {
		t.Fatal(err)
	}
	group, err := mem.NewCgroup(limit)
	if err != nil {
		t.Skipf("no memory cgroup can be made here, so nothing is held against --memory: %v", err)
	}
	defer func() {
		if err := group.Remove(); err != nil {
			t.Error(err)
		}
	}()
	args = append(append([]string{group.Dir()}, args...), "--memory", memory)
	out, err := exec.CommandContext(t.Context(), "gdb-in-group", args...).CombinedOutput()
	if err != nil || group.Kills() > 0 {
		t.Fatalf("gdb %v: %v, killed for lack of memory %d times\n%s", args[1:], err, group.Kills(),
			out)
	}
	peak, err := group.Peak()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("gdb %s in %s: at most %s", args[1], memory, mem.FormatSize(peak))
}

// TestMemoryIsBounded runs commands on a graph of twice their memory, in cgroups of that memory.
func TestMemoryIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("writes some hundred megabytes")
	}
	dir := t.TempDir()
	arrays, store := filepath.Join(dir, "arrays"), filepath.Join(dir, "g.gdb")
	_, err := gen.Make(t.Context(), gen.Options{Kind: "rmat", Nodes: 1 << 16, Edges: 1 << 20,
		Dim: 1000, Classes: 5, TrainFrac: 0.02, Seed: 1, Out: arrays})
	if err != nil {
		t.Fatal(err)
	}
	const memory, exact = "128MiB", "176MiB" // exact evaluation keeps hidden states
	runBounded(t, memory, "ingest", arrays, "--undirected", "--out", store)
	if err := os.RemoveAll(arrays); err != nil {
		t.Fatal(err)
	}
	for _, cache := range []string{"belady", "sieve"} {
		runBounded(t, memory, "train", store, "--run", cache, "--cache", cache, "--fanout", "5,5",
			"--hidden", "16", "--batch", "200", "--epochs", "1", "--eval-mode", "sampled")
	}
	predicted := filepath.Join(dir, "p.parquet")
	runBounded(t, exact, "predict", store, "--run", "sieve", "--out", predicted, "--probabilities")
	runBounded(t, exact, "eval", store, "--run", "belady")
	runBounded(t, memory, "check", store, "--full")
	runBounded(t, memory, "shell", store, "-c", "NEIGHBORS RANDOM 50000 HOPS 2 COUNT; "+
		"DEGREES IN TOP 9; SAMPLE RANDOM 5000 FANOUT 10,10; SIMULATE CACHE RUN sieve BATCHES 20;")
}
