package train

import (
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

// scratchDir returns a directory for hidden states that no other process uses.
func (t *trained) scratchDir(job string) string {
	dir := "runs/" + t.dir.Name() + "/" + job + newToken()
	t.in.claims = dir + scratchLock
	return dir
}

// claim takes the lock that marks hidden states as in use. It is called before the first of
// them is written.
func (in *inputs) claim() error {
	if in.claims == "" {
		return nil
	}
	fs, path := in.Store.FS(), in.Store.Path(in.claims)
	lock, err := files.Lock(fs, path)
	if err != nil {
		return fmt.Errorf("train: %w", err)
	}
	in.claims = ""
	in.CloseLater(scratchCloser{fs, path, lock})
	return nil
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
