package main

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gdb/cmd/gdb/cli"
	"gdb/internal/testgraph"

	"github.com/cockroachdb/pebble/v2/vfs"
)

var rewriteDocs = flag.Bool("rewrite", false,
	"write what the commands of docs/shell.md print to it")

// docRun runs one line of docs/shell.md, without its prompt, and returns what it prints.
func docRun(line string) string {
	var out bytes.Buffer
	s := cli.Streams{In: strings.NewReader(""), Out: &out, Err: &out}
	if stmt, ok := strings.CutPrefix(line, "gdb> "); ok {
		s.In, s.InTTY, s.OutTTY = strings.NewReader(stmt), true, true
		execute(context.Background(), []string{"shell", "cora.gdb", "--color", "never"}, s)
		return out.String()
	}
	line = strings.TrimPrefix(line, "$ ")
	if input, command, ok := strings.Cut(line, " | "); ok {
		s.In = strings.NewReader(strings.Trim(strings.TrimPrefix(input, "echo "), `"`))
		line = command
	}
	execute(context.Background(), splitArgs(strings.TrimPrefix(line, "gdb ")), s)
	return out.String()
}

// TestShellDoc runs every example of docs/shell.md, in order, and compares what is printed with
// what the page says. Run with -rewrite to accept.
func TestShellDoc(t *testing.T) {
	root := inTempDir(t)
	if err := testgraph.WriteCora(vfs.Default, "cora"); err != nil {
		t.Fatal(err)
	}
	calls := "src,dst,weight\nann,dan,90\nbob,dan,5\ncyd,dan,4\neve,dan,0\n"
	if err := os.WriteFile("calls.csv", []byte(calls), 0o644); err != nil {
		t.Fatal(err)
	}
	same := func(s string) string { return s }
	if n := checkDoc(t, root+"/../../docs/shell.md", same, same); n < 20 {
		t.Errorf("%d examples were run", n)
	}
}

// inTempDir goes to an empty directory, and returns the one before.
func inTempDir(t *testing.T) string {
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	return root
}

// checkDoc runs the examples of a page, and compares what is printed, shortened and without what
// differs from run to run, with what the page says.
func checkDoc(t *testing.T, page string, shorten, mask func(string) string) (examples int) {
	t.Helper()
	doc, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	inBlock := false
	for line := range strings.Lines(string(doc)) {
		prompt := strings.HasPrefix(line, "gdb> ") || strings.HasPrefix(line, "$ ")
		switch {
		case strings.HasPrefix(line, "```"):
			inBlock = !inBlock
			got.WriteString(line)
		case inBlock && prompt:
			examples++
			got.WriteString(line)
			got.WriteString(shorten(docRun(strings.TrimSpace(line))))
		case !inBlock:
			got.WriteString(line)
		}
	}
	if *rewriteDocs {
		if err := os.WriteFile(page, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return examples
	}
	if g, want := mask(got.String()), mask(string(doc)); g != want {
		t.Errorf("%s is not what the commands print; -rewrite accepts:\n%s", filepath.Base(page),
			firstDifference(g, want))
	}
	return examples
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return "got:  " + g[i] + "\nwant: " + w[i]
		}
	}
	return "one is longer"
}
