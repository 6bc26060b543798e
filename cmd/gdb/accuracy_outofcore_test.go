package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gdb/bench/gen"
)

const (
	blockModelNodes = 4000
	// marginLeast is by how much neighbors must raise the accuracy.
	marginLeast = 0.10
)

// blockModel writes a block model as arrays, and a second one of the same nodes whose only edges
// are to themselves: what is trained on that is a perceptron of the features, with no neighbors.
func blockModel(t *testing.T) (graph, alone string) {
	t.Helper()
	graph, alone = filepath.Join(t.TempDir(), "sbm"), filepath.Join(t.TempDir(), "alone")
	for _, out := range []string{graph, alone} {
		_, err := gen.Make(t.Context(), gen.Options{Kind: "sbm", Nodes: blockModelNodes,
			Edges: 80_000, Dim: 32, Classes: 8, TrainFrac: 0.3, Seed: 1, Out: out})
		if err != nil {
			t.Fatal(err)
		}
	}
	header := fmt.Sprintf("{'descr': '<i8', 'fortran_order': False, 'shape': (%d, 2), }",
		blockModelNodes)
	b := fmt.Appendf(nil, "\x93NUMPY\x01\x00\x76\x00%-117s\n", header)
	for v := range uint64(blockModelNodes) {
		b = binary.LittleEndian.AppendUint64(b, v)
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	if err := os.WriteFile(filepath.Join(alone, "edges.npy"), b, 0o600); err != nil {
		t.Fatal(err)
	}
	return graph, alone
}

// TestAccuracyOutOfCore trains on a block model with and without its features in memory: the
// weights, the state of the optimizer and the predictions are the same bit for bit, and better than
// those of a perceptron, which sees no neighbors, by 10 points and more.
func TestAccuracyOutOfCore(t *testing.T) {
	if testing.Short() {
		t.Skip("trains four times")
	}
	graph, alone := blockModel(t)
	stores := map[string]string{}
	for _, arrays := range []string{graph, alone} {
		stores[arrays] = arrays + ".gdb"
		mustRun(t, "ingest", arrays, "--quiet", "--out", stores[arrays])
	}
	train := func(arrays, run, flags string) float64 {
		code, stdout, stderr := gdbOutput(t, strings.Fields("train "+stores[arrays]+" --run "+run+
			" --hidden 32 --batch 200 --epochs 12 --lr 0.01 --json --quiet "+flags)...)
		if code != 0 {
			t.Fatalf("train %s: exit code %d: %s", flags, code, stderr)
		}
		return testValue(t, stdout)
	}
	inMemory := train(graph, "memory", "--fanout 10,10 --memory 1GiB")
	want := trainedState(t, stores[graph], "memory")
	for _, cache := range []string{"belady", "static"} {
		got := train(graph, cache, "--fanout 10,10 --topology paged --feature-cache 64KiB --cache "+
			cache)
		compareContent(t, trainedState(t, stores[graph], cache), want)
		if got != inMemory {
			t.Errorf("cache %s: test accuracy %v, in memory %v", cache, got, inMemory)
		}
	}
	// Without a hidden layer and with one: the better is compared.
	perceptron := max(train(alone, "one", "--fanout 1"), train(alone, "two", "--fanout 1,1"))
	t.Logf("test accuracy %.4f, of a perceptron %.4f", inMemory, perceptron)
	if inMemory < perceptron+marginLeast {
		t.Errorf("test accuracy %.4f, of a perceptron %.4f: want %.2f more", inMemory, perceptron,
			marginLeast)
	}
}
