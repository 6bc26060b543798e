package main

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"gdb/internal/testgraph"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/spf13/cobra"
)

// renamedLines are commands that tell which commands to run, or show the name in another way.
var renamedLines = []string{
	"--version", "nope", "help nope", "info", "info nope", "info cora/edges.npy", "info cora",
	"train --nope", "train s.gdb --lrr 1", "bench nope", "bench cache", "bench io --size x",
	"ingest", "ingest cora", "ingest pipe --out p.gdb", "ingest open.csv --out o.gdb",
	"ingest cora --out s.gdb --undirected", "ingest e.csv --out e.gdb", "check s.gdb --full",
	"ingest cora --edges e.csv --features cora/features.npy --out m.gdb",
	"runs s.gdb", "runs s.gdb show nope", "runs s.gdb paint", "eval s.gdb", "predict s.gdb",
	"shell s.gdb -c CACHE", "shell s.gdb -c NOPE", "shell s.gdb -c HELP", "shell s.gdb -c .help",
	"train s.gdb --epochs 1 --hidden 4 --fanout 2 --run one", "train e.gdb",
	"train s.gdb --run one",
	"train s.gdb --resume one --epochs 2", "train s.gdb --split-column 7", "eval s.gdb",
	"eval s.gdb --split nope", "predict s.gdb --out p.csv", "predict s.gdb --out p.csv",
	"report s.gdb --out r.html", "runs s.gdb rm one", "split s.gdb --split random=1/2",
	"split e.gdb --split random=60/20/20", "demo --dir demo --quiet", "demo --dir demo",
	"plan s.gdb --fanout 2 --hidden 4", "plan s.gdb --memory 1MiB", "check broken.gdb",
	"info broken.gdb", "completion bash", "completion fish",
}

// commandWord is gdb where a command begins, or its prompt: gdb is the product's name elsewhere.
func commandWord() *regexp.Regexp {
	var names []string
	for _, c := range (&app{}).rootCommand().Commands() {
		names = append(names, c.Name())
	}
	return regexp.MustCompile(`(?m)(^|[^.\w])gdb (` + strings.Join(names, "|") +
		`|COMMAND|--|\[)|^gdb: |gdb> `)
}

// TestRenamed: called as graphdb, gdb says graphdb.
func TestRenamed(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := testgraph.WriteCora(vfs.Default, "cora"); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"e.csv": "src,dst\n0,1\n1,2\n",
		"open.csv": "anna,bob\ncarl,dora\n"} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	lines := renamedLines
	eachCommand(func(c *cobra.Command, path []string) {
		lines = append(lines, strings.Join(append([]string{"help"}, path...), " "))
	})
	command, said := commandWord(), 0
	for _, line := range lines {
		if strings.HasPrefix(line, "demo") && testing.Short() {
			continue
		}
		if line == "check broken.gdb" {
			breakStore(t)
		}
		out, _ := exec.Command("graphdb", strings.Fields(line)...).CombinedOutput()
		if bad := command.FindString(string(out)); bad != "" {
			t.Errorf("graphdb %s says %q:\n%s", line, bad, out)
		}
		said += strings.Count(string(out), "graphdb ")
	}
	if said < 100 {
		t.Errorf("graphdb is named %d times", said)
	}
	// A shell that is typed into.
	cmd := exec.Command("graphdb", "shell", "s.gdb")
	cmd.Stdin = strings.NewReader("DEGREES OF\n42;\n")
	if out, err := cmd.CombinedOutput(); err != nil || command.Match(out) {
		t.Errorf("%v: %s", err, out)
	}
}

// breakStore copies s.gdb to broken.gdb, with a bit of its topology flipped.
func breakStore(t *testing.T) {
	t.Helper()
	if err := os.CopyFS("broken.gdb", os.DirFS("s.gdb")); err != nil {
		t.Fatal(err)
	}
	const file = "broken.gdb/topology/in.csc"
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)-5000] ^= 1
	if err := os.WriteFile(file, b, 0o644); err != nil {
		t.Fatal(err)
	}
}
