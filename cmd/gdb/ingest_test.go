package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"gdb/cmd/gdb/cli"
	"gdb/layout/ingest/source"

	"github.com/spf13/pflag"
)

// TestCommandLine: what is printed to go on with means the same to a shell.
func TestCommandLine(t *testing.T) {
	args := []string{"ingest", "my graph.csv", "--split", "train=a'b.txt", "--delim", "|",
		"part-*.csv", "--out=s", "", "$HOME", `a\b`, "--resume"}
	line := (&app{}).commandLine(args)
	out, err := exec.CommandContext(t.Context(), "sh", "-c", "printf '%s\\n' "+line).Output()
	if got := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n"); err != nil ||
		!slices.Equal(got[1:], args) {
		t.Errorf("%s is read as %q, %v", line, got, err)
	}
	const plain = "ingest d/ --edges e.csv --split train=t.txt --memory 1GiB --feature-cols f0:f7"
	if got := (&app{}).commandLine(strings.Fields(plain)); got != "gdb "+plain {
		t.Errorf("%s is quoted: %s", plain, got)
	}
}

// notOfSources are the flags of ingest that say nothing of what is read: what becomes of it, or
// how.
var notOfSources = strings.Fields("out format undirected dedup keep-duplicates merge " +
	"keep-self-loops " +
	"direction edge-split missing-nodes split-column partitions partitioner restream cluster " +
	"feature-dtype normalize reverse " +
	"block resume dry-run schema schema-out")

// TestIngestFlagsAreOfSources: every flag of ingest is in the table of those that sources read or
// refuse, or says nothing of what is read.
func TestIngestFlagsAreOfSources(t *testing.T) {
	of := map[string]bool{}
	for _, name := range source.FlagNames() {
		name, _, _ = strings.Cut(strings.TrimPrefix(name, "--"), " ")
		of[name] = true
	}
	(&app{}).ingestCommand().Flags().VisitAll(func(f *pflag.Flag) {
		if of[f.Name] == slices.Contains(notOfSources, f.Name) {
			t.Errorf("--%s: which sources read it? See flagRules of layout/ingest/source", f.Name)
		}
	})
}

// TestIngestFlagsGivenTwice: a flag of one value is an error the second time, and so is a second
// table of nodes or file of a split.
func TestIngestFlagsGivenTwice(t *testing.T) {
	t.Chdir(t.TempDir())
	for line, want := range map[string]string{
		"--labels a --labels b":    `it was given as "a" before`,
		"--nodes a --nodes item=b": "need the type of each",

		"--split train=a --split train=b":       "put the ids of one split",
		"--undirected --undirected=false":       `it was given as "true" before`,
		"--feature-cols a,b --feature-cols c":   `it was given as "a,b" before`,
		"--edges e.csv --src-col a --src-col b": `it was given as "a" before`,
	} {
		code, _, errs := said(strings.Fields("ingest d --out s " + line)...)
		if code != exitUsage || !strings.Contains(strings.Join(strings.Fields(errs), " "), want) {
			t.Errorf("%s: exit code %d: %s", line, code, errs)
		}
	}
}

// TestStoppedStandardInput: an ingest of standard input that is stopped is not told to be resumed.
func TestStoppedStandardInput(t *testing.T) {
	t.Chdir(t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	var out, errs bytes.Buffer
	in := io.MultiReader(strings.NewReader("src,dst\n1,2\n"), readerFunc(func() { cancel() }))
	code := execute(ctx, []string{"ingest", "-", "--out", "s"}, cli.Streams{In: in, Out: &out,
		Err: &errs})
	said := strings.Join(strings.Fields(errs.String()), " ")
	if code != exitInterrupted || !strings.Contains(said, "delete s and give it again") ||
		strings.Contains(said, "--resume") {
		t.Errorf("exit code %d: %s", code, said)
	}
	if _, err := os.Stat("s.stdin"); err == nil {
		t.Error("the copy is left behind")
	}
}

// readerFunc is an empty reader that calls itself.
type readerFunc func()

func (f readerFunc) Read([]byte) (int, error) {
	f()
	return 0, io.EOF
}
