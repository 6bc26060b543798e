package source_test

import (
	"strings"
	"testing"

	"gdb/layout/ingest/source"
)

// TestNotes: what is read otherwise than one may think is said in numbers and names.
func TestNotes(t *testing.T) {
	sparse := files{"d/edges.npy": ints(shape(3, 2), 0, 1, 1, 2, 2, 0),
		"d/features_indptr.npy":  ints(shape(4), 0, 1, 2, 2),
		"d/features_indices.npy": ints(shape(2), 5, 999),
		"d/features_values.npy":  arr{"<f4", shape(2), []float32{1, 1}},
		"d/features_shape.npy":   ints(shape(2), 3, 1000)}
	triples := files{"d/train.tsv": "\"NY\"\tis\ta\n", "d/test.tsv": "a\tis\t\"NY\"\n"}
	for _, c := range []struct {
		files files
		want  string
	}{
		{files{"d/edges.csv": "1,2\n007,2\n"}, `"007" is not the same node as "7"`},
		{files{"d/edges.csv": "1,2\n7.0,2\n"}, `"7.0" is not the same node as "7"`},
		{files{"d/edges.csv": "1,2\n99999999999999999999,2\n"}, "is not an integer of 64 bits"},
		{triples, `"NY" is another node than NY`},
		{sparse, "0.067 % of 3 x 1000 values"},
	} {
		src, err := open(t, c.files, source.Options{})
		if err != nil {
			t.Fatal(c.want, err)
		}
		if notes := strings.Join(src.Info().Notes, "\n"); !strings.Contains(notes, c.want) {
			t.Errorf("want %s: %s", c.want, notes)
		}
		src.Close()
	}
}

// TestFormatsByName: graphs in forms that are not read are named, with how to convert them.
func TestFormatsByName(t *testing.T) {
	for text, want := range map[string]string{
		"<?xml version=\"1.0\"?>\n<graphml xmlns=\"x\">\n": "is GraphML",
		"<graphml>\n":                          "is GraphML",
		"<?xml version='1.0'?>\n<gexf>\n":      "is GEXF",
		"Creator \"x\"\ngraph\n[\n node [":     "is GML",
		"digraph G {\n a -> b\n}\n":            "is DOT",
		"<http://a> <http://b> <http://c> .\n": "is N-Triples",
		"digraph G\n{\n a -> b\n}\n":           "is DOT",
		"PREFIX ex: <http://e>\n":              "is Turtle",
		"{\n\t\"nodes\": [1]}\n":               "is JSON",
		"@prefix ex: <http://e> .\n":           "is Turtle",
		"{\"nodes\": [1]}\n":                   "is JSON",
		"[{\"source\": 1}]\n":                  "is JSON",
		"*Vertices 3\n1 \"a\"\n":               "Pajek",
	} {
		for _, name := range []string{"g.txt", "g.csv"} {
			_, err := open(t, files{name: text}, source.Options{Sources: []string{name}})
			if err == nil || !strings.Contains(err.Error(), want) ||
				!strings.Contains(err.Error(), "convert") {
				t.Errorf("%q: %v", text, err)
			}
		}
	}
	for _, text := range []string{"graph,b\nb,c\n", "<a>,<b>\n<b>,<c>\n", "digraph\tx\nx\ty\n",
		"a -> b,c\nd,a -> b\n", "{id},{to}\n{to},{id}\n", "{\"a\": 1}\tx\nx\ty\n",
		"<a>\t<St.>\n<St.>\t<a>\n", "prefix,<x>\n<x>,base\n", "[1],[2]\n[2],[3]\n",
		"graph [x],b\nb,c\n"} {
		if _, err := open(t, files{"g.csv": text}, source.Options{Sources: []string{"g.csv"},
			Header: "no"}); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestSplitFirstLine: the first line of a file of ids is an id where ids are text, unless it has a
// usual name of a column of ids; among integers a word names the column.
func TestSplitFirstLine(t *testing.T) {
	for _, c := range []struct{ edges, ids, want string }{
		{"1,2\nx1,3\n", "x1\n1\n2\n", "train x1\ntrain 1\ntrain 2\n"},
		{"1,2\nx1,3\n", "id\n1\n2\n", "train 1\ntrain 2\n"},
		{"1,2\n2,3\n", "paper\n1\n2\n", "train 1\ntrain 2\n"},
	} {
		src, err := open(t, files{"e.csv": c.edges, "s.txt": c.ids}, source.Options{
			Sources: []string{"e.csv"}, Splits: map[string]string{"train": "s.txt"}})
		if err != nil {
			t.Fatal(err)
		}
		got, err := dump(src)
		if err != nil || !strings.HasSuffix(got, c.want) ||
			strings.Count(got, "train") != strings.Count(c.want, "train") {
			t.Errorf("%q: %s%v", c.ids, got, err)
		}
		src.Close()
	}
}

// TestUnlabeled: -1, -100 and NaN are unlabeled in arrays, but where -1 and 1 are all labels;
// of multi-labels some may be unknown.
func TestUnlabeled(t *testing.T) {
	edges := ints(shape(3, 2), 0, 1, 1, 2, 2, 0)
	for _, c := range []struct {
		labels     arr
		want, what string
	}{
		{ints(shape(3), 0, -100, -1), "label 0 0\nlabel 1 -1\nlabel 2 -1\n", ""},
		{arr{"<f4", shape(3), []float32{2, -100, nan32}},
			"label 0 2\nlabel 1 -1\nlabel 2 -1\n", ""},
		{ints(shape(3), 1, -1, 1), "label 0 1\nlabel 1 -1\nlabel 2 1\n", ""},
		{ints(shape(3), 1, -2, 1), "", "label -2 is not a class"},
		{arr{"<f4", shape(3, 2), []float32{1, 0, nan32, -100, 0, 0}},
			"label 0 0\nlabel 2 -2\n", ""},
		{arr{"<f4", shape(3, 2), []float32{1, 0, 1, nan32, 0, 0}},
			"label 0 0\nlabel 1 0\nlabel 1 1 unknown\nlabel 2 -2\n", ""},
		{ints(shape(3, 2), 1, 0, -1, 1, -100, 0),
			"label 0 0\nlabel 1 0 unknown\nlabel 1 1\nlabel 2 0 unknown\n", ""},
		{arr{"<f4", shape(3, 2), []float32{1, 0, 0.5, nan32, 0, 0}}, "", "column 0 is 0.5"},
	} {
		src, err := open(t, files{"d/edges.npy": edges, "d/labels.npy": c.labels}, source.Options{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := dump(src)
		if c.what == "" && (err != nil || !strings.HasSuffix(got, c.want)) ||
			c.what != "" && (err == nil || !strings.Contains(err.Error(), c.what)) {
			t.Errorf("%v: %s%v", c.labels.data, got, err)
		}
		src.Close()
	}
}
