package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// linkStore ingests triples with splits: each of 300 entities has 7 edges, of three relations.
func linkStore(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	files := map[string]*strings.Builder{}
	for _, split := range []string{"train", "valid", "test"} {
		files[split] = &strings.Builder{}
	}
	const entities = 300
	for head := range entities {
		for i, step := range []int{1, 2, 3, 50, 101, 150, 299} {
			split := "train"
			if i == 1 && head%10 == 0 {
				split = "valid"
			} else if i == 4 && head%10 == 5 {
				split = "test"
			}
			fmt.Fprintf(files[split], "e%d\tr%d\te%d\n", head, i%3, (head+step)%entities)
		}
	}
	for split, text := range files {
		if err := os.WriteFile(filepath.Join(dir, split+".tsv"), []byte(text.String()),
			0o644); err != nil {
			t.Fatal(err)
		}
	}
	store := filepath.Join(t.TempDir(), "kg.gdb")
	mustRun(t, "ingest", dir, "--out", store, "--quiet")
	return store
}

// trainedLinks returns what a run of links on disk came to: the vectors of its best evaluation, and
// what its files hold but for their headers, which count checkpoints. Of each partition these are
// two files, and another with its vectors if it has changed since the best evaluation.
func trainedLinks(t *testing.T, store, run string) map[string][]byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "v.csv")
	mustRun(t, "embed", store, "--run", run, "--quiet", "--out", out)
	vectors, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	content := map[string][]byte{"vectors": vectors}
	files, err := filepath.Glob(filepath.Join(store, "runs", run, "partitions", "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	slices.Sort(files)
	for _, file := range files {
		part, _, _ := strings.Cut(filepath.Base(file), "-")
		part += filepath.Ext(file)
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if content[part] != nil {
			part += " now"
		}
		content[part] = b[4096:]
	}
	return content
}

// TestKilledLinks kills trainings of links past memory at random moments: nothing of the last
// checkpoint is lost, and resumed they end with the vectors, and the optimizer's state, of one that
// was left alone.
func TestKilledLinks(t *testing.T) {
	k := newKilling(t)
	if os.Getenv(killsEnv) == "" {
		k.kills /= 2 // for the time that tests may take
	}
	store := linkStore(t)
	args := func(run string) []string {
		return []string{"train", store, "--task", "link", "--run", run, "--decoder", "complex",
			"--dim", "16", "--negatives", "8", "--batch", "96", "--epochs", "2",
			"--eval-every", "1", "--order", "tlbeta", "--partitions", "6",
			"--partitions-in-memory", "4", "--checkpoint-every", "5", "--threads", "1", "--quiet"}
	}
	takes := mustRun(t, args("whole")...)
	want := trainedLinks(t, store, "whole")
	kills := k.kills
	for trial := 0; k.kills > 0; trial++ {
		if trial > 10*kills {
			t.Fatal("trainings end before they are killed")
		}
		run := strconv.Itoa(trial)
		// A run that was killed before it had a directory is not there to be resumed.
		for killedEarly(t, k, takes, store, run, args(run)) {
		}
		resume := []string{"train", store, "--resume", run, "--quiet"}
		k.killAndFinish(t, takes, resume, resume)
		compareContent(t, trainedLinks(t, store, run), want)
	}
	mustRun(t, "check", store, "--full", "--quiet")
}
