package lint

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// packageLinesMax is what a newcomer can hold in mind in an hour, without tests and generated code.
const packageLinesMax = 4000

// largeRooms are the packages that may have more lines than packageLinesMax, up to the budget here,
// because a wall inside them would part one idea. The reason stands beside each.
var largeRooms = map[string]int{
	"bench":                5200, // a measurement a file, one report of all
	"cmd/gdb":              5250, // the commands: one table of flags in, one call out
	"layout/ingest":        5670, // one pipeline from a source, sorted, with known ids or not, to a store or a level, resumed
	"layout/ingest/source": 6800, // what can be ingested: one contract, a file a format
	"layout/live":          5200, // a commit, of nodes and edges, typed or not, resumed: one lock, one transaction
	"layout/topology":      5700, // lists of any nodes and levels: a contract, ways to hold and merge them
	"sample/superbatch":    6050, // one life of a superbatch: sampled, planned, read and assembled
	"train":                6830, // the loop of a run, what it reports, what it predicts, and why
	"compute/kernel":       4860, // the CPU's kernels, one table, of two kinds of processor
	"compute/kernel/gen":   4550, // their assembly, generated, a file a family
	"train/link":           4420, // the loop of link prediction
	"shell/cypher/engine":  6050, // a pattern from its plan to its rows, also past memory
	"compute/program":      6480, // operations with their references, and the passes over them
}

// rooms lists the packages of each folder that has several, bottom up: a package may import those
// of its folder that stand above it in the list, and no others. A package that is missing here may
// not exist: a new one is a decision.
var rooms = map[string][]string{
	"internal": {
		"internal/bug",
		"internal/dense",
		"internal/sparse",
		"internal/rng",
		"internal/trace",
		"internal/pace",
		"internal/message",
		"internal/files",
		"internal/codec",
		"internal/codec/gen",
		"internal/mem",
		"internal/expect",
		"internal/tables",
		"internal/chart",
		"internal/testgraph",
		"internal/cuda/headers",
		"internal/cuda",
		"internal/cuda/cudatest",
		"internal/firsthour",
		"internal/lint",
	},
	"cmd": {
		"cmd/gdb/cli",
		"cmd/gdb/linkcmd",
		"cmd/gdb/predictcmd",
		"cmd/gdb/indexcmd",
		"cmd/gdb/searchcmd",
		"cmd/gdb/benches",
		"cmd/gdb/servecmd",
		"cmd/gdb",
	},
	"bench": {
		"bench/gen",
		"bench",
	},
	"blockdev": {
		"blockdev",
		"blockdev/devtest",
	},
	"kv": {
		"kv",
		"kv/ids",
		"kv/catalog",
	},
	"layout": {
		"layout",
		"layout/listcode",
		"layout/listcode/gen",
		"layout/listfile/gen",
		"layout/rowfile",
		"layout/columnfile",
		"layout/listfile",
		"layout/neighborcache",
		"layout/topology",
		"layout/edgetable",
		"layout/edgefile",
		"layout/ingest/extsort",
		"layout/partition",
		"layout/nodeids",
		"layout/nodeindex",
		"layout/openfiles",
		"layout/partitioner",
		"layout/algorithm",
		"layout/inspect",
		"layout/layouttest",
		"layout/edgetable/edgetabletest",
		"layout/ingest/input",
		"layout/splits",
		"layout/ingest/columnar",
		"layout/ingest/table",
		"layout/ingest/stream",
		"layout/ingest/stream/gen",
		"layout/ingest/source",
		"layout/ingest/schema",
		"layout/export",
		"layout/ingest/steps",
		"layout/ingest/tables",
		"layout/ingest/keys",
		"layout/ingest",
		"layout/parts",
		"layout/typedlevel",
		"layout/typedchange",
		"layout/typedtables",
		"layout/unfinished",
		"layout/live",
		"layout/live/livetest",
		"layout/draft",
	},
	"sample": {
		"sample/sampletest",
		"sample/rowcache/gen",
		"sample/draw",
		"sample/rowcache",
		"sample",
		"sample/bulk",
		"sample/cachesim",
		"sample/superbatch",
		"sample/partbuffer",
		"sample/loader",
		"sample/shared",
	},
	"serve": {
		"serve/protocol",
		"serve/web",
		"serve/ui",
		"serve",
	},
	"shell": {
		"shell/cypher/temporal",
		"shell/words",
		"shell/result",
		"shell/lang",
		"shell/graph",
		"shell/exec",
		"shell/match",
		"shell/cypher/ast",
		"shell/cypher/parse",
		"shell/cypher/value",
		"shell/columns",
		"shell/cypher/eval",
		"shell/cypher/check",
		"shell/cypher/plain",
		"shell/cypher/adjacency",
		"shell/cypher/vector",
		"shell/cypher/group",
		"shell/cypher/engine",
		"shell/cypher/tck",
		"shell/cypher/store",
		"shell/query",
		"shell",
	},
	"compute": {
		"compute/kernel",
		"compute/kernel/gen",
		"compute/kernel/gen/neon",
		"compute/kernel/amx",
		"compute/kernel/bf16",
		"compute/kernel/pq",
		"compute/decoder",
		"compute/backend",
		"compute/backend/cuda",
		"compute/program",
	},
	"train": {
		"train/columns",
		"train/setting",
		"train/model",
		"train/task",
		"train/explain",
		"train/search",
		"train/plan",
		"train/link/triples",
		"train/link/rank",
		"train/runs",
		"train/run",
		"train/export",
		"train/devicecache",
		"train/devicesample",
		"train/embedding",
		"train/optimize",
		"train/history",
		"train/link/entities",
		"train/ivf",
		"train/runs/vectors",
		"train/nearest",
		"train/link/encode",
		"train/link/paged",
		"train/exact",
		"train/calibrate",
		"train/link",
		"train/probe",
		"train/partitions",
		"train",
		"train/report",
	},
}

// TestRoomsImportDown holds the order of the packages inside each folder.
func TestRoomsImportDown(t *testing.T) {
	cmd := exec.Command("go", "list", "-e", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		from, _ := strings.CutPrefix(f[0], "gdb/")
		top, _ := folder(f[0])
		order, several := rooms[top]
		if !several {
			if strings.Contains(from, "/") && top != "cmd" {
				t.Errorf("%s: folder %q has several packages now: list them in rooms, bottom up",
					f[0], top)
			}
			continue
		}
		at := slices.Index(order, from)
		if at < 0 {
			t.Errorf("%s is not in rooms of internal/lint: add it where its imports stand above it",
				f[0])
			continue
		}
		for _, imported := range f[1:] {
			to, _ := strings.CutPrefix(imported, "gdb/")
			if i := slices.Index(order, to); i > at {
				t.Errorf("%s must not import %s: it stands below it in rooms; move what both need "+
					"down, or pass it in from above", f[0], imported)
			}
		}
	}
}

// TestRoomsAreSmall holds the sizes of packages.
func TestRoomsAreSmall(t *testing.T) {
	lines := map[string]int{}
	files, err := filepath.Glob(root + "/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"/*/*.go", "/*/*/*.go", "/*/*/*/*.go", "/*/*/*/*/*.go"} {
		more, err := filepath.Glob(root + pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, more...)
	}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(file, "_test.go") && !bytes.Contains(src,
			[]byte("// Code generated")) {
			rel, err := filepath.Rel(root, filepath.Dir(file))
			if err != nil {
				t.Fatal(err)
			}
			lines[filepath.ToSlash(rel)] += bytes.Count(src, []byte("\n"))
		}
	}
	for name, n := range lines {
		if limit := max(packageLinesMax, largeRooms[name]); n > limit {
			t.Errorf("package %s has %d lines, limit %d: make two packages of it with a narrow door "+
				"between them, or say in largeRooms why it is one idea", name, n, limit)
		}
	}
}

// TestPageNamesRooms holds that docs/packages.md shows every package.
func TestPageNamesRooms(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "packages.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, packages := range rooms {
		for _, name := range packages {
			word := filepath.Base(name)
			if !regexp.MustCompile(`\b` + regexp.QuoteMeta(word) + `\b`).Match(page) {
				t.Errorf("docs/packages.md does not name %s", name)
			}
		}
	}
}

// reaches bounds what a package imports over any number of steps: the number of packages of this
// module, and packages that it must not reach. A grammar that links kernels compiles, and its
// imports do not show it.
var reaches = []struct {
	from  string
	most  int
	never []string
}{
	{from: "gdb/shell/lang", most: 8},
	{from: "gdb/train/link/triples", most: 2},
	{from: "gdb/train/setting", most: 30, never: []string{"gdb/compute/kernel"}},
	{from: "gdb/train/runs", most: 33, never: []string{"gdb/compute/kernel"}},
	{from: "gdb/compute/program", most: 14, never: []string{"gdb/kv", "gdb/layout", "gdb/sample"}},
}

// TestReach holds what packages import over several steps.
func TestReach(t *testing.T) {
	for _, r := range reaches {
		cmd := exec.Command("go", "list", "-deps", "./"+strings.TrimPrefix(r.from, "gdb/"))
		cmd.Dir = root
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		var ours []string
		for _, path := range strings.Fields(string(out)) {
			if _, is := folder(path); is && path != r.from {
				ours = append(ours, path)
			}
		}
		if len(ours) > r.most {
			t.Errorf("%s reaches %d packages of ours, at most %d: %s", r.from, len(ours), r.most,
				strings.Join(ours, ", "))
		}
		for _, path := range r.never {
			if slices.Contains(ours, path) {
				t.Errorf("%s must not reach %s: take an interface, or pass the value in from above",
					r.from, path)
			}
		}
	}
}
