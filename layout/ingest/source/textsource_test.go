package source_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"gdb/layout/ingest/input"
	"gdb/layout/ingest/source"
	"gdb/layout/ingest/table"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func TestTexts(t *testing.T) {
	nodes := "id,label,f0,f1,extra\na,red,1,2,x\nb,,3,4.5,y\nc,blue,-5,6e1,z\n"
	runSources(t, []sourceTest{
		{"integers", files{"d.csv": "0,1\n1,2\n"}, source.Options{Sources: []string{"d.csv"}},
			"edge 0 1\nedge 1 2", "csv 0 0", ""},
		{"strings with a header", files{"d.csv": "source,target\na,b\nb,\"c,\"\"d\"\n"},
			source.Options{Sources: []string{"d.csv"}}, "edge a b\nedge b c,\"d", "csv 0 0 text",
			"names the columns"},
		{"header of unknown names", files{"d.csv": "p,q\n1,2\n3,4\n"},
			source.Options{Sources: []string{"d.csv"}}, "edge 1 2\nedge 3 4", "csv 0 0", ""},
		{"no header", files{"d.csv": "source,target\na,b\n"},
			source.Options{Sources: []string{"d.csv"},
				Header: "no"}, "edge source target\nedge a b", "csv 0 0 text", ""},
		{"padded ids are text", files{"d.csv": "007,1\n1,2\n"},
			source.Options{Sources: []string{"d.csv"}}, "edge 007 1\nedge 1 2", "csv 0 0 text", ""},
		{"compressed tabs", files{"d.tsv.gz": "a\tb\r\n\r\nb\tc"},
			source.Options{Sources: []string{"d.tsv.gz"}}, "edge a b\nedge b c", "csv 0 0 text",
			""},
		{"columns by name", files{"d.csv": "w,when,kind,to,from\n0.5,17,k,b,a\n"},
			source.Options{Sources: []string{"d.csv"}, WeightCol: "w", TimeCol: "when",
				RelCol: "kind"},
			"edge a b type k weight 0.5 time 17", "csv 0 0 text typed weighted timed", ""},
		{"columns by number", files{"d.csv": "9;2;1;0.5\n9;3;1;1.5\n"},
			source.Options{Sources: []string{"d.csv"}, SrcCol: "2", DstCol: "1", WeightCol: "3"},
			"edge 1 2 weight 0.5\nedge 1 3 weight 1.5", "csv 0 0 weighted", ""},
		{"known names", files{"d.csv": "weight,dst,timestamp,src,note\n1,5,2,6,hi\n"},
			source.Options{Sources: []string{"d.csv"}}, "edge 6 5 weight 1 time 2",
			"csv 0 0 weighted timed", ""},
		{"a relation between the ends", files{"d.csv": "who,rel,what\na,likes,b\n"},
			source.Options{Sources: []string{"d.csv"}}, "edge a b type likes",
			"csv 0 0 text typed", ""},
		{"a weight between the ends", files{"d.csv": "a,weight,b\n1,0.5,2\n"},
			source.Options{Sources: []string{"d.csv"}}, "edge 1 2 weight 0.5",
			"csv 0 0 weighted", ""},
		{"delim", files{"d.csv": "a b|c d\n"}, source.Options{Sources: []string{"d.csv"},
			Delim: "|"},
			"edge a b c d", "csv 0 0 text", ""},
		{"directory", files{"d/edges.csv": "src,dst\na,b\nb,c\n", "d/nodes.csv": nodes,
			"d/train.txt": "a\nb\n", "d/test.csv": "id\nc\n", "d/README.md": "x"}, source.Options{},
			`node a
			node b
			node c
			edge a b
			edge b c
			features a [1 2]
			features b [3 4.5]
			features c [-5 60]
			label a red
			label b
			label c blue
			test c
			train a
			train b`, "csv 0 0 text features:2:text class", ""},
		{"feature range", files{"e.csv": "a,b\n", "n.csv": nodes}, source.Options{
			Sources: []string{"e.csv"}, Nodes: "n.csv", FeatureCols: "f1,f0:f1", LabelCol: "extra"},
			`node a
			node b
			node c
			edge a b
			features a [2 1 2]
			features b [4.5 3 4.5]
			features c [60 -5 60]
			label a x
			label b y
			label c z`, "csv 0 0 text features:3:text class", ""},
		{"all numbers as features", files{"e.csv": "a,b\n", "n.csv": nodes}, source.Options{
			Sources: []string{"e.csv"}, Nodes: "n.csv", FeatureCols: "*", LabelCol: "extra"},
			`node a
			node b
			node c
			edge a b
			features a [1 2]
			features b [3 4.5]
			features c [-5 60]
			label a x
			label b y
			label c z`, "csv 0 0 text features:2:text class", ""},
		{"an id that is no integer is skipped", files{"e.csv": "1,2\nx,3\n2,3\n" +
			strings.Repeat("2,4\n", 2)}, source.Options{
			Sources: []string{"e.csv"}, SkipBad: 1, Header: "no"},
			"edge 1 2\nedge 2 3\nedge 2 4\nedge 2 4", "csv 0 0", ""},
		{"label and feature files", files{"e.csv": "1,2\n", "l.csv": "1,-1\n2,0\n3,1\n4,7\n",
			"f.csv": "2,0.5,1\n1,2,3\n"}, source.Options{Edges: "e.csv", Labels: "l.csv",
			Features: "f.csv"},
			`edge 1 2
			features 2 [0.5 1]
			features 1 [2 3]
			label 1 -1
			label 2 0
			label 3 1
			label 4 7`, "csv 0 0 features:2:text class", ""},
		{"two classes", files{"e.csv": "1,2\n", "l.csv": "1,-1\n2,1\n"},
			source.Options{Edges: "e.csv", Labels: "l.csv"}, "edge 1 2\nlabel 1 -1\nlabel 2 1",
			"csv 0 0 class", ""},
		{"targets", files{"e.csv": "1,2\n", "l.csv": "id,y\n1,0.5\n2,\n3,NaN\n4,2\n"},
			source.Options{Edges: "e.csv", Labels: "l.csv"},
			"edge 1 2\nlabel 1 0.5\nlabel 2 NaN\nlabel 3 NaN\nlabel 4 2", "csv 0 0 target", ""},
		{"several edge files", files{"d/edges-0.csv": "1,2\n", "d/edges-1.csv": "3,4\n",
			"d/other.txt": "5,6\n"}, source.Options{}, "edge 1 2\nedge 3 4", "csv 0 0", ""},
		{"glob", files{"d/p0.csv": "1,2\n", "d/p1.csv": "3,4\n", "d/q.csv": "5,6\n"},
			source.Options{Sources: []string{"d/p*.csv"}}, "edge 1 2\nedge 3 4", "csv 0 0", ""},
		{"one file in a directory", files{"d/graph.csv": "1,2\n", "d/meta.json": "{}"},
			source.Options{}, "edge 1 2", "csv 0 0", ""},
		{"split with the id's own name", files{"e.csv": "paper,cites\nx,y\n",
			"train.csv": "paper\nx\n"},
			source.Options{Sources: []string{"e.csv"}, IDCol: "paper", SrcCol: "paper",
				DstCol: "cites", Splits: map[string]string{"train": "train.csv"}},
			"edge x y\ntrain x", "csv 0 0 text", ""},
		{"snap", files{"d.txt": "# Directed graph\n# FromNodeId\tToNodeId\n30\t1412\n30\t3352\n"},
			source.Options{Sources: []string{"d.txt"}}, "edge 30 1412\nedge 30 3352", "snap 0 0",
			""},
		{"percent comments", files{"out.d": "% asym unweighted\n% 2 3 3\n1 2\n2 3\n"},
			source.Options{Sources: []string{"out.d"}}, "edge 1 2\nedge 2 3", "snap 0 0", ""},
		{"percent ids", files{"d.csv": "%20,b\n%20,c\n"},
			source.Options{Sources: []string{"d.csv"}}, "edge %20 b\nedge %20 c", "csv 0 0 text",
			""},
		{"no header, three columns", files{"d.tsv": "a\tr\tb\n"},
			source.Options{Sources: []string{"d.tsv"}}, "edge a r", "csv 0 0 text",
			"column 0 is the source, column 1 the destination"},
		{"some integers", files{"d.csv": "1,2\n2,x\n"}, source.Options{Sources: []string{"d.csv"}},
			"edge 1 2\nedge 2 x", "csv 0 0 text", `since "x" is not an integer`},
		{"snap with times", files{"d.txt": "1 2 1082040961\n3  4 1082155839\n"},
			source.Options{Sources: []string{"d.txt"}},
			"edge 1 2 time 1082040961\nedge 3 4 time 1082155839", "snap 0 0 timed", "as time"},
		{"snap with weights", files{"d.txt": "1 2 0.5\n3 4 1\n"},
			source.Options{Sources: []string{"d.txt"}, Format: "snap"},
			"edge 1 2 weight 0.5\nedge 3 4 weight 1", "snap 0 0 weighted", "as weight"},
		{"triples", files{"d/train.tsv": "a\tr\tb\nb\ts\t007\n", "d/valid.tsv": "a\ts\tb\n",
			"d/test.tsv": "\"q\tr\t1\n"}, source.Options{},
			`edge a b type r train
			edge b 007 type s train
			edge a b type s val
			edge "q 1 type r test`, "triples 0 0 text typed", "train.tsv, valid.tsv, test.tsv"},
	})
}

func TestOGB(t *testing.T) {
	raw := func(more files) files {
		out := files{"d/raw/edge.csv.gz": "0,1\n2,0\n", "d/raw/num-node-list.csv.gz": "3\n",
			"d/raw/num-edge-list.csv.gz": "2\n", "d/raw/node_year.csv.gz": "1\n2\n3\n"}
		for name, v := range more {
			out[name] = v
		}
		return out
	}
	rename := func(fl files, dir string) files {
		out := files{}
		for name, v := range fl {
			out[strings.Replace(name, "d/", dir+"/", 1)] = v
		}
		return out
	}
	full := raw(files{"d/raw/node-feat.csv.gz": "1,2\n0.5,-1\n3,4\n",
		"d/raw/node-label.csv.gz":          "4\nnan\n0\n",
		"d/raw/edge_weight.csv.gz":         "0.5\n2\n",
		"d/raw/edge_reltype.csv.gz":        "7\n1\n",
		"d/split/time/train.csv.gz":        "0\n",
		"d/split/time/valid.csv.gz":        "2\n",
		"d/split/time/test.csv.gz":         "1\n",
		"d/mapping/nodeidx2paperid.csv.gz": "a,b\n"})
	want := `edge 0 1 type 7 weight 0.5
		edge 2 0 type 1 weight 2
		features 0 [1 2]
		features 1 [0.5 -1]
		features 2 [3 4]
		label 0 4
		label 1 -1
		label 2 0
		train 0
		val 2
		test 1`
	binary := files{"raw/data.npz": files{"edge_index.npy": ints(shape(2, 3), 0, 1, 2, 1, 2, 0),
		"num_nodes_list.npy": ints(shape(1), 3), "node_feat.npy": arr{"<f4", shape(3, 1),
			[]float32{1, 2, 3}}, "node_year.npy": ints(shape(3, 1), 1, 2, 3)},
		"raw/node-label.npz": files{"node_label.npy": arr{"<f4", shape(3, 1), []float32{5,
			nan32, 1}}},
		"split/time/train.csv.gz": "0\n2\n", "split/time/split_dict.pt": "x"}
	bin := files{}
	for name, v := range binary {
		bin["papers100M-bin/"+name] = v
	}
	runSources(t, []sourceTest{
		{"csv", full, source.Options{}, want, "ogb 3 2 rows typed weighted features:2:text class",
			"not used: node_year.csv.gz"},
		{"inverse", rename(full, "ogbn_products"),
			source.Options{Sources: []string{"ogbn_products"}},
			want, "ogb 3 2 rows typed weighted inverse features:2:text class", "as OGB does"},
		{"no inverse", rename(full, "ogbn-arxiv"), source.Options{Sources: []string{"ogbn-arxiv"}},
			want, "ogb 3 2 rows typed weighted features:2:text class", ""},
		{"multi-label", raw(files{"d/raw/node-label.csv.gz": "1,0\n0,0\n1,1\n"}), source.Options{},
			"edge 0 1\nedge 2 0\nlabel 0 0\nlabel 1 -2\nlabel 2 0\nlabel 2 1", "ogb 3 2 rows multi",
			""},
		{"binary", bin, source.Options{Sources: []string{"papers100M-bin"}},
			`edge 0 1
			edge 1 2
			edge 2 0
			features 0 [1]
			features 1 [2]
			features 2 [3]
			label 0 5
			label 1 -1
			label 2 1
			train 0
			train 2`, "ogb 3 3 rows features:1:f32 class", "node_year"},
	})
	runBad(t, []badTest{
		{"out of range", raw(files{"d/raw/edge.csv.gz": "0,1\n2,3\n"}), source.Options{},
			"d/raw/edge.csv.gz line 2", "node 3 is out of range; there are 3 nodes"},
		{"too few rows", raw(files{"d/raw/node-feat.csv.gz": "1\n2\n"}), source.Options{},
			"d/raw/node-feat.csv.gz", "ends after 2 rows"},
		{"too many rows", raw(files{"d/raw/node-feat.csv.gz": "1\n2\n3\n4\n"}), source.Options{},
			"d/raw/node-feat.csv.gz line 4", "row 3 is out of range"},
		{"too few weights", raw(files{"d/raw/edge_weight.csv.gz": "1\n"}), source.Options{},
			"d/raw/edge_weight.csv.gz", "fewer lines"},
		{"bad lines are never skipped", raw(files{"d/raw/edge.csv.gz": "0,1\nx,1\n"}),
			source.Options{}, "d/raw/edge.csv.gz line 2", "not an integer"},
		{"several graphs", raw(files{"d/raw/num-node-list.csv.gz": "3\n4\n"}), source.Options{},
			"d/raw/num-node-list.csv.gz", "several graphs"},
		{"heterogeneous", raw(files{"d/raw/triplet-type-list.csv.gz": "a\n"}), source.Options{},
			"d",
			"several types of nodes"},
		{"nothing", files{"d/raw/x.csv": "1\n"}, source.Options{}, "d/raw", "num-node-list"},
		{"split", raw(files{"d/split/s/train.csv.gz": "0\n3\n"}), source.Options{},
			"d/split/s/train.csv.gz line 2", "node 3 is out of range"},
		{"two splits", raw(files{"d/split/s/train.csv": "0\n", "d/split/t/train.csv": "0\n"}),
			source.Options{}, "d/split", "there are several"},
		{"label", raw(files{"d/raw/node-label.csv.gz": "1\n-2\n3\n"}), source.Options{},
			"d/raw/node-label.csv.gz line 2", "not a class"},
	})
}

func TestBadTexts(t *testing.T) {
	one := func(s string) files { return files{"d.csv": s} }
	src := source.Options{Sources: []string{"d.csv"}}
	nodes := func(s string) files { return files{"d.csv": "a,b\n", "n.csv": s} }
	with := func(set func(*source.Options)) source.Options {
		o := source.Options{Sources: []string{"d.csv"}, Nodes: "n.csv"}
		set(&o)
		return o
	}
	none := func(*source.Options) {}
	long := gz(t, strings.Repeat("1,2\n", 100_000))
	cut := long[:len(long)/2]
	zst := []byte{0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x58, 0x41}
	runBad(t, []badTest{
		{"negative", one("0,1\n-3,1\n"), src, "d.csv line 2",
			`id "-3" is negative; node ids begin at 0`},
		{"ragged", one("src,dst\n\n0,1\n0\n"), src, "d.csv line 4", "1 fields instead of 2"},
		{"too many fields", one("0,1\n0,1,2\n0,1\n"), src, "d.csv line 2", "3 fields instead of 2"},
		{"empty id", one("0,1\n,1\n"), src, "d.csv line 2", "empty"},
		{"empty text id", one("a,b\n,b\n"), src, "d.csv line 2", "empty"},
		{"empty file", one(""), src, "d.csv", "the file is empty"},
		{"only a header", one("src,dst\n"), src, "d.csv", "there are no edges"},
		{"only blank lines", one("\n\n"), src, "d.csv", "there are no rows"},
		{"metis", files{"d.graph": "4 4\n2 4\n1 3\n2 4\n1 3\n"}, source.Options{
			Sources: []string{"d.graph"}}, "d.graph", "METIS"},
		{"one column", one("1\n2\n"), src, "d.csv", "--delim"},
		{"truncated gzip", files{"d.csv": cut}, src,
			"d.csv line 47…", "truncated"}, // of 100,000: the file was cut in the middle
		{"truncated zstd", files{"d.csv": zst}, src, "d.csv line 1", "truncated"},
		{"damaged gzip", files{"d.csv": append([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0}, 0xff,
			0xff,
			0xff, 0xff, 0xff, 0xff)}, src, "d.csv line 1", "damaged"},
		{"weight", one("src,dst,w\n0,1,1\n0,1,x\n"), source.Options{Sources: []string{"d.csv"},
			WeightCol: "w"}, "d.csv line 3", `column "w", "x", is not a number`},
		{"NaN weight", one("src,dst,weight\n0,1,1\n0,1,nan\n"), src, "d.csv line 3",
			"not a finite number"},
		{"time", one("src,dst,t\n0,1,soon\n"), source.Options{Sources: []string{"d.csv"},
			TimeCol: "t"},
			"d.csv line 2", "not a time"},
		{"missing", files{"e.csv": "0,1\n"}, src, "d.csv", "no such file"},
		{"no match", files{"d/e.csv": "0,1\n"}, source.Options{Sources: []string{"d/x*.csv"}},
			"d/x*.csv",
			"no file matches"},
		{"misspelled column", one("source,target\na,b\n"),
			source.Options{Sources: []string{"d.csv"},
				SrcCol: "sorce"}, "d.csv",
			`--src-col: there is no column "sorce"; did you mean source?`},
		{"column number", one("0,1\n"), source.Options{Sources: []string{"d.csv"}, SrcCol: "2"},
			"d.csv",
			"columns are numbered 0 to 1"},
		{"same column twice", one("0,1\n"), source.Options{Sources: []string{"d.csv"}, SrcCol: "1"},
			"d.csv", "--dst-col"},
		{"quote", one("a,b\n\"c,d\n"), src, "d.csv line 2", "does not end"},
		{"missing nodes", one("0,1\n"), with(none), "n.csv", "no such file"},
		{"NaN feature", nodes("id,f0\na,1\nb,nan\n"), with(none), "n.csv line 3",
			`column "f0" is "nan"; fill it with --fill, or allow it with --allow-nan`},
		{"empty feature", nodes("id,f0\na,1\nb,\n"), with(none), "n.csv line 3",
			"is empty; --fill mean"},
		{"feature column", nodes("id,f0\na,1\n"), with(func(o *source.Options) {
			o.FeatureCols = "f0:f9"
		}), "n.csv", `there is no column "f9"`},
		{"which label", nodes("id,p,q\na,1,2\n"), with(func(o *source.Options) {
			o.Nodes, o.Labels = "", "n.csv"
		}), "n.csv", "--label-col"},
		{"split", files{"d.csv": "1,2\n", "s.txt": "1\nx\n"}, source.Options{
			Sources: []string{"d.csv"}, Splits: map[string]string{"train": "s.txt"}},
			"s.txt line 2",
			"not an integer"},
		{"wide split", files{"d.csv": "1,2\n", "s.txt": "1,2\n"}, source.Options{
			Sources: []string{"d.csv"}, Splits: map[string]string{"train": "s.txt"}}, "s.txt",
			"one node id on each line"},
		{"triples", files{"d/train.tsv": "a\tb\n", "d/test.tsv": "a\tb\n"}, source.Options{},
			"d/train.tsv", "head TAB relation TAB tail"},
		{"ragged triples", files{"d/train.tsv": "a\tr\tb\na\tr\n", "d/test.tsv": "a\tr\tb\n"},
			source.Options{}, "d/train.tsv line 2", "2 fields instead of 3"},
		{"arrays and text", files{"d/edges.npy": ints(shape(1, 2), 0, 1), "d/edges.csv": "0,1\n"},
			source.Options{}, "d", "--format npy or csv"},
		{"two node files", files{"d/edges.csv": "0,1\n", "d/nodes.csv": "0\n",
			"d/nodes.tsv": "0\n"},
			source.Options{}, "d", "choose one with --nodes"},
		{"edge files differ", files{"d/edges-0.csv": "src,dst,weight\n1,2,3\n",
			"d/edges-1.csv": "1,2\n"}, source.Options{}, "d/edges-1.csv", "differ"},
	})
}

func TestUsage(t *testing.T) {
	fl := files{"d.csv": "a,b\n", "dir/x.csv": "a,b\n", "l.csv": "a,b,c\n"}
	for name, opt := range map[string]source.Options{
		"no source":       {Sources: []string{}},
		"format":          {Sources: []string{"d.csv"}, Format: "xml"},
		"ogb of a file":   {Sources: []string{"d.csv"}, Format: "ogb"},
		"two directories": {Sources: []string{"dir", "d.csv"}},
		"delim":           {Sources: []string{"d.csv"}, Delim: "ab"},
		"header":          {Sources: []string{"d.csv"}, Header: "maybe"},
		"label without":   {Sources: []string{"d.csv"}, LabelCol: "x"},
		"column":          {Sources: []string{"d.csv"}, SrcCol: "x"},
		"backwards": {Sources: []string{"d.csv"}, Nodes: "l.csv", FeatureCols: "2:1",
			Header: "no"},
	} {
		if src, err := open(t, fl, opt); !errors.Is(err, input.ErrUsage) {
			t.Errorf("%s: source %v, error %v", name, src, err)
		}
	}
}

// TestNotInteger: ids that stop being integers late restart the reading as text.
func TestNotInteger(t *testing.T) {
	var b strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&b, "%d,%d\n", i, i+1)
	}
	for _, last := range []string{"x,1\n", "1,007\n"} {
		src, err := open(t, files{"d.csv": b.String() + last},
			source.Options{Sources: []string{"d.csv"}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = dump(src)
		var bad *input.Error
		if !errors.Is(err, table.ErrNotInteger) || !errors.As(err, &bad) ||
			bad.Where != "d.csv line 100001" {
			t.Fatal(err)
		}
		src.(interface{ ForceText() }).ForceText()
		got, err := dump(src)
		if err != nil || !src.Info().TextIDs ||
			!strings.HasSuffix(got, "edge "+strings.Replace(last, ",", " ", 1)) {
			t.Errorf("error %v, text %v", err, src.Info().TextIDs)
		}
		if err := src.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestSkipBad(t *testing.T) {
	fl := files{"e.csv": "0,1\n0\n1,2\n-1,2\n", "n.csv": "id,f0,label\n0,1,a\n1,x,b\n2,2,c\n"}
	var notes bytes.Buffer
	opt := source.Options{Sources: []string{"e.csv"}, Nodes: "n.csv", SkipBad: 3, Notes: &notes}
	src, err := open(t, fl, opt)
	if err != nil {
		t.Fatal(err)
	}
	want := lines(`node 0
		node 2
		edge 0 1
		edge 1 2
		features 0 [1]
		features 2 [2]
		label 0 a
		label 2 c`)
	for range 2 { // each line is reported once, however often it is read
		if got, err := dump(src); err != nil || got != want {
			t.Fatalf("got %s, error %v", got, err)
		}
	}
	wantNotes := lines(`skipped n.csv line 3: column "f0", "x", is not a number; if it is a word ` +
		`for missing, name it with --na; if the column has categories, with --categorical
		skipped e.csv line 2: 1 fields instead of 2
		skipped e.csv line 4: id "-1" is negative; node ids begin at 0`)
	skipped := src.(interface{ SkippedLines() int64 }).SkippedLines()
	if notes.String() != wantNotes || skipped != 3 {
		t.Errorf("%d skipped: %s", skipped, notes.String())
	}
	opt.SkipBad, opt.Notes = 2, nil
	if src, err = open(t, fl, opt); err != nil {
		t.Fatal(err)
	}
	var bad *input.Error
	if _, err = dump(src); !errors.As(err, &bad) || bad.Where != "e.csv line 4" {
		t.Errorf("the third bad line of two: %v", err)
	}
}

// TestStop: a consumer's error and a canceled context end a stream.
func TestStop(t *testing.T) {
	fl := files{"e.csv": strings.Repeat("1,2\n", 300_000), "a/edges.npy": ints(shape(3, 2), 0, 1,
		2, 3,
		4, 5)}
	fs := fl.fs(t)
	stop := errors.New("stop")
	for _, name := range []string{"e.csv", "a"} {
		src, err := source.Open(context.Background(), fs, &source.Options{Sources: []string{name}})
		if err != nil {
			t.Fatal(err)
		}
		err = src.Edges(context.Background(), func(*source.EdgeChunk) error { return stop })
		if !errors.Is(err, stop) {
			t.Errorf("%s: %v", name, err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err = src.Edges(ctx, func(*source.EdgeChunk) error { return nil }); !errors.Is(err,
			context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
		if err := src.Close(); err != nil {
			t.Error(err)
		}
	}
}

func BenchmarkEdges(b *testing.B) {
	const n = 1 << 20
	pairs := make([]int64, 2*n)
	var integers, strs strings.Builder
	for i := range n {
		u, v := int64(i*2654435761%(1<<22)), int64(i*40503%(1<<22))
		pairs[2*i], pairs[2*i+1] = u, v
		fmt.Fprintf(&integers, "%d,%d\n", u, v)
		fmt.Fprintf(&strs, "n%07d,n%07d\n", u, v)
	}
	fl := files{"edges.npy": ints(shape(n, 2), pairs...), "columns.npy": ints(shape(2, n),
		pairs...),
		"integers.csv": integers.String(), "strings.csv": strs.String()}
	fs := fl.fs(b)
	for _, c := range []struct{ name, file, edges string }{{"npy", "edges.npy", ""},
		{"npy-columns", "columns.npy", "columns.npy"}, {"csv-integer", "integers.csv", ""},
		{"csv-string", "strings.csv", ""}} {
		b.Run("format="+c.name, func(b *testing.B) {
			src, err := source.Open(context.Background(), vfs.FS(fs),
				&source.Options{Sources: []string{c.file}, Edges: c.edges})
			if err != nil {
				b.Fatal(err)
			}
			defer src.Close()
			for b.Loop() {
				edges := 0
				if err := src.Edges(context.Background(), func(c *source.EdgeChunk) error {
					edges += c.Len()
					return nil
				}); err != nil || edges != n {
					b.Fatal(edges, err)
				}
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Medges/s")
		})
	}
}
