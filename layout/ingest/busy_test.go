package ingest

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// busyCase is a small ingest into dir on the disk.
func busyCase(t testing.TB, dir string, resume bool) *pipeline {
	g := random(7, "text", 60, 500)
	return fixedIdentity(small(t, vfs.Default, g, Options{Out: dir, Resume: resume}))
}

// TestRunningIngestIsLeftAlone tries a second ingest, plain and to resume, before each step of a
// running one: it is refused, changes nothing, and the running one ends as if alone.
func TestRunningIngestIsLeftAlone(t *testing.T) {
	want := undisturbedOnDisk(t)
	dir := filepath.Join(t.TempDir(), "store")
	first := busyCase(t, dir, false)
	var refused atomic.Int64
	var phases sync.Map
	first.Report = func(phase string, _, _ int64, _ string) {
		if _, again := phases.LoadOrStore(phase, true); again {
			return
		}
		for _, resume := range []bool{true, false} {
			_, err := busyCase(t, dir, resume).run(context.Background())
			if !errors.Is(err, ErrBusy) {
				t.Errorf("%s: a second ingest (resume %t): %v, want ErrBusy", phase, resume, err)
			}
			refused.Add(1)
		}
	}
	if _, err := first.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if refused.Load() == 0 {
		t.Fatal("no second ingest was tried")
	}
	sameFiles(t, storeFiles(t, vfs.Default, dir), want)
}

func undisturbedOnDisk(t *testing.T) map[string]string {
	dir := filepath.Join(t.TempDir(), "store")
	if _, err := busyCase(t, dir, false).run(context.Background()); err != nil {
		t.Fatal(err)
	}
	return storeFiles(t, vfs.Default, dir)
}

// TestIngestsAtOnce: one makes the store, the others are refused by a word that says why.
func TestIngestsAtOnce(t *testing.T) {
	want := undisturbedOnDisk(t)
	for range 5 {
		dir := filepath.Join(t.TempDir(), "store")
		const others = 4
		errs := make(chan error, others)
		for i := range others {
			p := busyCase(t, dir, i%2 == 1)
			go func() {
				_, err := p.run(context.Background())
				errs <- err
			}()
		}
		done := 0
		for range others {
			switch err := <-errs; {
			case err == nil:
				done++ // to resume a store that is complete is no error
			case !errors.Is(err, ErrBusy) && !errors.Is(err, ErrExists):
				t.Errorf("an ingest beside others: %v", err)
			}
		}
		if done == 0 {
			t.Error("no ingest ended well")
		}
		sameFiles(t, storeFiles(t, vfs.Default, dir), want)
	}
}

// TestUnfinishedIsAdvised: without anybody at work the advice is to resume.
func TestUnfinishedIsAdvised(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	ctx, cancel := context.WithCancel(context.Background())
	first := busyCase(t, dir, false)
	first.Report = func(string, int64, int64, string) { cancel() }
	if _, err := first.run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v, want it to be cancelled", err)
	}
	_, err := busyCase(t, dir, false).run(context.Background())
	if !errors.Is(err, ErrUnfinished) || errors.Is(err, ErrBusy) {
		t.Errorf("a plain ingest: %v, want ErrUnfinished", err)
	}
	if _, err := busyCase(t, dir, true).run(context.Background()); err != nil {
		t.Errorf("to resume: %v", err)
	}
}
