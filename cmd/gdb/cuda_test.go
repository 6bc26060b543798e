//go:build cuda && cgo && linux

package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"gdb/internal/cuda/cudatest"
	"gdb/internal/testgraph"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestCoraOnDevice trains on Cora on the CPU and on a device: the losses of epochs are the same but
// for rounding. What the device trained is evaluated with it and without.
func TestCoraOnDevice(t *testing.T) {
	emulator := cudatest.Start(t, "../../compute/backend/cuda/kernels/kernels.cu")
	dir := t.TempDir()
	store := filepath.Join(dir, "cora.gdb")
	if err := testgraph.WriteCora(vfs.Default, filepath.Join(dir, "cora")); err != nil {
		t.Fatal(err)
	}
	gdbOK(t, "ingest "+filepath.Join(dir, "cora")+" --undirected --normalize row --out "+store)
	train := "train " + store + " --fanout 5,5 --hidden 16 --epochs 3 --json --quiet --memory 1GiB"
	want := epochLosses(t, gdbOK(t, train+" --backend cpu --run cpu"))
	got := epochLosses(t, gdbOK(t, train+" --backend cuda --device 0 --run cuda"))
	for i, loss := range want {
		if math.Abs(got[i]-loss) > 1e-3 {
			t.Errorf("epoch %d: loss %g, on the CPU %g", i+1, got[i], loss)
		}
	}
	checkVectors(t, emulator, store, dir)
	eval := "eval " + store + " --run cuda --split test --json"
	with := gdbOK(t, eval)
	emulator.Set(t, "devices", 0)
	if without := gdbOK(t, eval); !sameEvaluation(t, with, without) {
		t.Errorf("evaluated with the device:\n%s\nand without:\n%s", with, without)
	}
}

// sameEvaluation reports whether two evaluations are the same, but for what follows of the last
// digits of probabilities, which is close.
func sameEvaluation(t *testing.T, a, b string) bool {
	t.Helper()
	var ece [2]float64
	var rest [2]map[string]any
	for i, text := range []string{a, b} {
		if err := json.Unmarshal([]byte(text), &rest[i]); err != nil {
			t.Fatal(err)
		}
		curves, ok := rest[i]["curves"].(map[string]any)
		if !ok {
			t.Fatal("there are no curves")
		}
		ece[i] = curves["ece"].(float64)
		delete(rest[i], "curves")
	}
	return reflect.DeepEqual(rest[0], rest[1]) && math.Abs(ece[0]-ece[1]) < 1e-3
}

// checkVectors compares vectors of nodes that a device computed, in a part of its memory, with
// those of the CPU.
func checkVectors(t *testing.T, emulator *cudatest.Emulator, store, dir string) {
	t.Helper()
	before := emulator.Count("launches")
	var rows [2][]string
	for i, on := range []string{"cpu", "cuda --device 0 --device-memory 64MiB"} {
		out := filepath.Join(dir, strings.Fields(on)[0]+".csv")
		gdbOK(t, "embed "+store+" --run cuda --quiet --out "+out+" --backend "+on)
		text, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		rows[i] = strings.Fields(strings.ReplaceAll(string(text), ",", " "))
	}
	idle := emulator.Emulated() && emulator.Count("launches") == before
	if idle || len(rows[0]) != len(rows[1]) {
		t.Fatalf("%d and %d values, or nothing ran on the device", len(rows[0]), len(rows[1]))
	}
	for i, text := range rows[0] {
		want, err := strconv.ParseFloat(text, 64)
		if err != nil { // of the header
			continue
		}
		if got, err := strconv.ParseFloat(rows[1][i], 64); err != nil ||
			math.Abs(got-want) > 1e-5*(1+math.Abs(want)) {
			t.Fatalf("value %d is %s, on the CPU %s", i, rows[1][i], text)
		}
	}
}

// gdbOK runs a command that has to end well, and returns what it wrote.
func gdbOK(t *testing.T, line string) string {
	t.Helper()
	code, stdout, stderr := gdbOutput(t, strings.Fields(line)...)
	if code != 0 {
		t.Fatalf("%s: exit code %d: %s", line, code, stderr)
	}
	return stdout
}

// epochLosses returns the losses of the epochs in a training's --json.
func epochLosses(t *testing.T, stdout string) (losses []float64) {
	t.Helper()
	for line := range strings.Lines(stdout) {
		var e struct {
			Event string
			Loss  *float64
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if e.Event != "done" && e.Loss != nil {
			losses = append(losses, *e.Loss)
		}
	}
	if len(losses) != 3 {
		t.Fatalf("%d epochs in %s", len(losses), stdout)
	}
	return losses
}

// TestRanksOnDevice trains and ranks knowledge graphs on the CPU and on a device: the mean
// reciprocal ranks of test edges are within 0.002. FB15k-237 takes too long on the emulated one.
func TestRanksOnDevice(t *testing.T) {
	names := []string{"umls", "fb15k-237"}
	if cudatest.Start(t, "../../compute/backend/cuda/kernels/kernels.cu").Emulated() {
		names = names[:1]
	}
	for _, name := range names {
		store := filepath.Join(t.TempDir(), name+".gdb")
		gdbOK(t, "ingest "+realGraph(t, name)+" --out "+store+" --quiet")
		var mrr [2]float64
		for i, on := range []string{"cpu", "cuda"} {
			out := gdbOK(t, "train "+store+" --task link --decoder distmult --dim 32 "+
				"--negatives 32 --epochs 4 --eval-every 2 --json --quiet --memory 1GiB "+
				"--run "+on+" --backend "+on)
			lines := strings.Split(strings.TrimSpace(out), "\n")
			var last struct{ Test float64 }
			if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
				t.Fatal(err)
			}
			mrr[i] = last.Test
		}
		t.Logf("%s: MRR %.4f on the CPU, %.4f on the device", name, mrr[0], mrr[1])
		if !(mrr[0] > 0) || math.Abs(mrr[0]-mrr[1]) > 0.002 {
			t.Errorf("%s: MRR %g on the CPU, %g on the device", name, mrr[0], mrr[1])
		}
	}
}
