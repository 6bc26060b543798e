package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gdb/bench/gen"
	"gdb/layout"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// liveActs draws what is done to a store that grows: edges in small and large commits, deletions,
// and compactions.
type liveActs struct {
	*killing
	dir  string
	took map[string]time.Duration // the first act of a kind, undisturbed
}

// act returns the next act: its kind, and the command without the store.
func (l *liveActs) act(t *testing.T, number int) (kind string, args []string) {
	t.Helper()
	path, edges, draw := filepath.Join(l.dir, fmt.Sprintf("act%d.csv", number)), 0, l.r.IntN(6)
	switch {
	case draw == 0 && number > 0:
		return "compact", []string{"compact", "", "--memory", "1GiB"}
	case draw == 1:
		kind, edges, args = "delete", 50, []string{"append", "", "--delete-edges", path}
	case draw <= 3 && number > 0:
		kind, edges, args = "large", 20000, []string{"append", "", "--edges", path}
	default:
		kind, edges, args = "small", 200, []string{"append", "", "--edges", path}
	}
	b := &strings.Builder{}
	fmt.Fprintln(b, "src,dst")
	for range edges {
		fmt.Fprintf(b, "%d,%d\n", l.r.IntN(1<<12), l.r.IntN(1<<12))
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return kind, args
}

// on returns the arguments of an act on a store.
func on(store string, args []string) []string {
	return append([]string{args[0], store, "--quiet"}, args[2:]...)
}

// snapshotNow returns the number of the store's last snapshot.
func snapshotNow(t *testing.T, dir string) uint64 {
	t.Helper()
	s, err := layout.OpenAt(t.Context(), vfs.Default, dir, "")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	return s.Meta().Snapshot
}

// TestKilledLive kills appends, deletions and compactions at random moments, with trainings beside
// them that are killed too. Each act is done or was never begun and nothing is left over. In the
// end the files equal the files of a store to which the same was done undisturbed.
func TestKilledLive(t *testing.T) {
	k := newKilling(t)
	l := &liveActs{killing: k, dir: t.TempDir(), took: map[string]time.Duration{}}
	arrays := filepath.Join(l.dir, "arrays")
	_, err := gen.Make(t.Context(), gen.Options{Kind: "rmat", Nodes: 1 << 12, Edges: 40_000,
		Dim: 8, Classes: 3, TrainFrac: 0.3, Seed: 1, Out: arrays})
	if err != nil {
		t.Fatal(err)
	}
	killed, whole := filepath.Join(l.dir, "k.gdb"), filepath.Join(l.dir, "w.gdb")
	for _, store := range []string{killed, whole} {
		mustRun(t, "ingest", arrays, "--quiet", "--out", store)
	}
	number := 0
	for ; k.kills > 0; number++ {
		kind, args := l.act(t, number)
		took := mustRun(t, on(whole, args)...)
		if l.took[kind] == 0 {
			l.took[kind] = took
		}
		want := snapshotNow(t, whole)
		l.disturb(t, killed, kind, number, want, args)
		if at := snapshotNow(t, killed); at != want {
			t.Fatalf("act %d, %s: snapshot %d, want %d", number, kind, at, want)
		}
		if number%8 == 0 {
			mustRun(t, "check", killed, "--full", "--quiet")
		}
	}
	runs, err := os.ReadDir(filepath.Join(killed, "runs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // no training came as far as a run
		t.Fatal(err)
	}
	for _, run := range runs {
		out, err := child(t.Context(), "runs", killed, "rm", run.Name(), "--quiet").CombinedOutput()
		// A training that was killed before the catalog had its run is none.
		if err != nil && !strings.Contains(string(out), "there is no run") {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	for _, store := range []string{killed, whole} {
		mustRun(t, "append", store, "--edges", filepath.Join(l.dir, "act0.csv"), "--quiet")
		mustRun(t, "compact", store, "--quiet")
		mustRun(t, "check", store, "--full", "--quiet")
	}
	got, want := storeContent(t, killed), storeContent(t, whole)
	for _, content := range []map[string][]byte{got, want} { // of the catalogs, which have times
		maps.DeleteFunc(content, func(name string, _ []byte) bool {
			return strings.Contains(name, "catalog") || strings.Contains(name, "tmp/readers/")
		})
	}
	compareContent(t, got, want)
	t.Logf("%d acts", number)
}

// disturbMost bounds how often an act is killed.
const disturbMost = 3

// disturb does an act, which makes snapshot want, beside a training, and kills both at random
// moments, until it is done.
//
//lint:parameters a store, and an act with all that is known of it
func (l *liveActs) disturb(t *testing.T, store, kind string, number int, want uint64,
	args []string) {
	t.Helper()
	for try := 0; try < disturbMost && l.kills > 0 && snapshotNow(t, store) != want; try++ {
		train := child(t.Context(), "train", store, "--run", fmt.Sprintf("r%d-%d", number, try),
			"--epochs", "1", "--hidden", "8", "--fanout", "3,3", "--quiet")
		told := &strings.Builder{}
		train.Stderr = told
		beside := l.r.IntN(3) == 0
		if beside {
			if err := train.Start(); err != nil {
				t.Fatal(err)
			}
		}
		after := time.Duration(l.r.Int64N(int64(l.took[kind])))
		if runKilled(t, after, on(store, args)...) {
			l.kills--
			t.Logf("act %d, %s: killed after %v of %v", number, kind, after, l.took[kind])
		}
		if !beside {
			continue
		}
		kill := l.r.IntN(2) == 0 && train.Process.Kill() == nil
		if kill {
			l.kills--
		}
		if err := train.Wait(); err != nil && !kill {
			t.Fatalf("training beside act %d, %s: %v\n%s", number, kind, err, told)
		}
	}
	if snapshotNow(t, store) != want {
		mustRun(t, on(store, args)...)
	}
}
