package train

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"gdb/internal/files"
	"gdb/train/runs"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// hiddenDir is the directory of a run for hidden states that do not fit in memory
// while it evaluates.
const hiddenDir = "tmp"

const (
	// evalJob and predictJob begin the names of files that evaluations and predictions keep in the
	// run's directory: hidden states and scores, each process under a name of its own.
	evalJob, predictJob = "eval-", "predict-"
	// scratchLock ends the name of a file beside these that is locked as long as they are in use.
	scratchLock = ".lock"
	// scoresSuffix ends the name of the directory of scores.
	scoresSuffix = "-scores"
)

// scratch is a directory for hidden states and scores that do not fit in memory.
type scratch struct {
	in   *inputs
	dir  string // relative to the store
	lock string // file to lock before something is written; "" for none
}

// newScratch returns a directory of a run that no other process uses.
func newScratch(in *inputs, run runs.Dir, job string) *scratch {
	dir := "runs/" + run.Name() + "/" + job + newToken()
	return &scratch{in: in, dir: dir, lock: dir + scratchLock}
}

// claim takes the lock that marks the directory as in use until the inputs are closed. It is called
// before something is written.
func (s *scratch) claim() error {
	if s.lock == "" {
		return nil
	}
	fs, path := s.in.Store.FS(), s.in.Store.Path(s.lock)
	lock, err := files.Lock(fs, path)
	if err != nil {
		return fmt.Errorf("train: %w", err)
	}
	s.lock = ""
	s.in.CloseLater(scratchCloser{fs, path, lock})
	return nil
}

// newToken returns a random name.
func newToken() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // documented never to fail
	return hex.EncodeToString(b[:])
}

// scratchCloser gives a lock back.
type scratchCloser struct {
	fs   vfs.FS
	path string
	lock io.Closer
}

func (s scratchCloser) Close() error {
	err := s.fs.Remove(s.path)
	if err = errors.Join(err, s.lock.Close()); err != nil {
		return fmt.Errorf("train: give back %s: %w", s.path, err)
	}
	return nil
}

// removeDead removes what killed evaluations and predictions left: directories whose
// lock can be taken.
func removeDead(r runs.Dir) error {
	names, err := r.FS().List(r.Path())
	if err != nil {
		return fmt.Errorf("train: list %s: %w", r.Path(), err)
	}
	for _, name := range names {
		if !strings.HasPrefix(name, evalJob) && !strings.HasPrefix(name, predictJob) {
			continue
		}
		base := strings.TrimSuffix(strings.TrimSuffix(name, scratchLock), scoresSuffix)
		lock, err := files.Lock(r.FS(), r.Path(base+scratchLock))
		if err != nil {
			continue // in use, or on a disk that cannot be written
		}
		err = errors.Join(r.FS().RemoveAll(r.Path(base)),
			r.FS().RemoveAll(r.Path(base+scoresSuffix)),
			scratchCloser{r.FS(), r.Path(base + scratchLock), lock}.Close())
		if err != nil {
			return fmt.Errorf("train: remove hidden states of a killed process: %w", err)
		}
	}
	return nil
}
