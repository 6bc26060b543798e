package main

import (
	"encoding/binary"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gdb/internal/bug"
	"gdb/internal/mem"
	"gdb/internal/tables"
	"gdb/kv"
	"gdb/layout"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	// hostileCasesEnv sets how many cases TestHostileStores tries, hostileCases otherwise.
	hostileCasesEnv = "GDB_TEST_HOSTILE"
	hostileCases    = 400
	// hostileHang is how long a command of some milliseconds may take before it hangs, on the
	// slowest machine.
	hostileHang = time.Minute
	// hostileMemory bounds each command; the whole test, with what it keeps itself, stays below
	// hostileMost.
	hostileMemory, hostileMost = "256MiB", 2 << 30
)

// hostileStore is a sound store that cases are made from.
type hostileStore struct {
	dir  string
	meta *kv.Meta
	sets map[string]*roaring.Bitmap
	data map[string][]byte // files outside the catalog, by path relative to the store
}

// buildHostile ingests a graph with a hub whose list takes several blocks, and trains a run, which
// keeps its neighbor cache too, or runs with these arguments.
func buildHostile(t *testing.T, graph func(t *testing.T, dir string) []string,
	trainings ...[]string) *hostileStore {
	t.Helper()
	dir := t.TempDir()
	store := filepath.Join(dir, "g.gdb")
	mustGDB(t, append(graph(t, dir), "--out", store)...)
	if len(trainings) == 0 || !slices.Contains(trainings[0], "link") {
		trainings = append([][]string{{"--run", "r", "--epochs", "1", "--fanout", "3,3",
			"--hidden", "4", "--batch", "200", "--topology", "paged"}}, trainings...)
	}
	for _, args := range trainings {
		mustGDB(t, append([]string{"train", store, "--memory", hostileMemory}, args...)...)
	}
	st, err := layout.Open(t.Context(), vfs.Default, store)
	if err != nil {
		t.Fatal(err)
	}
	s := &hostileStore{dir: store, meta: st.Meta(), data: map[string][]byte{}}
	names := []string{"labeled"}
	for _, split := range st.Meta().Splits {
		names = append(names, split.Name)
	}
	if _, s.sets, err = st.Catalog().Splits(t.Context(), 0, names...); err != nil {
		t.Fatal(err)
	}
	// The empty ones too: some of the catalog are, and it is damaged without them.
	err = filepath.WalkDir(store, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(store, path)
		if err == nil {
			s.data[rel], err = os.ReadFile(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// hostileNodes is the number of nodes, and hostileHub has edges from half of them and more.
const hostileNodes, hostileHub = 1500, 7

// hostileEdges returns the ends of edges; each second leads to the hub.
func hostileEdges() (edges [][2]int) {
	r := rand.New(rand.NewPCG(5, 6))
	for i := range 6 * hostileNodes {
		to := r.IntN(hostileNodes)
		if i%2 == 0 {
			to = hostileHub
		}
		edges = append(edges, [2]int{i % hostileNodes, to})
	}
	return edges
}

// hostileText writes a graph with string ids, types, weights and times as text, and returns the
// arguments that ingest it.
func hostileText(t *testing.T, dir string) []string {
	t.Helper()
	args := csvGraph(t, dir, hostileNodes, 1)
	var e strings.Builder
	e.WriteString("src,dst,type,weight,time\n")
	for i, ends := range hostileEdges() {
		fmt.Fprintf(&e, "n%d,n%d,%s,%d,%d\n", ends[0], ends[1], []string{"a", "b"}[i%2], i%7, i)
	}
	if err := os.WriteFile(filepath.Join(dir, "edges.csv"), []byte(e.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return append(args, "--keep-duplicates", "--direction", "both", "--rel-col", "type",
		"--weight-col", "weight", "--time-col", "time")
}

// hostileArrays writes a graph with multi-labels and dense ids as arrays.
func hostileArrays(t *testing.T, dir string) []string {
	t.Helper()
	var edges, features, labels, splits [3][]byte
	le := binary.LittleEndian
	for _, ends := range hostileEdges() {
		edges[0] = le.AppendUint64(le.AppendUint64(edges[0], uint64(ends[0])), uint64(ends[1]))
	}
	for v := range uint64(hostileNodes) {
		for k := range uint64(5) {
			features[0] = le.AppendUint32(features[0], math.Float32bits(float32(v%3*k)))
		}
		labels[0] = le.AppendUint64(le.AppendUint64(labels[0], v), v%3)
		labels[0] = le.AppendUint64(le.AppendUint64(labels[0], v), v%11)
		splits[v%3] = le.AppendUint64(splits[v%3], v)
	}
	write := func(name, descr string, width uint64, b []byte) {
		shape := []uint64{uint64(len(b)) / 8 / max(width, 1), width}
		if descr == "<f4" {
			shape[0] *= 2
		}
		if width == 0 {
			shape = shape[:1]
		}
		w, err := tables.CreateArray(vfs.Default, filepath.Join(dir, name), descr, shape...)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(b); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	write("edges.npy", "<i8", 2, edges[0])
	write("features.npy", "<f4", 5, features[0])
	write("labels_coo.npy", "<i8", 2, labels[0])
	for i, name := range []string{"train_ids", "val_ids", "test_ids"} {
		write(name+".npy", "<i8", 0, splits[i])
	}
	return []string{"ingest", dir, "--undirected", "--partitioner", "random", "--partitions", "3",
		"--feature-dtype", "bf16"}
}

func mustGDB(t *testing.T, args ...string) {
	t.Helper()
	if code, out := hostileRun(t, args...); code != 0 {
		t.Fatalf("gdb %s: exit %d\n%s", strings.Join(args, " "), code, out)
	}
}

// hostileRun runs a command in this process and returns its exit code and output.
func hostileRun(t *testing.T, args ...string) (int, string) {
	t.Helper()
	return hostileRunIn(t.Context(), t, args...)
}

// hostileCommand is a command that reads a store in some way.
type hostileCommand struct {
	name string
	args func(store, scratch string) []string
}

var hostileCommands = []hostileCommand{
	{"check", func(s, _ string) []string { return []string{"check", s, "--full"} }},
	{"info", func(s, _ string) []string { return []string{"info", s} }},
	{"eval", func(s, _ string) []string { return []string{"eval", s, "--run", "r"} }},
	{"predict", func(s, dir string) []string {
		return []string{"predict", s, "--run", "r", "--out", filepath.Join(dir, "p.csv"),
			"--force"}
	}},
	{"resume", func(s, _ string) []string {
		return []string{"train", s, "--resume", "r", "--epochs", "2"}
	}},
	{"train resident", func(s, _ string) []string {
		return []string{"train", s, "--epochs", "1", "--fanout", "4,4", "--hidden", "4", "--batch",
			"300", "--topology", "resident", "--cache", "static"}
	}},
	{"train paged", func(s, _ string) []string {
		return []string{"train", s, "--epochs", "1", "--fanout", "3,3", "--hidden", "4", "--batch",
			"300", "--topology", "paged", "--cache", "belady"}
	}},
	{"plan", func(s, _ string) []string { return []string{"plan", s} }},
	{"shell", func(s, _ string) []string { return []string{"shell", s} }},
}

// hostileStatements name nodes as both stores can: the ids of one are n0, n1, …, of the other 0, 1,
// ….
var hostileStatements = []string{"NEIGHBORS %s7 IN LIMIT 5000", "NEIGHBORS %s3 OUT",
	"NEIGHBORS %s1 HOPS 2", "NEIGHBORS RANDOM 200 BOTH COUNT", "DEGREES IN TOP 5", "DEGREES",
	"SAMPLE %s7 FANOUT 3,3 SHOW layers", "SAMPLE SPLIT train FANOUT 5", "FEATURES %s7",
	"LABELS %s7",
	"STATS GRAPH", "STATS PARTITIONS", "STATS BUCKETS", "PATH %s1 TO %s9",
	"MATCH (a {id: '%s7'})<-[]-(b) RETURN b LIMIT 9", "DESCRIBE", "RUNS", "STATS CACHE RUN r",
	"SIMULATE CACHE RUN r", "CHECK", "BLOCK 'topology/in.csc' AT 2 DECODE"}

// TestHostileStores reads stores whose checksums are right and whose contents are not, with files
// of absurd sizes and special ones: no command may panic, hang, or take more memory than it may;
// each ends well or says that the store is damaged.
func TestHostileStores(t *testing.T) {
	cases := hostileCases
	if n, err := strconv.Atoi(os.Getenv(hostileCasesEnv)); err == nil {
		cases = n
	}
	if testing.Short() {
		t.Skip("reads hundreds of stores")
	}
	if _, err := os.Stat("/dev/shm"); err == nil {
		t.Setenv("TMPDIR", "/dev/shm") // many files: the test is not about the disk
	}
	stores := []*hostileStore{buildHostile(t, hostileText), buildHostile(t, hostileArrays)}
	seed := uint64(1) // the same in every run of CI; others are tried by hand
	if n, err := strconv.ParseUint(os.Getenv("GDB_TEST_SEED"), 10, 64); err == nil {
		seed = n
	}
	h := &hostility{r: rand.New(rand.NewPCG(seed, 1)), codes: map[string]int{}}
	now := "before the first case"
	bug.OnPanic(func(what any, stack []byte) {
		fmt.Fprintf(os.Stderr, "seed %d, %s: panic: %v\n%s", seed, now, what, stack)
		os.Exit(1)
	})
	scratch := t.TempDir()
	dir := filepath.Join(scratch, "g.gdb")
	for i := range cases {
		s := stores[h.r.IntN(len(stores))]
		what, damaged := h.make(t, s, dir)
		c := hostileCommands[h.r.IntN(len(hostileCommands))]
		now = fmt.Sprintf("case %d: %s: %s", i, c.name, what)
		watch := time.AfterFunc(hostileHang, func() {
			debug.SetTraceback("all")
			panic("seed " + fmt.Sprint(seed) + ", " + now + ": hangs")
		})
		started := time.Now()
		args := append(c.args(dir, scratch), "--memory", hostileMemory, "--quiet", "--threads", "2")
		if c.name == "shell" {
			stmt := hostileStatements[h.r.IntN(len(hostileStatements))]
			stmt = strings.ReplaceAll(stmt, "%s", s.prefix())
			args, now = append(args, "-c", stmt), now+": "+stmt
		}
		code, out := hostileRun(t, args...)
		watch.Stop()
		h.note(t, c.name, now, code, out, damaged, time.Since(started))
	}
	_, peak := mem.RSS()
	t.Logf("seed %d: exit codes %v, slowest %v, at most %s of memory", seed, h.codes, h.slowest,
		mem.FormatSize(peak))
	if peak > hostileMost {
		t.Errorf("the process took %s, more than %s", mem.FormatSize(peak),
			mem.FormatSize(hostileMost))
	}
}

// note holds what a command said against what it may say.
func (h *hostility) note(t *testing.T, command, now string, code int, out string, damaged bool,
	took time.Duration) {
	h.codes[fmt.Sprintf("%s %d", command, code)]++
	if took > h.slowest.took {
		h.slowest.took, h.slowest.at = took, now
	}
	switch {
	case code == exitDone && command == "check" && damaged:
		t.Errorf("%s: the check finds nothing", now)
	case code == exitDone || code == exitDamaged:
	case slices.ContainsFunc(hostileExcuses, func(e string) bool {
		return strings.Contains(out,
			e)
	}):
	default:
		t.Errorf("%s: exit %d: %s", now, code, out)
	}
}

// prefix begins the ids of nodes.
func (s *hostileStore) prefix() string {
	if s.meta.IDs.Kind.Text() {
		return "n"
	}
	return ""
}
