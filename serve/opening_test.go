package serve

import (
	"testing"
	"time"

	"gdb/blockdev"
	"gdb/blockdev/devtest"
	"gdb/layout/layouttest"
	"gdb/serve/protocol"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestOthersWhileALoaderOpens: while a loader is planned, which may take seconds, clients come, are
// told what there is, and look up nodes.
func TestOthersWhileALoaderOpens(t *testing.T) {
	s := New(Options{Store: layouttest.Build(t, vfs.NewMem(), "s", layouttest.Random(1, 50, 200)),
		Device: devtest.Open(t, blockdev.Options{}), Memory: 256 << 20, Threads: 1})
	s.opening.Lock()
	defer s.opening.Unlock()
	done := make(chan error, 1)
	go func() {
		s.come(1)
		s.stats()
		s.planned()
		s.room(protocol.KindQuery)
		_, err := s.lookups(t.Context())
		s.come(-1)
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("others wait for the loader")
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
}
