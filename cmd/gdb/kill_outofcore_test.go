package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gdb/bench/gen"
)

// outOfCoreStore ingests a graph whose features take several times what outOfCoreTrain leaves for
// them.
func outOfCoreStore(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	arrays, store := filepath.Join(dir, "arrays"), filepath.Join(dir, "g.gdb")
	_, err := gen.Make(t.Context(), gen.Options{Kind: "rmat", Nodes: 1 << 14, Edges: 200_000,
		Dim: 600, Classes: 5, TrainFrac: 0.3, Seed: 1, Out: arrays})
	if err != nil {
		t.Fatal(err)
	}
	mustRun(t, "ingest", arrays, "--undirected", "--quiet", "--out", store)
	if err := os.RemoveAll(arrays); err != nil {
		t.Fatal(err)
	}
	return store
}

// outOfCoreTrain returns the arguments of a training that spends its time in the main loop.
func outOfCoreTrain(store, run string, flags ...string) []string {
	return append([]string{"train", store, "--run", run, "--fanout", "5,5", "--hidden", "16",
		"--batch", "100", "--epochs", "6", "--eval-every", "3", "--checkpoint-every", "7",
		"--threads", "1", "--quiet"}, flags...)
}

// TestKilledOutOfCore kills trainings on superbatches in little memory, in the main loop, several
// times each: the files of the killed process go with the next one, and the weights and predictions
// in the end equal those of an undisturbed run in much memory.
func TestKilledOutOfCore(t *testing.T) {
	k := newKilling(t)
	store := outOfCoreStore(t)
	mustRun(t, outOfCoreTrain(store, "whole", "--memory", "2GiB")...)
	want := trainedState(t, store, "whole")
	little := []string{"--cache", "belady", "--memory", "190MiB", "--feature-cache", "10MiB"}
	takes := mustRun(t, outOfCoreTrain(store, "measure", little...)...)
	found := 0
	for trial := 0; k.kills > 0; trial++ {
		if trial > 30 {
			t.Fatal("trainings end before they are killed")
		}
		run := "k" + string(rune('a'+trial))
		args := outOfCoreTrain(store, run, little...)
		for k.killInLoop(t, takes, store, run, args) {
			if superbatchFiles(t, store, run) > 0 {
				found++
			}
			if _, err := os.Stat(filepath.Join(store, "runs", run, "run.json")); err == nil {
				args = []string{"train", store, "--resume", run, "--quiet"}
			}
			if k.kills <= 0 {
				mustRun(t, args...)
				break
			}
		}
		compareContent(t, trainedState(t, store, run), want)
		if left, err := os.ReadDir(filepath.Join(store, "prep")); err != nil || len(left) > 0 {
			t.Errorf("left in prep: %v, %v", left, err)
		}
	}
	t.Logf("%d killed processes left files of superbatches", found)
	if found == 0 {
		t.Error("no killed process left files of superbatches: there was nothing to remove")
	}
	mustRun(t, "check", store, "--full", "--quiet")
}

// killInLoop runs a training and kills it a while after its first superbatch was begun. It reports
// whether the kill came in time; if not, the training is done.
func (k *killing) killInLoop(t *testing.T, takes time.Duration, store, run string,
	args []string) bool {
	t.Helper()
	cmd := child(t.Context(), args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	left := superbatchFiles(t, store, run)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	// What a killed process left is removed before the loop begins.
	for ; left > 0 && len(ended) == 0; left = superbatchFiles(t, store, run) {
		time.Sleep(time.Millisecond)
	}
	for ; left == 0 && len(ended) == 0; left = superbatchFiles(t, store, run) {
		time.Sleep(time.Millisecond)
	}
	after := time.Duration(k.r.Int64N(int64(takes)))
	select {
	case err := <-ended:
		if err != nil {
			t.Fatalf("gdb %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
		}
		return false
	case <-time.After(after):
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Logf("kill: %v", err) // it has just ended
	}
	if err := <-ended; err == nil {
		return false
	}
	k.kills--
	t.Logf("%s killed %v after its first superbatch was begun", run, after)
	return true
}

// superbatchFiles counts the files of a run's superbatches.
func superbatchFiles(t *testing.T, store, run string) int {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(store, "prep", "superbatch-"+run, "[0-9]*"))
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}
