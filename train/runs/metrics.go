package runs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"gdb/internal/files"
	"gdb/layout"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Metrics appends records to metrics.jsonl.
type Metrics struct {
	file vfs.File
	path string
	off  int64
}

// OpenMetrics starts the file with the records of the epochs up to last. What a killed run wrote
// after its last checkpoint is dropped, since these epochs are done, and recorded, again.
func (r Dir) OpenMetrics(last int) (*Metrics, error) {
	path := r.Path(MetricsName)
	f, err := r.fs.Create(files.PartPath(path), vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, fmt.Errorf("train: create the metrics of run %s: %w", r.name, err)
	}
	m := &Metrics{file: f, path: files.PartPath(path)}
	err = r.keepMetrics(m, last)
	if err == nil {
		err = m.Sync()
	}
	if err == nil {
		if err = r.fs.Rename(m.path, path); err != nil {
			err = fmt.Errorf("train: rename %s: %w", m.path, err)
		}
	}
	if err == nil {
		err = r.syncDir(r.dir)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	m.path = path
	return m, nil
}

// keepMetrics copies the records of the epochs up to last. They were synced before the checkpoint,
// so a line among them that is no record is damage. Records after them may be torn.
func (r Dir) keepMetrics(to *Metrics, last int) error {
	n, seen := 0, 0
	err := files.ReadLines(r.fs, r.Path(MetricsName), metricsLineMax, func(line []byte) error {
		n++
		var rec Epoch
		err := json.Unmarshal(line, &rec)
		switch {
		case err != nil && seen < last:
			return r.Corrupt(MetricsName, fmt.Sprintf("line %d: %v", n, err))
		case err != nil || rec.Epoch > last:
			return nil
		}
		seen = rec.Epoch
		return to.write(append(line, '\n'))
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return r.readError(MetricsName, err)
}

// Add appends the record of an epoch.
func (m *Metrics) Add(rec Record) error {
	b, err := json.Marshal(rec)
	if err != nil {
		return fmt.Errorf("train: encode metrics: %w", err)
	}
	return m.write(append(b, '\n'))
}

func (m *Metrics) write(b []byte) error {
	n, err := m.file.Write(b)
	m.off += int64(n)
	if err != nil {
		return fmt.Errorf("train: write %s at offset %d: %w", m.path, m.off, err)
	}
	return nil
}

// Sync makes the records that were added durable.
func (m *Metrics) Sync() error {
	if err := m.file.Sync(); err != nil {
		return fmt.Errorf("train: sync %s: %w", m.path, err)
	}
	return nil
}

// Close syncs and closes the file.
func (m *Metrics) Close() error {
	if err := errors.Join(m.file.Sync(), m.file.Close()); err != nil {
		return fmt.Errorf("train: close %s: %w", m.path, err)
	}
	return nil
}

// Epochs calls fn with the record of each epoch that is done. A line that is no record is damage,
// except a last one that was being written when the run was killed. For runs that predict links, an
// Epoch has the fields that the records of both tasks have.
func (r Dir) Epochs(fn func(e *Epoch) error) error { return eachRecord(r, fn) }

// Records does the same with the records as the run of a file wrote them.
func (r Dir) Records(f *File, fn func(e Record) error) error {
	if f.Link != nil {
		return eachRecord(r, func(e *LinkEpoch) error { return fn(e) })
	}
	return eachRecord(r, func(e *Epoch) error { return fn(e) })
}

// LinkEpochs does the same for runs that predict links.
func (r Dir) LinkEpochs(fn func(e *LinkEpoch) error) error { return eachRecord(r, fn) }

func eachRecord[T any](r Dir, fn func(e *T) error) error {
	if _, err := r.File(); errors.Is(err, layout.ErrCorrupt) {
		return fmt.Errorf("train: run %s: %w", r.name, err)
	}
	n := 0
	var torn error // of the line before, which may be the last
	err := files.ReadLines(r.fs, r.Path(MetricsName), metricsLineMax, func(line []byte) error {
		n++
		if torn != nil {
			return torn
		}
		var e T
		err := json.Unmarshal(line, &e)
		if err == nil {
			return fn(&e)
		}
		err = fmt.Errorf("train: run %s: %w", r.name, r.Corrupt(MetricsName,
			fmt.Sprintf("line %d: %v", n, err)))
		if bytes.HasSuffix(line, []byte("}")) {
			return err
		}
		torn = err
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil // killed before its first epoch was done
	}
	if errors.Is(err, files.ErrTooLarge) {
		return r.readError(MetricsName, err)
	}
	return err
}
