package source_test

import (
	"errors"
	"testing"

	"gdb/layout/ingest/input"
	"gdb/layout/ingest/source"
)

// mixedFiles are edges of text and arrays for three nodes.
func mixedFiles(edges string) files {
	return files{"e.csv": edges, "f.npy": arr{"<f4", shape(3, 1), []float32{1, 2, 3}},
		"l.npy": ints(shape(3), 0, -1, 1), "t.npy": ints(shape(2), 2, 0), "s.txt": "1\n",
		"n.csv": "id,f0\n0,1\n", "g.csv": "0,1\n1,2\n2,3\n"}
}

func TestMixed(t *testing.T) {
	rest := `f 0 [1]
		f 1 [2]
		f 2 [3]
		label 0 0
		label 1 -1
		label 2 1
		train 2
		train 0
		val 1`
	splits := map[string]string{"train": "t.npy", "val": "s.txt"}
	given := source.Options{Edges: "e.csv", Features: "f.npy", Labels: "l.npy", Splits: splits}
	sources := given
	sources.Sources, sources.Edges = []string{"e.csv"}, ""
	weighted := given
	weighted.WeightCol, weighted.Format = "w", "npy"
	dir := files{"d/edges.csv": "0,1\n", "d/x.npy": arr{"<f4", shape(2, 1), []float32{1, 2}},
		"d/train.txt": "1\n"}
	runSources(t, []sourceTest{
		{"flags", mixedFiles("src,dst\n0,2\n2,1\n"), given, "edge 0 2\nedge 2 1\n" + rest,
			"csv 3 0 rows f:1:f32 class", "names the columns"},
		{"source", mixedFiles("0,2\n2,1\n"), sources, "edge 0 2\nedge 2 1\n" + rest,
			"csv 3 0 rows f:1:f32 class", ""},
		{"weights", mixedFiles("src,dst,w\n0,2,0.5\n"), weighted, "edge 0 2 weight 0.5\n" + rest,
			"csv 3 0 rows weighted f:1:f32 class", ""},
		{"directory", dir, source.Options{Features: "x.npy"},
			"edge 0 1\nx 0 [1]\nx 1 [2]\ntrain 1",
			"csv 2 0 rows x:1:f32", ""},
	})
}

func TestBadMixed(t *testing.T) {
	opt := source.Options{Edges: "e.csv", Features: "f.npy"}
	text := opt
	text.Labels = "n.csv"
	nodes := files{"d/edges.csv": "0,1\n", "d/nodes.csv": "id\n0\n", "d/x.npy": ints(shape(2), 1,
		2)}
	runBad(t, []badTest{
		{"text ids", mixedFiles("a,b\n"), opt, "e.csv", "its ids are text, but arrays"},
		{"text id later", mixedFiles("0,1\n1,x\n"), opt, "e.csv", "its ids are text, but arrays"},
		{"too large", mixedFiles("0,1\n1,3\n"), opt, "e.csv line 2",
			"destination 3 is out of range; there are 3 nodes, by f.npy"},
		{"negative", mixedFiles("0,1\n-1,2\n"), opt, "e.csv line 2", "negative"},
		{"nodes", nodes, source.Options{Features: "x.npy"}, "d/nodes.csv", "a table of nodes has " +
			"ids"},
		{"labels of text", mixedFiles("0,1\n"), text, "--labels n.csv",
			"it is text, but other files are arrays"},
	})
	for name, opt := range map[string]source.Options{
		"label column":    {Edges: "e.csv", Features: "f.npy", LabelCol: "x"},
		"feature columns": {Sources: []string{"d"}, Format: "npy", FeatureCols: "f0"},
	} {
		fl := mixedFiles("0,1\n")
		fl["d/edges.npy"] = ints(shape(1, 2), 0, 1)
		if src, err := open(t, fl, opt); !errors.Is(err, input.ErrUsage) {
			t.Errorf("%s: source %v, error %v", name, src, err)
		}
	}
}
