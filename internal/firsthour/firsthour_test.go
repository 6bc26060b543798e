// Package firsthour holds a test that does what a new user does: it takes files as people have them
// through gdb with no flags but those that name columns, and holds what comes out against the data.
package firsthour

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"gdb/internal/tables"
	"gdb/internal/testgraph"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// cora is the graph that the files are made of: papers, what they cite, their words and topics.
type cora struct {
	edges  [][2]uint64
	words  []float32 // (papers, width)
	labels []uint64
	width  int
}

// array reads a whole array.
func array(t *testing.T, dir, name string) (a *tables.Array, b []byte) {
	t.Helper()
	a, err := tables.OpenArray(vfs.Default, filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	s, err := a.Stream(0)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for s.Left() > 0 {
		part, err := s.Next(t.Context(), int(min(s.Left(), 1<<10)))
		if err != nil {
			t.Fatal(err)
		}
		b = append(b, part...)
	}
	return a, b
}

func loadCora(t *testing.T) *cora {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "cora")
	if err := testgraph.WriteCora(vfs.Default, dir); err != nil {
		t.Fatal(err)
	}
	c := &cora{}
	a, b := array(t, dir, "edges.npy")
	n := int(a.Shape[0])
	ends := make([]uint64, 2*n)
	a.DType.IDs(ends[:n], b, 0, 2)
	a.DType.IDs(ends[n:], b, 1, 2)
	for i := range n {
		c.edges = append(c.edges, [2]uint64{ends[i], ends[n+i]})
	}
	a, b = array(t, dir, "labels.npy")
	c.labels = make([]uint64, a.Shape[0])
	a.DType.IDs(c.labels, b, 0, 1)
	a, b = array(t, dir, "features.npy")
	c.width = int(a.Shape[1])
	c.words = make([]float32, len(c.labels)*c.width)
	a.DType.Floats(c.words, b)
	return c
}

// shape is how files are written.
type shape struct {
	name, sep, bom string
	index          bool // the column that pandas writes first
	head           [2]string
	id             func(i uint64) string
	ids            string // what gdb info calls the ids
}

// write writes an edge file and a node file.
func (s *shape) write(t *testing.T, c *cora) {
	t.Helper()
	topics := []string{"theory", "learning", "genetics", "nets", "bayes", "rules", "cases"}
	var e, n strings.Builder
	line := func(b *strings.Builder, row int, fields ...string) {
		if s.index && row < 0 {
			fields = append([]string{""}, fields...)
		} else if s.index {
			fields = append([]string{fmt.Sprint(row)}, fields...)
		}
		b.WriteString(strings.Join(fields, s.sep) + "\n")
	}
	e.WriteString(s.bom)
	n.WriteString(s.bom)
	line(&e, -1, s.head[0], s.head[1])
	for i, ends := range c.edges {
		line(&e, i, s.id(ends[0]), s.id(ends[1]))
	}
	fields := []string{"paper", "topic"}
	for k := range c.width {
		fields = append(fields, fmt.Sprintf("word%d", k))
	}
	line(&n, -1, fields...)
	for i, label := range c.labels {
		fields = append(fields[:0], s.id(uint64(i)), topics[label])
		for _, w := range c.words[i*c.width : (i+1)*c.width] {
			fields = append(fields, fmt.Sprint(w))
		}
		line(&n, i, fields...)
	}
	for name, text := range map[string]string{"cites.csv": e.String(), "papers.csv": n.String()} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFirstHourParquet: directories of edges and nodes in Parquet, with the split of each node in a
// column, and several topics of a node in one field.
func TestFirstHourParquet(t *testing.T) {
	if testing.Short() {
		t.Skip("several trainings")
	}
	c, gdb := loadCora(t), build(t)
	t.Chdir(t.TempDir())
	for _, dir := range []string{"cites", "papers"} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	half := len(c.edges) / 2
	for part, edges := range [][][2]uint64{c.edges[:half], c.edges[half:]} {
		writeTable(t, fmt.Sprintf("cites/part-%d.parquet", part), []tables.Column{
			{Name: "citing", Kind: tables.String}, {Name: "cited", Kind: tables.String}},
			len(edges), func(i int, w tables.Writer) {
				w.String(fmt.Sprintf("p%d", edges[i][0]))
				w.String(fmt.Sprintf("p%d", edges[i][1]))
			})
	}
	columns := []tables.Column{{Name: "id", Kind: tables.String},
		{Name: "topics", Kind: tables.String}, {Name: "part", Kind: tables.String}}
	for k := range c.width {
		columns = append(columns, tables.Column{Name: fmt.Sprintf("f%d", k),
			Kind: tables.Float32})
	}
	parts := []string{"train", "train", "train", "valid", "test"}
	writeTable(t, "papers/part-0.parquet", columns, len(c.labels),
		func(i int, w tables.Writer) {
			w.String(fmt.Sprintf("p%d", i))
			w.String(fmt.Sprintf("topic%d;group%d", c.labels[i], c.labels[i]%2))
			w.String(parts[i%len(parts)])
			for _, x := range c.words[i*c.width : (i+1)*c.width] {
				w.Float32(x)
			}
		})
	ingest := []string{"ingest", "--edges", "cites", "--nodes", "papers", "--label-col", "topics",
		"--split-col", "part", "--undirected"}
	run(t, gdb, append(ingest, "--out", "one.gdb")...)
	info := run(t, gdb, "info", "one.gdb")
	run(t, gdb, append(ingest, "--label-sep", ";", "--out", "many.gdb")...)
	info += run(t, gdb, "info", "many.gdb")
	for _, want := range []string{"nodes       2,708\n", "edges       10,556 ",
		"ids         string",
		"val: 541 nodes", "7 classes", "labels      multi, 2,708 of nodes labeled; 9 classes"} {
		if !strings.Contains(info, want) {
			t.Errorf("no %q in:\n%s", want, info)
		}
	}
	checkAccuracy(t, run(t, gdb, "train", "one.gdb", "--json", "--epochs", "15"))
	checkAccuracy(t, run(t, gdb, "train", "many.gdb", "--json"))
}

// TestFirstHourTwoTypes: papers and words are two kinds of nodes that both count from 0; papers
// have
// topics, and no features but their degree.
func TestFirstHourTwoTypes(t *testing.T) {
	if testing.Short() {
		t.Skip("a training")
	}
	c, gdb := loadCora(t), build(t)
	t.Chdir(t.TempDir())
	var has, cites, papers strings.Builder
	has.WriteString("paper,word\n")
	cites.WriteString("citing,cited\n")
	papers.WriteString("paper,topic\n")
	for i, label := range c.labels {
		fmt.Fprintf(&papers, "%d,topic%d\n", i, label)
		for k, x := range c.words[i*c.width : (i+1)*c.width] {
			if x != 0 {
				fmt.Fprintf(&has, "%d,%d\n", i, k)
			}
		}
	}
	for _, e := range c.edges {
		fmt.Fprintf(&cites, "%d,%d\n", e[0], e[1])
	}
	for name, text := range map[string]string{"has.csv": has.String(), "cites.csv": cites.String(),
		"papers.csv": papers.String()} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run(t, gdb, "ingest", "--edges", "paper:has:word=has.csv", "--edges",
		"paper:cites:paper=cites.csv", "--nodes", "paper=papers.csv", "--label-col", "topic",
		"--features", "random:64", "--undirected", "--split", "random=60/20/20", "--out", "my.gdb")
	info := run(t, gdb, "info", "my.gdb")
	for _, want := range []string{"  type      word ", "  type      paper ",
		"2,708\n", "2: has cites", "class, 2,708 of nodes labeled; 7 classes"} {
		if !strings.Contains(info, want) {
			t.Errorf("no %q in:\n%s", want, info)
		}
	}
	// The largest class is 30 % of the papers; over seeds it is .40 to .45.
	checkAtLeast(t, run(t, gdb, "train", "my.gdb", "--json"), 0.35)
	run(t, gdb, "predict", "my.gdb", "--out", "p.csv")
	text, err := os.ReadFile("p.csv")
	if err != nil || !strings.Contains(string(text), "\npaper:42,topic") {
		t.Errorf("paper 42 is not predicted: %v", err)
	}
}

// writeTable writes a Parquet file.
func writeTable(t *testing.T, name string, columns []tables.Column, rows int,
	row func(i int, w tables.Writer)) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, err := tables.NewWriter(f, ".parquet", columns, uint64(rows))
	for i := 0; i < rows && err == nil; i++ {
		row(i, w)
		err = w.EndRow()
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// built is the gdb of all tests: the first that asks for it compiles it.
var built struct {
	sync.Once
	dir string
	err error
}

func TestMain(m *testing.M) {
	code := m.Run()
	os.RemoveAll(built.dir)
	os.Exit(code)
}

// build compiles gdb.
func build(t *testing.T) string {
	t.Helper()
	built.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "gdb-firsthour"); built.err != nil {
			return
		}
		if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", built.dir,
			"gdb/cmd/gdb").CombinedOutput(); err != nil {
			built.err = fmt.Errorf("%w: %s", err, out)
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return filepath.Join(built.dir, "gdb")
}

// TestFirstHour: own files in ordinary shapes become a store with the ids and edges that are in
// them, and training it without a setting reaches what this graph gives.
func TestFirstHour(t *testing.T) {
	if testing.Short() {
		t.Skip("several trainings")
	}
	c, gdb := loadCora(t), build(t)
	for i, s := range []shape{
		{name: "string ids", sep: ",", head: [2]string{"user", "friend"}, ids: "string",
			id: func(i uint64) string { return fmt.Sprintf("paper-%d", i) }},
		{name: "index of pandas", sep: ",", index: true, head: [2]string{"a", "b"}, ids: "string",
			id: func(i uint64) string { return fmt.Sprintf("%07x", i*2654435761%0xfffffff) }},
		{name: "semicolons and BOM", sep: ";", bom: "\ufeff", ids: "integer",
			head: [2]string{"citing", "cited"}, id: func(i uint64) string {
				return fmt.Sprint(3*i +
					17)
			}},
	} {
		t.Run(s.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			s.write(t, c)
			run(t, gdb, "ingest", "--edges", "cites.csv", "--nodes", "papers.csv", "--id-col",
				"paper",
				"--label-col", "topic", "--feature-cols", "word0:word1432", "--undirected",
				"--split", "random=60/20/20", "--out", "my.gdb")
			info := run(t, gdb, "info", "my.gdb")
			for _, want := range []string{"nodes       2,708\n", "edges       10,556 ",
				"ids         " + s.ids, "7 classes: bayes cases genetics", "1433 x f32"} {
				if !strings.Contains(info, want) {
					t.Errorf("no %q in:\n%s", want, info)
				}
			}
			train := []string{"train", "my.gdb", "--json"}
			if i > 0 { // what is in the store is learned long before the end
				train = append(train, "--epochs", "15")
			}
			checkAccuracy(t, run(t, gdb, train...))
			predicted := run(t, gdb, "predict", "my.gdb", "--out", "p.csv")
			text, err := os.ReadFile("p.csv")
			if err != nil || !strings.Contains(string(text), "\n"+s.id(42)+",") {
				t.Errorf("node 42 is not predicted: %v, %s", err, predicted)
			}
		})
	}
}

// checkAccuracy checks what a training of Cora reached. Over seeds it is between .86 and .89.
func checkAccuracy(t *testing.T, out string) {
	t.Helper()
	checkAtLeast(t, out, 0.83)
}

// checkAtLeast reads the last line of a training.
func checkAtLeast(t *testing.T, out string, least float64) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(out), "\n")
	last := struct{ Test float64 }{}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || last.Test < least {
		t.Errorf("test %g, %v: %s", last.Test, err, lines[len(lines)-1])
	}
}

// run runs gdb and returns its standard output.
func run(t *testing.T, gdb string, args ...string) string {
	t.Helper()
	var out, notes strings.Builder
	cmd := exec.Command(gdb, args...)
	cmd.Stdout, cmd.Stderr = &out, &notes
	if err := cmd.Run(); err != nil {
		t.Fatalf("gdb %s: %v: %s", strings.Join(args, " "), err, notes.String())
	}
	return out.String()
}
