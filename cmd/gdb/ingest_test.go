package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
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
