package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"gdb/internal/tables"
	"gdb/internal/testgraph"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// paperTopics are the labels of papers in the files of docs/quickstart.md.
var paperTopics = []string{"theory", "learning", "genetics", "nets", "bayes", "rules", "cases"}

// writePapers writes the files of docs/quickstart.md: Cora, under names.
func writePapers(t *testing.T) {
	t.Helper()
	if err := testgraph.WriteCora(vfs.Default, "cora"); err != nil {
		t.Fatal(err)
	}
	values := func(name string) (shape []int64, out []float32) {
		a, err := tables.OpenArray(vfs.Default, "cora/"+name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := os.Open("cora/" + name) //lint:os a file of this test
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		b, err := io.ReadAll(f)
		if err != nil {
			t.Fatal(err)
		}
		n := int64(1)
		for _, d := range a.Shape {
			n *= d
			shape = append(shape, d)
		}
		out = make([]float32, n)
		a.DType.Floats(out, b[int64(len(b))-n*int64(a.DType.Size):])
		return shape, out
	}
	var cites, papers strings.Builder
	shape, edges := values("edges.npy")
	cites.WriteString("citing,cited\n")
	for i := range shape[0] {
		fmt.Fprintf(&cites, "paper-%g,paper-%g\n", edges[2*i], edges[2*i+1])
	}
	_, labels := values("labels.npy")
	shape, words := values("features.npy")
	papers.WriteString("paper,topic")
	for k := range shape[1] {
		fmt.Fprintf(&papers, ",w%d", k)
	}
	for i, label := range labels {
		fmt.Fprintf(&papers, "\npaper-%d,%s", i, paperTopics[int(label)])
		for _, w := range words[int64(i)*shape[1] : int64(i+1)*shape[1]] {
			fmt.Fprintf(&papers, ",%g", w)
		}
	}
	for name, text := range map[string]string{"cites.csv": cites.String(),
		"papers.csv": papers.String() + "\n"} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// fewEpochs leaves out all epochs of a training but the first two and the last.
func fewEpochs(s string) string {
	lines := strings.SplitAfter(s, "\n")
	var epochs []int
	for i, line := range lines {
		if strings.HasPrefix(line, "epoch ") {
			epochs = append(epochs, i)
		}
	}
	if len(epochs) < 4 {
		return s
	}
	last := epochs[len(epochs)-1]
	return strings.Join(lines[:epochs[2]], "") + "…\n" + strings.Join(lines[last:], "")
}

// figures are numbers, times and identities: they differ between machines and runs. A star marks
// the
// best epoch, and how far columns are apart depends on the figures in them.
var figures = regexp.MustCompile(`[0-9a-f]{32}|[A-Z][a-z][a-z] \d+ \d\d:\d\d|\*? +` +
	`|[0-9][0-9.,]*[0-9]|[0-9]`)

// TestQuickstart runs every example of docs/quickstart.md, and compares the screens but for
// figures.
func TestQuickstart(t *testing.T) {
	if testing.Short() {
		t.Skip("a training")
	}
	root := inTempDir(t)
	writePapers(t)
	n := checkDoc(t, root+"/../../docs/quickstart.md", fewEpochs, func(s string) string {
		return figures.ReplaceAllStringFunc(s, func(f string) string {
			if strings.TrimLeft(f, "* ") == "" {
				return " "
			}
			return "#"
		})
	})
	if n != 9 {
		t.Errorf("%d examples were run", n)
	}
	if page, err := os.ReadFile("report.html"); err != nil || !strings.Contains(string(page),
		"<svg") {
		t.Error("there is no report", err)
	}
}
