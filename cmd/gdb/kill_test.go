package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gdb/bench/gen"
	"gdb/internal/codec"
	"gdb/kv/catalog"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// killsEnv sets how many kills each test of this file makes, killsDefault otherwise.
const (
	killsEnv     = "GDB_TEST_KILLS"
	killsDefault = 6
)

// fixedIdentityEnv makes a child of this test binary draw its store's identity from zeros, so that
// the files of two ingests can be compared.
const fixedIdentityEnv = "GDB_TEST_FIXED_IDENTITY"

// fixIdentity is called by the child.
func fixIdentity() {
	if os.Getenv(fixedIdentityEnv) != "" {
		rand.Reader = zeros{}
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// child is this test binary, run as the command gdb in a process of its own.
func child(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "gdb", args...)
	cmd.Env = append(os.Environ(), fixedIdentityEnv+"=1")
	return cmd
}

// mustRun runs a child to its end and returns how long it took.
func mustRun(t *testing.T, args ...string) time.Duration {
	t.Helper()
	began := time.Now()
	if out, err := child(t.Context(), args...).CombinedOutput(); err != nil {
		t.Fatalf("gdb %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return time.Since(began)
}

// runKilled runs a child and kills it after a while. It reports whether the kill came in time.
func runKilled(t *testing.T, after time.Duration, args ...string) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), after)
	defer cancel()
	out, err := child(ctx, args...).CombinedOutput()
	if err != nil && ctx.Err() == nil {
		t.Fatalf("gdb %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return err != nil
}

// killing is the plan of a test's kills.
type killing struct {
	r     *mathrand.Rand
	kills int // still to be made
}

func newKilling(t *testing.T) *killing {
	t.Helper()
	if testing.Short() {
		t.Skip("kills processes")
	}
	seed, kills := mathrand.Uint64(), killsDefault
	if s := os.Getenv(killsEnv); s != "" {
		var err error
		if kills, err = strconv.Atoi(s); err != nil {
			t.Fatalf("%s: %v", killsEnv, err)
		}
	}
	t.Logf("seed %d, %d kills", seed, kills)
	return &killing{r: mathrand.New(mathrand.NewPCG(seed, 0)), kills: kills}
}

// killAndFinish runs first, kills it at a random moment of the time that it takes, and now and
// then the resuming command as well, and lets that one finish.
func (k *killing) killAndFinish(t *testing.T, takes time.Duration, first, resume []string) {
	t.Helper()
	args := first
	for {
		after := time.Duration(k.r.Int64N(int64(takes)))
		if !runKilled(t, after, args...) {
			return
		}
		k.kills--
		t.Logf("killed after %v", after)
		if args = resume; k.kills <= 0 || k.r.IntN(2) == 0 {
			break
		}
	}
	mustRun(t, args...)
}

// storeContent returns what must not depend on kills: the bytes of each data file, and the
// catalog's description of the store, without times.
func storeContent(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	content := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name == "catalog" || name == "runs" {
				return filepath.SkipDir
			}
			return nil
		}
		content[name], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	meta, err := catalog.New(vfs.Default, filepath.Join(dir, "catalog")).Meta(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	meta.Created = time.Time{}
	if content["the catalog's description"], err = json.Marshal(meta); err != nil {
		t.Fatal(err)
	}
	return content
}

func compareContent(t *testing.T, got, want map[string][]byte) {
	t.Helper()
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s is left over", name)
		}
	}
	for name, b := range want {
		if g, ok := got[name]; !ok {
			t.Errorf("%s is missing", name)
		} else if !bytes.Equal(g, b) {
			t.Errorf("%s differs: %d bytes, want %d", name, len(g), len(b))
		}
	}
}

// arrayGraph writes an R-MAT graph as arrays and returns the arguments that ingest it.
func arrayGraph(t *testing.T, dir string) []string {
	t.Helper()
	_, err := gen.Make(t.Context(), gen.Options{Kind: "rmat", Nodes: 1 << 14, Edges: 300_000,
		Dim: 16, Classes: 5, TrainFrac: 0.2, Seed: 1, Out: dir})
	if err != nil {
		t.Fatal(err)
	}
	return []string{"ingest", dir, "--undirected", "--direction", "both", "--partitions", "4",
		"--partitioner", "random"}
}

// TestKilledIngest kills ingests at random moments: resumed, they write the very files of an
// ingest that was left alone.
func TestKilledIngest(t *testing.T) {
	k := newKilling(t)
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.Mkdir(text, 0o755); err != nil {
		t.Fatal(err)
	}
	kills := k.kills
	for i, args := range [][]string{arrayGraph(t, filepath.Join(dir, "arrays")),
		csvGraph(t, text, 20_000, 200_000)} {
		out := func(s string) string { return filepath.Join(dir, fmt.Sprintf("%d-%s.gdb", i, s)) }
		// Little memory: sorts go through runs on disk.
		args = append(args, "--memory", "100MiB", "--quiet", "--out")
		takes := mustRun(t, append(args, out("whole"))...)
		want := storeContent(t, out("whole"))
		k.kills = kills / 2
		for trial := 0; k.kills > 0; trial++ {
			if trial > 10*kills {
				t.Fatal("ingests end before they are killed")
			}
			store := out(strconv.Itoa(trial))
			first := append(slices.Clone(args), store)
			k.killAndFinish(t, takes, first, append(slices.Clone(first), "--resume"))
			compareContent(t, storeContent(t, store), want)
			if err := os.RemoveAll(store); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// trainedState returns what a run came to: its predictions, and all arrays of its last checkpoint
// (weights, the optimizer's state, the best weights).
func trainedState(t *testing.T, store, run string) map[string][]byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "p.csv")
	mustRun(t, "predict", store, "--run", run, "--probabilities", "--quiet", "--out", out)
	predictions, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(store, "runs", run)
	current, err := os.ReadFile(filepath.Join(dir, "CURRENT"))
	if err != nil {
		t.Fatal(err)
	}
	name, _, _ := strings.Cut(string(current), " ")
	state, err := os.ReadFile(filepath.Join(dir, name, "state"))
	if err != nil {
		t.Fatal(err)
	}
	h, err := codec.DecodeHeader(state, "CKPT", [16]byte{})
	if err != nil && !errors.Is(err, codec.ErrForeign) {
		t.Fatal(err)
	}
	// The fields begin with the length of the position, which holds times.
	position := binary.LittleEndian.Uint32(h.Fields)
	vectors, err := os.ReadFile(filepath.Join(dir, name, "embedding"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return map[string][]byte{"predictions": predictions, "vectors": vectors,
		"arrays": state[codec.HeaderBytes+int(position):]}
}

// killStore ingests a graph to train on.
func killStore(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	store := filepath.Join(dir, "g.gdb")
	mustRun(t, append(arrayGraph(t, filepath.Join(dir, "arrays")), "--quiet", "--out", store)...)
	return store
}

// killTrain returns the arguments of a training that takes long enough to be killed within an
// epoch.
func killTrain(store, run string) []string {
	return []string{"train", store, "--run", run, "--fanout", "5,5", "--hidden", "16",
		"--batch", "200", "--epochs", "4", "--checkpoint-every", "3", "--threads", "1", "--quiet"}
}

// TestKilledTraining kills trainings at random moments: resumed, they end with the weights and
// predictions of one that was left alone. Every other one trains on superbatches, and leaves none
// of their files behind. Half of them have vectors of nodes, and half precision.
func TestKilledTraining(t *testing.T) {
	k := newKilling(t)
	store := killStore(t)
	kills := k.kills
	for i, extra := range [][]string{nil, {"--node-embedding", "8", "--precision", "bf16"}} {
		k.kills = (kills + 1 - i) / 2
		killTrainings(t, k, store, fmt.Sprint(i, "-"), extra)
	}
	mustRun(t, "check", store, "--full", "--quiet")
}

// killTrainings kills and resumes trainings with such flags, whose names begin with prefix.
func killTrainings(t *testing.T, k *killing, store, prefix string, extra []string) {
	t.Helper()
	takes := mustRun(t, append(killTrain(store, prefix+"whole"), extra...)...)
	want := trainedState(t, store, prefix+"whole")
	kills := k.kills
	for trial := 0; k.kills > 0; trial++ {
		if trial > 10*kills {
			t.Fatal("trainings end before they are killed")
		}
		run := prefix + strconv.Itoa(trial)
		first := append(killTrain(store, run), extra...)
		if trial%2 == 1 {
			first = append(first, "--cache", "belady", "--feature-cache", "16KiB",
				"--superbatch", "7")
		}
		resume := []string{"train", store, "--resume", run, "--quiet"}
		// A run that was killed before it had a directory is not there to be resumed.
		for killedEarly(t, k, takes, store, run, first) {
		}
		k.killAndFinish(t, takes, resume, resume)
		compareContent(t, trainedState(t, store, run), want)
		left, err := os.ReadDir(filepath.Join(store, "prep"))
		if trial%2 == 1 && (err != nil || len(left) > 0) {
			t.Errorf("left in prep: %v, %v", left, err)
		}
	}
}

// killedEarly starts a training, kills it, and reports whether it was before the run existed.
func killedEarly(t *testing.T, k *killing, takes time.Duration, store, run string,
	args []string) bool {
	t.Helper()
	after := time.Duration(k.r.Int64N(int64(takes)))
	killed := runKilled(t, after, args...)
	if _, err := os.Stat(filepath.Join(store, "runs", run, "run.json")); err != nil {
		return true
	}
	if killed {
		k.kills--
		t.Logf("run %s killed after %v", run, after)
	}
	return false
}

// TestInterruptedTraining interrupts a training as Ctrl-C does: it ends with exit code 130 and
// prints the command that goes on from where it was.
func TestInterruptedTraining(t *testing.T) {
	if testing.Short() {
		t.Skip("trains in another process")
	}
	store := killStore(t)
	mustRun(t, killTrain(store, "whole")...)
	for trial := range 10 {
		run := "r" + strconv.Itoa(trial)
		command, ok := interruptedTraining(t, store, run)
		if !ok {
			continue
		}
		if _, err := os.Stat(filepath.Join(store, "runs", run, "CURRENT")); err != nil {
			t.Errorf("no checkpoint: %v", err)
		}
		mustRun(t, strings.Fields(command)...)
		compareContent(t, trainedState(t, store, run), trainedState(t, store, "whole"))
		return
	}
	t.Fatal("no training was interrupted in time")
}

// interruptedTraining trains until the first epoch is over, interrupts, and returns the command
// that goes on; false if the training was faster.
func interruptedTraining(t *testing.T, store, run string) (command string, ok bool) {
	t.Helper()
	args := slices.DeleteFunc(killTrain(store, run), func(s string) bool { return s == "--quiet" })
	cmd := child(t.Context(), args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 7)
	if _, err := io.ReadFull(stdout, first); err != nil || string(first) != "epoch 1" {
		t.Fatalf("%q, %v", first, err)
	}
	interrupting := cmd.Process.Signal(os.Interrupt)
	if _, err := io.Copy(io.Discard, stdout); err != nil {
		t.Fatal(err)
	}
	err = cmd.Wait()
	if err == nil || interrupting != nil {
		return "", false
	}
	if got := exitStatus(err); got != strconv.Itoa(exitInterrupted) {
		t.Fatalf("exit code %s, want %d: %s", got, exitInterrupted, stderr.String())
	}
	if _, command, ok = strings.Cut(stderr.String(), "go on with: gdb "); !ok {
		t.Fatalf("no command that resumes: %s", stderr.String())
	}
	return command, true
}

// TestInterruptedIngest interrupts an ingest as Ctrl-C does.
func TestInterruptedIngest(t *testing.T) {
	k := newKilling(t)
	dir := t.TempDir()
	args := append(arrayGraph(t, filepath.Join(dir, "arrays")), "--quiet", "--out")
	takes := mustRun(t, append(args, filepath.Join(dir, "whole.gdb"))...)
	for trial := range 20 {
		store := filepath.Join(dir, strconv.Itoa(trial)+".gdb")
		cmd := child(t.Context(), append(args, store)...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(k.r.Int64N(int64(takes))))
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			continue // it was over
		}
		switch err := cmd.Wait(); {
		case err == nil || exitStatus(err) == "-1": // over, or before the signal was caught
			continue
		case exitStatus(err) != strconv.Itoa(exitInterrupted):
			t.Fatalf("exit code %s, want %d: %s", exitStatus(err), exitInterrupted, stderr.String())
		}
		_, command, ok := strings.Cut(stderr.String(), "go on with: gdb ")
		if !ok {
			t.Fatalf("no command that resumes: %s", stderr.String())
		}
		command, _, _ = strings.Cut(command, ": ")
		mustRun(t, strings.Fields(command)...)
		compareContent(t, storeContent(t, store), storeContent(t, filepath.Join(dir, "whole.gdb")))
		return
	}
	t.Fatal("no ingest was interrupted in time")
}
