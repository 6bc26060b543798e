package source_test

import (
	"strings"
	"testing"

	"gdb/layout/ingest/source"
)

// TestHeaderByNodes: where the rows below leave it open, the table of nodes tells whether the first
// row is an edge.
func TestHeaderByNodes(t *testing.T) {
	const below = "carl,dora\nbob,carl\n"
	many := "id\n" + strings.Repeat("x\n", 3) + "anna\nbob\ncarl\ndora\nfar,away\n" // a bad line
	for _, c := range []struct {
		edges, nodes string
		header       string // yes, no or open
	}{
		{"anna,bob\n" + below, many, "no"},
		{"anna,zoe\n" + below, many, "no"},
		{"left,right\n" + below, many, "yes"},
		{"left,right\n" + below, "id\nx\ny\n", "open"},
		{"left,right\n" + below, "id\ncarl\ny\n", "yes"},
		{"left,right\ncarl,dora\na,b\nc,d\n", "id\ncarl\ny\n", "open"},
		{"user,item\n" + below, "name\nuser\nitem\ncarl\n", "no"}, // a usual name of a column
	} {
		fs := files{"e.csv": c.edges, "n.csv": c.nodes}.fs(t)
		opt := source.Options{Edges: "e.csv", Nodes: "n.csv", Header: "auto", SkipBad: 1}
		src, err := source.Open(t.Context(), fs, &opt)
		got := "open"
		if err == nil {
			got = "no"
			for _, n := range src.Info().Notes {
				if strings.HasPrefix(n, "e.csv: the first line names the columns") {
					got = "yes"
				}
			}
		}
		if got != c.header || err != nil && !strings.Contains(err.Error(), "say --header") {
			t.Errorf("%q with nodes %q: header %s, want %s; %v", c.edges, c.nodes, got, c.header,
				err)
		}
		if err == nil && src.(skipCounter).SkippedLines() != 0 {
			t.Error("a bad line of the nodes was counted before they are read")
		}
	}
}

// TestHeaderOfList: of a list of ids that are text the form of the first line says nothing. It is a
// name if it is a usual one, and an id if it comes again; else gdb asks, since a node would
// be made of a name, and says what helps where other tables have their names.
func TestHeaderOfList(t *testing.T) {
	for text, want := range map[string]string{
		"customer\nann\nbob\n":             "open",
		"customer\nu1\nu2\nu3\nu4\nu5\n":   "open",
		"ann\nbob\ncarl\n":                 "open",
		"id\nann\nbob\n":                   "yes",
		"friend_name\nann\nbob\n":          "yes",
		"customer\n1\n2\n":                 "yes",
		"ann\nbob\nann\n":                  "no",
		"ann\n":                            "no",
		"customer\nann\nbob\n --header no": "no",
	} {
		list, header, _ := strings.Cut(text, " --header ")
		if header == "" {
			header = "auto"
		}
		fs := files{"n.csv": list}.fs(t)
		src, err := source.Open(t.Context(), fs, &source.Options{Nodes: "n.csv", NoEdges: true,
			Header: header})
		got := "open"
		if err == nil {
			got = "no"
			for _, n := range src.Info().Notes {
				if strings.HasPrefix(n, "n.csv: the first line names the columns") {
					got = "yes"
				}
			}
		}
		if got != want || err != nil && !strings.Contains(err.Error(), "name of a column: id") {
			t.Errorf("%q: header %s, want %s; %v", text, got, want, err)
		}
	}
}

type skipCounter interface{ SkippedLines() int64 }

// TestFractionsAreNoEnds: where no flag and no name tells the ends of edges, a column with
// fractions is none.
func TestFractionsAreNoEnds(t *testing.T) {
	for text, want := range map[string]string{
		"sum,a,b\n0.5,1,2\n1,2,3\n": "edge 1 2",
		"a,sum,b\n1,0.5,2\n2,,3\n":  "edge 1 2",
		"a,b\n0.5,1\n1,2\n":         "edge 0.5 1", // there is no choice
	} {
		src, err := source.Open(t.Context(), files{"e.csv": text}.fs(t),
			&source.Options{Sources: []string{"e.csv"}})
		if err != nil {
			t.Fatal(err)
		}
		src.(interface{ ForceText() }).ForceText()
		if got, err := dump(src); err != nil || !strings.HasPrefix(got, want+"\n") {
			t.Errorf("%q: %q, %v, want %s", text, got, err, want)
		}
	}
}

// TestDividedTable: a table that is divided by directories of values is refused by name.
func TestDividedTable(t *testing.T) {
	fs := files{"t/kind=a/0.parquet": "", "t/kind=b/0.parquet": ""}.fs(t)
	_, err := source.Open(t.Context(), fs, &source.Options{Sources: []string{"t"}})
	if err == nil || !strings.Contains(err.Error(), `divided by its column "kind"`) {
		t.Error(err)
	}
}
