package paged

import (
	"sync/atomic"
	"testing"
	"time"

	"gdb/blockdev"
	"gdb/blockdev/devtest"
	"gdb/layout/partition"
)

// TestCloseWaits: what is read ahead has ended before the edges that it reads are closed.
func TestCloseWaits(t *testing.T) {
	store, _ := mustStore(t)
	sets, _, err := partition.OpenBuckets(t.Context(), store, devtest.Open(t, blockdev.Options{}),
		partition.BucketOptions{Partition: partition.Spec{Nodes: nodeCount, Parts: partCount,
			Random: true, Seed: 7}})
	if err != nil {
		t.Fatal(err)
	}
	var ended atomic.Bool
	s := &Source{sets: sets, ahead: &reading{done: make(chan error, 1)}}
	go func(r *reading) {
		time.Sleep(20 * time.Millisecond)
		ended.Store(true)
		r.done <- nil
	}(s.ahead)
	if err := s.Close(); err != nil || !ended.Load() {
		t.Errorf("closed while edges are read: %v; error %v", !ended.Load(), err)
	}
}
