package source_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"gdb/layout/ingest/input"
	"gdb/layout/ingest/source"
)

// The tables that flags name columns of. Text has commas, and feather takes fields at blanks.
const (
	flagEdges = "src dst also kind heavy day\n0 1 2 a 2 5\n1 2 0 b 3 6\n"
	flagNodes = "id other label topic f0 extra tags part\n0 2 x u 1 4 red p\n1 0 y v 2 5 blue q\n" +
		"2 1 x u 3 6 red p\n"
)

func commas(table string) string { return strings.ReplaceAll(table, " ", ",") }

// flagKind is a kind of source: files, how they are opened, and what other kinds of flags need.
type flagKind struct {
	files files
	opt   source.Options
	// edges, features, labels and ids are files that flags may name beside those of opt.
	edges, features, labels, ids string
}

func flagKinds(t *testing.T) map[string]flagKind {
	columns := func(table string) []byte {
		rows := strings.Split(strings.TrimSpace(table), "\n")
		return feather(t, rows[0], rows[1:]...)
	}
	tables := func(edges, nodes, end string, table func(string) any) flagKind {
		k := flagKind{files: files{edges: table(flagEdges), nodes: table(flagNodes),
			"e2" + end: table(strings.ReplaceAll(flagEdges, "0 1", "1 0")),
			"f2" + end: table("id f0\n0 7\n1 8\n2 9\n"), "l2" + end: table("id label\n0 z\n1 z\n"),
			"s2" + end: table("id\n1\n")}, opt: source.Options{Sources: []string{edges},
			Nodes: nodes},
			edges: "e2" + end, features: "f2" + end, labels: "l2" + end, ids: "s2" + end}
		return k
	}
	text := func(s string) any { return commas(s) }
	snap := tables("e.txt", "n.csv", ".csv", text)
	snap.files["e.txt"] = strings.ReplaceAll(flagEdges, " ", "\t")
	snap.opt.Format = "snap"
	arrays := files{"d/edges.npy": ints(shape(3, 2), 0, 1, 1, 2, 1, 0),
		"d/features.npy": arr{"<f4", shape(3, 1), []float32{1, 2, 3}},
		"d/labels.npy":   ints(shape(3), 0, 1, 0), "e2.npy": ints(shape(1, 2), 2, 0),
		"f2.npy": arr{"<f4", shape(3, 1), []float32{7, 8, 9}}, "l2.npy": ints(shape(3), 1, 1, 1),
		"s2.npy": ints(shape(1), 1), "e2.csv": strings.ReplaceAll(commas(flagEdges), "0,1", "1,0")}
	mixed := maps.Clone(arrays)
	mixed["d/edges.csv"] = commas(flagEdges)
	delete(mixed, "d/edges.npy")
	ofArrays := flagKind{arrays, source.Options{Sources: []string{"d"}}, "e2.npy", "f2.npy",
		"l2.npy",
		"s2.npy"}
	ofMixed := flagKind{mixed, source.Options{Sources: []string{"d"},
		Features: "d/features.npy"}, "e2.csv", "f2.npy", "l2.npy", "s2.npy"}
	triples := flagKind{files{"d/train.tsv": "a\tr\tb\n", "d/test.tsv": "b\tr\ta\n",
		"e2.tsv": "x\tr\ty\n", "f2": "a,1\nb,2\n", "l2": "a,x\n", "s2": "a\n"},
		source.Options{Sources: []string{"d"}}, "e2.tsv", "f2", "l2", "s2"}
	ogb := flagKind{files{"d/raw/edge.csv.gz": "0,1\n1,2\n", "d/raw/num-node-list.csv.gz": "3\n",
		"d/raw/node-feat.csv.gz": "1\n2\n3\n", "d/raw/node-label.csv.gz": "0\n1\n0\n",
		"e2.csv": "2,0\n", "f2.csv": "7\n8\n9\n", "l2.csv": "1\n1\n1\n", "s2.csv": "1\n"},
		source.Options{Sources: []string{"d"}}, "e2.csv", "f2.csv", "l2.csv", "s2.csv"}
	binary := flagKind{files{"d/raw/data.npz": files{"edge_index.npy": ints(shape(2, 3), 0, 1, 2, 1,
		2, 0), "num_nodes_list.npy": ints(shape(1), 3),
		"node_feat.npy": arr{"<f4", shape(3, 1), []float32{1, 2, 3}}},
		"d/raw/node-label.npz": files{"node_label.npy": ints(shape(3), 0, 1, 0)},
		"e2.npy":               arrays["e2.npy"], "f2.npy": arrays["f2.npy"],
		"l2.npy": arrays["l2.npy"], "s2.csv": "1\n"},
		source.Options{Sources: []string{"d"}}, "e2.npy", "f2.npy", "l2.npy", "s2.csv"}
	return map[string]flagKind{"text": tables("e.csv", "n.csv", ".csv", text), "snap": snap,
		"columns": tables("e.feather", "n.feather", ".feather",
			func(s string) any { return columns(s) }), "arrays": ofArrays, "mixed": ofMixed,
		"triples": triples, "ogb": ogb, "ogb arrays": binary}
}

// replaced puts words of the files in another place: to have a gap or a bad row.
func (k *flagKind) replaced(old, other string) {
	for name, v := range k.files {
		if s, ok := v.(string); ok {
			k.files[name] = strings.ReplaceAll(s, old, other)
		}
	}
}

// flagTests are the flags of ingest that say what is read: how each is given, and which kinds of
// sources use it. The others refuse it.
var flagTests = map[string]struct {
	give func(o *source.Options, k *flagKind)
	used string
}{
	"--edges": {func(o *source.Options, k *flagKind) { o.Edges = k.edges },
		"text snap columns arrays mixed ogb arrays"},
	"--edges NAME=FILE": {func(o *source.Options, k *flagKind) {
		o.Relations = []source.Relation{{Name: "likes", File: k.edges}}
		if k.opt.Nodes != "" { // of tables, the one source is no directory
			o.Sources = nil
		}
	}, "text snap columns mixed"},
	"--nodes": {func(o *source.Options, k *flagKind) { o.Nodes = k.features },
		"text snap columns"},
	"--features": {func(o *source.Options, k *flagKind) { o.Features = k.features },
		"text snap columns arrays mixed ogb arrays"},
	"--labels": {func(o *source.Options, k *flagKind) { o.Labels = k.labels },
		"text snap columns arrays mixed ogb arrays"},
	"--split NAME=FILE": {func(o *source.Options, k *flagKind) {
		o.Splits = map[string]string{"train": k.ids}
	}, "text snap columns arrays mixed ogb ogb arrays"},
	"--src-type": {func(o *source.Options, _ *flagKind) { o.SrcType, o.DstType = "u", "u" },
		"text snap columns"},
	"--dst-type": {func(o *source.Options, _ *flagKind) { o.DstType = "u" },
		"text snap columns"},
	"--src-col": {func(o *source.Options, k *flagKind) {
		o.SrcCol = "also"
		if k.opt.Nodes == "" && k.files["d/train.tsv"] != nil {
			o.SrcCol, o.DstCol = "2", "0"
		}
	}, "text snap columns mixed triples"},
	"--dst-col": {func(o *source.Options, k *flagKind) {
		o.DstCol = "also"
		if k.files["d/train.tsv"] != nil {
			o.DstCol, o.SrcCol = "0", "2"
		}
	}, "text snap columns mixed triples"},
	"--rel-col": {func(o *source.Options, k *flagKind) {
		o.RelCol = "kind"
		if k.files["d/train.tsv"] != nil {
			o.RelCol, o.DstCol = "2", "1"
		}
	}, "text snap columns mixed triples"},
	"--weight-col": {func(o *source.Options, _ *flagKind) { o.WeightCol = "heavy" },
		"text snap columns mixed"},
	"--time-col": {func(o *source.Options, _ *flagKind) { o.TimeCol = "day" },
		"text snap columns mixed"},
	"--column-types": {func(o *source.Options, _ *flagKind) {
		o.ColumnTypes = "edges.heavy=float64"
	}, "text snap columns mixed"},
	"--id-col": {func(o *source.Options, _ *flagKind) { o.IDCol = "other" }, "text snap columns"},
	"--label-col": {func(o *source.Options, _ *flagKind) { o.LabelCol = "topic" },
		"text snap columns"},
	"--feature-cols": {func(o *source.Options, _ *flagKind) { o.FeatureCols = "5" },
		"text snap columns"},
	"--categorical": {func(o *source.Options, _ *flagKind) { o.Categorical = "tags" },
		"text snap columns"},
	"--split-col": {func(o *source.Options, _ *flagKind) { o.SplitCol = "part" },
		"text snap columns"},
	"--fill": {func(o *source.Options, k *flagKind) {
		k.replaced(",2,5,", ",,5,")
		o.Fill = "mean"
	}, "text snap columns"},
	"--na": {func(o *source.Options, k *flagKind) {
		k.replaced("y,v", "-,v")
		k.replaced("0\n1\n0\n", "0\n-\n0\n")
		o.NA = "-,y"
	}, "text snap columns ogb"},
	"--label-sep": {func(o *source.Options, _ *flagKind) { o.LabelSep = ";" }, "text snap " +
		"columns"},
	"--multi-label": {func(o *source.Options, _ *flagKind) { o.MultiLabel = true }, "text snap " +
		"columns"},
	"--delim": {func(o *source.Options, _ *flagKind) { o.Delim = "|" },
		"text snap mixed triples"},
	"--same-ids": {func(o *source.Options, k *flagKind) {
		if k.opt.Nodes == "" {
			o.SameIDs = true
			return
		}
		k.replaced("src,dst,", "user,item,")
		k.replaced("src\tdst\t", "user\titem\t")
		k.opt.SrcCol, k.opt.DstCol = "user", "item"
		if k.opt.Format == "snap" { // which has no names unless one says so
			k.opt.Header = "yes"
		}
		*o = k.opt
		o.SameIDs = true
	}, "text snap columns"},
	"--comment": {func(o *source.Options, k *flagKind) {
		k.replaced("a\tr\tb\n", "a\tr\tb\n1\tr\tb\n")
		o.Comment = "1"
	}, "text snap mixed triples"},
	"--header": {func(o *source.Options, k *flagKind) {
		o.Header = "no"
		if k.files["d/train.tsv"] != nil {
			k.replaced("a\tr\tb\n", "a\tr\tb\nb\tr\tc\n")
			k.replaced("b\tr\ta\n", "b\tr\ta\nb\tr\tc\n")
			o.Header = "yes"
		}
	}, "text snap mixed triples"},
	"--allow-nan": {func(o *source.Options, k *flagKind) {
		k.replaced(",2,5,", ",nan,5,")
		k.replaced("1\n2\n3\n", "1\nnan\n3\n")
		for _, name := range []string{"d/features.npy", "d/raw/data.npz"} {
			nan := arr{"<f4", shape(3, 1), []float32{1, nan32, 3}}
			switch v := k.files[name].(type) {
			case arr:
				k.files[name] = nan
			case files:
				v["node_feat.npy"] = nan
			}
		}
		o.AllowNaN = true
	}, "text snap columns arrays mixed ogb ogb arrays"},
	"--skip-bad": {func(o *source.Options, k *flagKind) {
		k.replaced("1,2,0,b,3,6", "1,2")
		k.replaced("1\t2\t0\tb\t3\t6", "1\t2")
		k.replaced("a\tr\tb\n", "a\tr\tb\nb\tr\n")
		o.SkipBad = 1
	}, "text snap columns mixed triples"},
}

// outcome is what a source gives, or the error.
func outcome(t *testing.T, k flagKind, opt source.Options) (string, error) {
	t.Helper()
	src, err := source.Open(context.Background(), k.files.fs(t), &opt)
	if err != nil {
		return "", err
	}
	defer src.Close()
	out, err := dump(src)
	return fmt.Sprintln(infoString(src.Info()), src.Info().EdgeTables) + out, err
}

// TestFlagsAreUsedOrRefused walks all flags that say what is read and all kinds of sources: what
// comes of the source is other with the flag than without it, or the flag is refused by its name
// with what to do instead.
func TestFlagsAreUsedOrRefused(t *testing.T) {
	names := source.FlagNames()
	if tested := slices.Sorted(maps.Keys(flagTests)); !slices.Equal(tested, names) {
		t.Fatalf("flags are %v, and tests are of %v", names, tested)
	}
	for _, flag := range names {
		for name := range flagKinds(t) {
			t.Run(strings.Trim(flag, "-")+" of "+name, func(t *testing.T) {
				k, c := flagKinds(t)[name], flagTests[flag]
				opt := k.opt
				c.give(&opt, &k)
				k.columnsLike(t, flag)
				with, err := outcome(t, k, opt)
				used := slices.Contains(kindsOf(c.used), name)
				if refused := errors.Is(err, input.ErrUsage) && strings.Contains(err.Error(),
					"not read with"); refused == used {
					t.Fatalf("used is to be %v: %v", used, err)
				} else if refused && !strings.Contains(err.Error(), flag) {
					t.Fatalf("the flag is not named: %v", err)
				} else if refused {
					return
				}
				without, werr := outcome(t, k, k.opt)
				if with == without && (err == nil) == (werr == nil) {
					t.Errorf("the flag changes nothing: %s%v", with, err)
				}
			})
		}
	}
}

// kindsOf splits a list of kinds, of which one has two words.
func kindsOf(list string) (kinds []string) {
	list, binary := strings.CutSuffix(list, "ogb arrays")
	if kinds = strings.Fields(list); binary {
		kinds = append(kinds, "ogb arrays")
	}
	return kinds
}

// columnsLike gives a table of columns what replaced gave those of text, which a flag is for.
func (k *flagKind) columnsLike(t *testing.T, flag string) {
	if k.opt.Nodes != "n.feather" {
		delete(k.files, "n.feather")
		return
	}
	nodes := flagNodes
	switch flag {
	case "--fill":
		nodes = strings.Replace(nodes, " 2 5 ", " nan 5 ", 1)
	case "--allow-nan":
		nodes = strings.Replace(nodes, " 2 5 ", " nan 5 ", 1)
	case "--same-ids":
		k.files["e.feather"] = feather(t, "user item", "0 1", "1 2")
	case "--skip-bad":
		k.files["e.feather"] = feather(t, "src dst heavy", "0 1 2", "1 2 x")
		k.opt.WeightCol = "heavy"
	}
	rows := strings.Split(strings.TrimSpace(nodes), "\n")
	k.files["n.feather"] = feather(t, rows[0], rows[1:]...)
}

// TestSourceIsNotLeftOut: a file that is named as a source beside --edges is read for something,
// or it is an error.
func TestSourceIsNotLeftOut(t *testing.T) {
	fl := files{"a.csv": "1,2\n", "b.csv": "2,3\n", "n.csv": "id,f0\n1,1\n2,2\n3,3\n"}
	both := source.Options{Sources: []string{"a.csv", "n.csv"}, Edges: "a.csv", Nodes: "n.csv"}
	if _, err := open(t, fl, both); err != nil {
		t.Error(err)
	}
	for _, opt := range []source.Options{{Sources: []string{"a.csv"}, Edges: "b.csv"},
		{Sources: []string{"a.csv"}, Relations: []source.Relation{{Name: "r", File: "b.csv"}}}} {
		_, err := open(t, fl, opt)
		if !errors.Is(err, input.ErrUsage) || !strings.Contains(err.Error(), "a.csv") {
			t.Errorf("%+v: %v", opt, err)
		}
	}
}
