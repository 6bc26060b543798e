package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gdb/cmd/gdb/cli"

	"golang.org/x/sys/unix"
)

// lengthCases is how many cases TestHostileLengths tries unless hostileCasesEnv sets another
// number.
const lengthCases = 40

// lengthKind is a store with runs of some kinds, and the commands that read it.
type lengthKind struct {
	train    [][]string // further arguments of trainings
	commands []hostileCommand
}

// runCommands returns the commands that read a run.
func runCommands(run string, more ...hostileCommand) []hostileCommand {
	of := func(name string, args ...string) hostileCommand {
		return hostileCommand{name + " " + run, func(s, dir string) []string {
			all := []string{args[0], s}
			for _, a := range args[1:] {
				all = append(all, strings.ReplaceAll(a, "DIR", dir))
			}
			return all
		}}
	}
	return append([]hostileCommand{of("eval", "eval", "--run", run),
		of("resume", "train", "--resume", run, "--epochs", "3"),
		of("embed", "embed", "--run", run, "--out", "DIR/e.npy", "--force"),
		of("show", "runs", "show", run),
		of("plot", "runs", "plot", run, "--out", "DIR/r.svg", "--force"),
		of("compare", "runs", "compare", run), of("list", "runs"),
		of("shell", "shell", "-c", "RUNS PLOT "+run)}, more...)
}

// lengthKinds are stores with nodes to predict, of text and of arrays, and with links.
func lengthKinds() []lengthKind {
	whole := append([]hostileCommand{
		{"check", func(s, _ string) []string { return []string{"check", s} }},
		{"serve", func(s, dir string) []string {
			return []string{"serve", s, "--socket", filepath.Join(dir, "s")}
		}}}, hostileCommands...)
	of := func(run string) []hostileCommand {
		return runCommands(run, hostileCommand{"predict " + run, func(s, dir string) []string {
			return []string{"predict", s, "--run", run, "--out", filepath.Join(dir, "q.csv"),
				"--force"}
		}}, hostileCommand{"report " + run, func(s, dir string) []string {
			return []string{"report", s, "--run", run, "--out", filepath.Join(dir, "r.html"),
				"--force"}
		}}, hostileCommand{"export " + run, func(s, dir string) []string {
			return []string{"runs", s, "export", run, "--out", filepath.Join(dir, "w.safetensors"),
				"--force"}
		}})
	}
	near := func(run string) hostileCommand {
		return hostileCommand{"nearest " + run, func(s, _ string) []string {
			return []string{"shell", s, "-c", "NEAREST n3 RUN " + run}
		}}
	}
	small := []string{"--epochs", "1", "--fanout", "3,3", "--hidden", "4", "--batch", "200"}
	links := []string{"--task", "link", "--epochs", "1", "--dim", "8"}
	return []lengthKind{
		{[][]string{append([]string{"--run", "e", "--node-embedding", "4"}, small...),
			append([]string{"--run", "p", "--order", "dispersed", "--partitions", "4",
				"--partitions-in-memory", "2"}, small...)},
			slices.Concat(whole, of("e"), of("p"))},
		{[][]string{append([]string{"--run", "m"}, links...),
			append([]string{"--run", "d", "--order", "beta", "--partitions", "4",
				"--partitions-in-memory", "2"}, links...)},
			slices.Concat(whole[:2], hostileCommands[:2], runCommands("m", near("m")),
				runCommands("d", near("d")))},
	}
}

// linkText writes a graph with ids and types as text, whose edges are split.
func linkText(t *testing.T, dir string) []string {
	t.Helper()
	var e strings.Builder
	e.WriteString("src,dst,type\n")
	for i, ends := range hostileEdges() {
		fmt.Fprintf(&e, "n%d,n%d,%s\n", ends[0], ends[1], []string{"a", "b"}[i%2])
	}
	path := filepath.Join(dir, "links.csv")
	if err := os.WriteFile(path, []byte(e.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"ingest", "--edges", path, "--rel-col", "type", "--edge-split",
		"random=80/10/10"}
}

// odd makes a file of another length, or something else in its place.
func (h *hostility) odd(t *testing.T, path string) string {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if h.r.IntN(4) > 0 {
		lengths := []int64{1 << 40, 1 << 40, 1 << 40, 0, info.Size() / 2, info.Size() + 4096,
			info.Size() + 1}
		length := lengths[h.r.IntN(len(lengths))]
		if err := os.Truncate(path, length); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%d bytes long", length)
	}
	kinds := map[string]func() error{
		"a link in a circle": func() error { return os.Symlink(filepath.Base(path), path) },
		"a directory":        func() error { return os.Mkdir(path, 0o700) },
		"a pipe":             func() error { return unix.Mkfifo(path, 0o600) },
		"missing":            func() error { return nil }}
	what := slices.Sorted(maps.Keys(kinds))[h.r.IntN(len(kinds))]
	if err := errors.Join(os.Remove(path), kinds[what]()); err != nil {
		t.Fatal(err)
	}
	return what
}

// TestHostileLengths reads stores of which one file, of any kind, has another length than it had,
// 1 TiB above all, of which the disk holds nothing, or is something else, by every command that
// reads one: none hangs or panics.
func TestHostileLengths(t *testing.T) {
	if testing.Short() {
		t.Skip("reads dozens of stores")
	}
	cases := lengthCases
	if n, err := strconv.Atoi(os.Getenv(hostileCasesEnv)); err == nil {
		cases = n
	}
	if _, err := os.Stat("/dev/shm"); err == nil {
		t.Setenv("TMPDIR", "/dev/shm") // many files: the test is not about the disk
	}
	kinds := lengthKinds()
	stores := []*hostileStore{buildHostile(t, hostileText, kinds[0].train...),
		buildHostile(t, linkText, kinds[1].train...)}
	seed := uint64(1)
	if n, err := strconv.ParseUint(os.Getenv("GDB_TEST_SEED"), 10, 64); err == nil {
		seed = n
	}
	h := &hostility{r: rand.New(rand.NewPCG(seed, 2)), codes: map[string]int{}}
	scratch := t.TempDir()
	dir := filepath.Join(scratch, "g.gdb")
	over := 0
	for i := range cases {
		kind := i % len(stores)
		s := stores[kind]
		s.put(t, dir)
		names := slices.DeleteFunc(slices.Sorted(maps.Keys(s.data)), func(name string) bool {
			return strings.HasSuffix(name, "LOCK")
		})
		name := names[h.r.IntN(len(names))]
		what := h.odd(t, filepath.Join(dir, name))
		c := kinds[kind].commands[h.r.IntN(len(kinds[kind].commands))]
		now := fmt.Sprintf("case %d: %s: %s %s", i, c.name, name, what)
		watch := time.AfterFunc(hostileHang, func() {
			debug.SetTraceback("all")
			panic(fmt.Sprintf("seed %d, %s: hangs", seed, now))
		})
		args := append(c.args(dir, scratch), "--memory", hostileMemory, "--quiet", "--threads", "2")
		if c.name == "shell" {
			args = append(args, "-c", strings.ReplaceAll(hostileStatements[h.r.IntN(len(
				hostileStatements))], "%s", s.prefix()))
		}
		ctx, cancel := context.WithCancel(t.Context())
		if c.name == "serve" { // it would go on for ever
			time.AfterFunc(time.Second, cancel)
		}
		started := time.Now()
		code, out := hostileRunIn(ctx, t, args...)
		cancel()
		watch.Stop()
		took := time.Since(started)
		if took > 5*time.Second {
			over++
			t.Logf("%s: %v", now, took)
		}
		if c.name == "serve" && (code == exitDone || code == exitInterrupted) {
			continue
		}
		damaged := c.name == "check" && s.listed(name) && !strings.HasPrefix(name, "catalog")
		h.note(t, c.name, now, code, out, damaged, took)
	}
	t.Logf("seed %d: %d cases, %d above 5 s, exit codes %v, slowest %v", seed, cases, over,
		h.codes, h.slowest)
}

// put puts the store in place of dir.
func (s *hostileStore) put(t *testing.T, dir string) {
	t.Helper()
	err := os.RemoveAll(dir)
	for _, rel := range slices.Sorted(maps.Keys(s.data)) {
		path := filepath.Join(dir, rel)
		err = errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o700),
			os.WriteFile(path, s.data[rel], 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// hostileRunIn runs a command in this process until ctx ends, and returns its exit code and output.
func hostileRunIn(ctx context.Context, t *testing.T, args ...string) (int, string) {
	t.Helper()
	var out strings.Builder
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	code := execute(ctx, args, cli.Streams{In: null, Out: &out, Err: &out})
	return code, out.String()
}
