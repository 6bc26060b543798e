package main

import (
	"bytes"
	"context"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"gdb/cmd/gdb/cli"
	"gdb/internal/testgraph"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// readers is how many shells read the store at once.
const readers = 8

// TestReadersBesideTraining holds that shells, a check and a training of one store do not lock
// each other out: none fails, and the training ends with the same weights as alone.
func TestReadersBesideTraining(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a dozen processes")
	}
	store := coraStore(t)
	train := func(name string) *exec.Cmd {
		return child(t.Context(), "train", store, "--run", name, "--fanout", "5,5",
			"--hidden", "16", "--batch", "20", "--epochs", "20", "--quiet", "--threads", "1")
	}
	if out, err := train("alone").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var ended atomic.Bool
	asked := make(chan int, readers)
	for i := range readers {
		go func() {
			n := 0
			for ; n == 0 || !ended.Load(); n++ {
				cmd := child(t.Context(), "shell", store,
					"-c", "NEIGHBORS 42 HOPS 2; DEGREES TOP 3;",
					"-c", "SAMPLE SPLIT train FANOUT 5,5 SHOW layers; LABELS SPLIT val COUNTS;")
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("shell %d: %v\n%s", i, err, out)
				}
			}
			asked <- n
		}()
	}
	checks := make(chan error, 1)
	go func() {
		out, err := child(t.Context(), "check", store, "--full").CombinedOutput()
		if err != nil {
			t.Errorf("check: %v\n%s", err, out)
		}
		checks <- err
	}()
	out, err := train("beside").CombinedOutput()
	ended.Store(true)
	if err != nil {
		t.Errorf("train: %v\n%s", err, out)
	}
	shells := 0
	for range readers {
		shells += <-asked
	}
	<-checks
	t.Logf("%d shells ran beside the training", shells)
	compareContent(t, trainedState(t, store, "beside"), trainedState(t, store, "alone"))
}

// coraStore ingests the graph of the demo and returns its folder.
func coraStore(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := testgraph.WriteCora(vfs.Default, dir+"/cora"); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	s := cli.Streams{In: strings.NewReader(""), Out: &out, Err: &out}
	if code := execute(context.Background(), []string{"ingest", dir + "/cora", "--out",
		dir + "/s.gdb",
		"--undirected"}, s); code != 0 {
		t.Fatalf("ingest: %s", out.String())
	}
	return dir + "/s.gdb"
}
