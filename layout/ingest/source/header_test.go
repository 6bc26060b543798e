package source

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"gdb/layout/ingest/input"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// textEdges are edges between string ids of a form.
func textEdges(ids func(i int) string, nodes, edges int) string {
	rnd, b := rand.New(rand.NewPCG(1, 2)), strings.Builder{}
	for range edges {
		fmt.Fprintf(&b, "%s,%s\n", ids(rnd.IntN(nodes)), ids(rnd.IntN(nodes)))
	}
	return b.String()
}

// TestHeaderOfStringIDs: ordinary heads of columns above string ids are not taken for an edge, and
// a first edge is not taken for a head.
func TestHeaderOfStringIDs(t *testing.T) {
	names := strings.Fields("anna ben carla dirk emma felix greta hugo ida jan kira leo mia nils")
	ids := map[string]func(i int) string{
		"u17":   func(i int) string { return fmt.Sprintf("u%d", i) },
		"names": func(i int) string { return names[i%len(names)] + names[i/len(names)%len(names)] },
		"hex":   func(i int) string { return fmt.Sprintf("%08x", uint32(i+3)*2654435761) },
		"urls":  func(i int) string { return fmt.Sprintf("https://e.org/%d", i) },
	}
	heads := []string{"user,friend", "follower,followee", "from_account,to_account", "ID1,ID2",
		"a,b", "i,j", "src,dst", "Source,Target", "person1,person2", "caller,callee", "x,y",
		"left,right", "node_1,node_2", "employee,manager"}
	for kind, id := range ids {
		edges := textEdges(id, 150, 3000)
		for _, head := range heads {
			if !isHeaderOf(t, head+"\n"+edges, kind) {
				t.Errorf("%s: %s is taken for an edge", kind, head)
			}
		}
		if isHeaderOf(t, edges, kind) {
			t.Errorf("%s: the first edge is taken for a head", kind)
		}
	}
}

func isHeaderOf(t *testing.T, text, what string) bool {
	t.Helper()
	s, err := openText(t, text, Options{Header: "auto"})
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return false
	}
	for _, n := range s.Info().Notes {
		if strings.Contains(n, "names the columns") {
			return true
		}
	}
	return false
}

func openText(t *testing.T, text string, opt Options) (Source, error) {
	t.Helper()
	fs := vfs.NewMem()
	f, err := fs.Create("e.csv", vfs.WriteCategoryUnspecified)
	if err == nil {
		_, err = f.Write([]byte(text))
	}
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	opt.Sources = []string{"e.csv"}
	return Open(t.Context(), fs, &opt)
}

// TestHeaderIsAsked: where nothing tells, gdb asks instead of guessing.
func TestHeaderIsAsked(t *testing.T) {
	for _, c := range []struct {
		text string
		want string // of the error, "" for none
	}{
		{"anna,ben\ncarla,dirk\nemma,felix\n", "does the first line name the columns"},
		{"anna,ben\nben,carla\n", ""},
		{"anna,ben\n", ""},
		{"user,friend\ncarla,dirk\nemma,felix\n", ""},
		{"anna,ben,2\ncarla,dirk,3\n", ""}, // a number is no name
		{",s,t\n0,anna,ben\n1,carla,anna\n", ""},
	} {
		_, err := openText(t, c.text, Options{Header: "auto"})
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, input.ErrUsage) ||
			!strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q: %v", c.text, err)
		}
	}
}

// TestHeaderOfPandas: the unnamed first column of a data frame is no end of an edge.
func TestHeaderOfPandas(t *testing.T) {
	s, err := openText(t, ",person,knows\n0,anna,ben\n1,carla,anna\n2,ben,carla\n",
		Options{Header: "auto"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	err = s.Edges(t.Context(), func(c *EdgeChunk) error {
		for i := range c.Len() {
			got = append(got, string(c.SrcText[i])+">"+string(c.DstText[i]))
		}
		return nil
	})
	if want := "anna>ben carla>anna ben>carla"; err != nil || strings.Join(got, " ") != want {
		t.Errorf("%v, %v", got, err)
	}
}
