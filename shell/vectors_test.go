package shell

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gdb/compute/decoder"
	"gdb/internal/codec"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/shell/graph"
	"gdb/train/runs"
	"gdb/train/runs/vectors"
	"gdb/train/setting"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// mustLinkRun writes a run of random vectors, as link prediction leaves it, and returns the vectors
// of nodes and of relations.
func mustLinkRun(t testing.TB, store *layout.Store, name string, dim int) (entities,
	relations []float32) {
	t.Helper()
	c := setting.DefaultLink(name)
	c.Run, c.Dim, c.Reciprocal = name, dim, false
	draw := rand.New(rand.NewPCG(1, uint64(dim)))
	entities = make([]float32, int(store.Meta().Nodes)*dim)
	relations = make([]float32, max(1, len(store.Meta().EdgeTypes))*dim)
	for _, x := range [][]float32{entities, relations} {
		for i := range x {
			x[i] = float32(draw.NormFloat64())
		}
	}
	dir := runs.Open(store, name)
	lock, err := dir.Create()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Close() }()
	if err := dir.WriteFile(runs.File{Store: store.Meta().UUID.String(), Link: &c}); err != nil {
		t.Fatal(err)
	}
	// A vfs.File may change what is written to it.
	err = dir.WriteState(map[string]any{"has_best": true, "best_epoch": 3},
		[]runs.Array{{Name: runs.BestEntitiesName, Values: slices.Clone(entities)},
			{Name: runs.BestRelationsName, Values: slices.Clone(relations)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = store.Catalog().PutRun(t.Context(), kv.RunMeta{Name: name, Created: time.Now(),
		Model: name})
	if err != nil {
		t.Fatal(err)
	}
	return entities, relations
}

// column is one of a result, without its head.
func column(rows [][]string, at int) (out []string) {
	for _, r := range rows[1:] {
		out = append(out, r[at])
	}
	return out
}

// openVectors is how programs open what runs have learned.
var openVectors = graph.VectorsBy(vectors.Open)

// TestNearest compares NEAREST with distances and angles in float64.
func TestNearest(t *testing.T) {
	g := layouttest.Random(3, 300, 900)
	store, dev := layouttest.Build(t, vfs.NewMem(), "s", g), mustDevice(t)
	const dim, node, top = 6, 17, 9
	x, _ := mustLinkRun(t, store, "transe", dim)
	row := func(i int) []float32 { return x[i*dim : (i+1)*dim] }
	product := func(a, b []float32) (sum float64) {
		for i := range a {
			sum += float64(a[i]) * float64(b[i])
		}
		return sum
	}
	for by, value := range map[string]func(i int) float64{
		"dot": func(i int) float64 { return product(row(node), row(i)) },
		"cosine": func(i int) float64 {
			return product(row(node), row(i)) / math.Sqrt(product(row(node), row(node))*
				product(row(i), row(i)))
		},
		"euclid": func(i int) float64 {
			return -math.Sqrt(product(row(node), row(node)) + product(row(i), row(i)) -
				2*product(row(node), row(i)))
		},
	} {
		order := make([]int, 0, g.Nodes)
		for i := range g.Nodes {
			if i != node {
				order = append(order, i)
			}
		}
		slices.SortFunc(order, func(a, b int) int { return cmp.Compare(value(b), value(a)) })
		rows := mustCSV(t, mustRun(t, store, dev, "csv", "NEAREST 17 TOP 9 BY "+by))
		if len(rows) != 1+top || rows[0][1] != by {
			t.Fatalf("%s: %d rows, head %v", by, len(rows), rows[0])
		}
		for i, r := range rows[1:] {
			got, err := strconv.ParseFloat(r[1], 64)
			if err != nil || r[0] != strconv.Itoa(order[i]) ||
				math.Abs(got-value(order[i])) > 1e-4 {
				t.Errorf("%s: row %d is %v, want node %d of %v", by, i, r, order[i],
					value(order[i]))
			}
		}
	}
	plain := mustCSV(t, mustRun(t, store, dev, "csv", "NEAREST 17"))
	if plain[0][1] != "euclid" || len(plain) != 11 {
		t.Errorf("without BY and TOP: %v, %d rows", plain[0], len(plain))
	}
}

// TestScore compares SCORE with the formula of the decoder, and completions with the scores of all.
func TestScore(t *testing.T) {
	store, dev := layouttest.Build(t, vfs.NewMem(), "s", richGraph()), mustDevice(t)
	const dim = 4
	x, r := mustLinkRun(t, store, "complex", dim)
	d, err := decoder.New("complex", dim, decoder.Options{Norm: 2})
	if err != nil {
		t.Fatal(err)
	}
	names := richGraph().IDs
	score := func(head, relation, tail int) float64 {
		at := func(x []float32, i int) []float32 { return x[i*dim : (i+1)*dim] }
		return d.Score(at(x, head), at(r, relation), at(x, tail))
	}
	one := mustCSV(t, mustRun(t, store, dev, "csv", "SCORE ada, knows, 'fay'"))[1]
	if got, err := strconv.ParseFloat(one[3], 64); err != nil || one[0] != "ada" ||
		one[1] != "knows" || one[2] != "fay" || math.Abs(got-score(0, 1, 5)) > 1e-4 {
		t.Errorf("SCORE gives %v, want %v", one, score(0, 1, 5))
	}
	for stmt, value := range map[string]func(i int) float64{
		"SCORE fay, cites, ? TOP 20":  func(i int) float64 { return score(5, 0, i) },
		"SCORE ?, knows, #2 TOP 20":   func(i int) float64 { return score(i, 1, 2) },
		"PROFILE SCORE ?, cites, ada": nil,
		"EXPLAIN SCORE ?, cites, ada": nil,
	} {
		rows := mustCSV(t, mustRun(t, store, dev, "csv", stmt))
		if value == nil {
			continue
		}
		end := 2
		if strings.Contains(stmt, "?,") {
			end = 0
		}
		order := slices.SortedFunc(slices.Values([]int{0, 1, 2, 3, 4, 5, 6, 7}),
			func(a, b int) int { return cmp.Compare(value(b), value(a)) })
		for i, name := range column(rows, end) {
			if got, err := strconv.ParseFloat(rows[1+i][3], 64); err != nil ||
				name != names[order[i]] || math.Abs(got-value(order[i])) > 1e-4 {
				t.Errorf("%s: row %d is %v, want %s of %v", stmt, i, rows[1+i], names[order[i]],
					value(order[i]))
			}
		}
	}
}

// TestVectorStatementsFail holds what is said of statements that cannot be answered.
func TestVectorStatementsFail(t *testing.T) {
	store, dev := layouttest.Build(t, vfs.NewMem(), "s", richGraph()), mustDevice(t)
	fails := func(stmt, want string) {
		t.Helper()
		var out strings.Builder
		err := Run(t.Context(), Options{Store: store, Vectors: openVectors,
			Dev: dev, Out: &out, Err: &out,
			Script: stmt, Memory: 64 << 20})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", stmt, err, want)
		}
	}
	fails("NEAREST ada", "no run has learned vectors that score edges")
	mustLinkRun(t, store, "transe", 4)
	fails("NEAREST nobody", "nobody")
	fails("NEAREST ada BY colour", "BY wants cosine, dot, euclid")
	fails("NEAREST ada RUN transee", "did you mean transe?")
	fails("SCORE ada, bob", "edges have 2 types: name one")
	fails("SCORE ada, hates, bob", `no edge type "hates"`)
	fails("SCORE ada, knows", "edges have 2 types")
	fails("SCORE ada", "wants head, relation, tail")
	fails("SCORE ?, knows, ?", "one may be ?, not both")
	fails("SCORE ?, ?, 42", "one may be ?, not both")
	fails("SCORE ada, ?, bob", "wants the name of a relation")
	fails("SCORE ada, knows, bob TOP 3", "TOP and NEW want an end that is asked for")
	fs, path := store.FS(), store.Path("runs", "transe", "checkpoint-1", "state")
	f, err := fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte{0x55}, codec.HeaderBytes+100); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	fails("NEAREST ada", "checksum")
	fails("SCORE ada, knows, bob", "checksum")
}
