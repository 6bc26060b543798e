package train

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"gdb/internal/atomicfile"
	"gdb/internal/codec"
	"gdb/internal/lockfile"
	"gdb/internal/smallfile"
	"gdb/kv"
	"gdb/layout"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// runFile is run.json.
type runFile struct {
	GDB     string    `json:"gdb"`
	Store   string    `json:"store"`
	Created time.Time `json:"created"`
	Config  Config    `json:"config"`
	// Features and Dims say what the weights fit: the feature file, and the width of the input
	// and of each layer.
	Features string `json:"features"`
	Dims     []int  `json:"dims"`
	Plan     string `json:"plan"`
	// Planned is the plan in full, and Actual what epochs cost, once the run is done.
	Planned *Plan   `json:"planned,omitempty"`
	Actual  *Totals `json:"actual,omitempty"`
	// Sum is the CRC32C of the file with eight zeros here, in hexadecimal. It comes last.
	Sum string `json:"crc32c"`
}

// encode returns the file with its checksum.
func (f runFile) encode() ([]byte, error) {
	f.Sum = codec.SealZeros
	b, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("train: encode run.json: %w", err)
	}
	b = append(b, '\n')
	codec.SealJSON(b)
	return b, nil
}

// decode checks and decodes a file.
func (f *runFile) decode(b []byte) error {
	if err := codec.CheckSealed(b); err != nil {
		return err
	}
	return json.Unmarshal(b, f)
}

// Files of a run.
const (
	runFileName = "run.json"
	metricsName = "metrics.jsonl"
	currentName = "CURRENT"
	stateName   = "state" // of a checkpoint
)

// hiddenDir is where a run keeps hidden states while it evaluates, if they do not fit in memory.
const hiddenDir = "tmp"

// runDir is the directory of a run, runs/NAME.
type runDir struct {
	fs   vfs.FS
	name string
	dir  string
	uuid kv.UUID
}

func openRunDir(s *layout.Store, name string) runDir {
	return runDir{fs: s.FS(), name: name, dir: s.Path("runs", name), uuid: s.Meta().UUID}
}

func (r runDir) path(elem ...string) string {
	return r.fs.PathJoin(append([]string{r.dir}, elem...)...)
}

// createNextRun makes the directory of a new run under the first of r0001, r0002, … that nobody
// has, and takes its lock.
func createNextRun(s *layout.Store) (r runDir, lock io.Closer, err error) {
	number, err := lastRunNumber(s)
	for err == nil {
		number++
		r = openRunDir(s, fmt.Sprintf("r%04d", number))
		if lock, err = r.create(); err == nil {
			return r, lock, nil
		}
		if errors.Is(err, errRunTaken) { // by another process, since the list was read
			err = nil
		}
	}
	return runDir{}, nil, err
}

// lastRunNumber is the largest N of the runs called rN.
func lastRunNumber(s *layout.Store) (last int, err error) {
	taken, err := s.FS().List(s.Path("runs"))
	if err != nil && !errors.Is(err, errNotExist) {
		return 0, fmt.Errorf("train: list %s: %w", s.Path("runs"), err)
	}
	for _, name := range taken {
		n := 0
		if _, err := fmt.Sscanf(name, "r%d", &n); err == nil {
			last = max(last, n)
		}
	}
	return last, nil
}

// exists says whether there is a run to go on with.
func (r runDir) exists() bool {
	if r.fs == nil {
		return false
	}
	_, err := r.fs.Stat(r.path(runFileName))
	return err == nil
}

// others names the runs that are there, for messages.
func (r runDir) others() string {
	names, err := r.fs.List(r.fs.PathDir(r.dir))
	if err != nil || len(names) == 0 {
		return "none"
	}
	slices.Sort(names)
	if len(names) > 20 {
		names = append(names[:20], "…")
	}
	return strings.Join(names, ", ")
}

// errRunTaken says that a run of this name exists, or is being made.
var errRunTaken = errors.New("the name is taken")

// isNew fails if the run exists already.
func (r runDir) isNew() error {
	_, err := r.fs.Stat(r.path(runFileName))
	switch {
	case err == nil:
		return fmt.Errorf("train: run %s exists: %w: choose another --run, or go on with "+
			"--resume %s", r.name, errRunTaken, r.name)
	case errors.Is(err, errNotExist):
		return nil
	}
	return r.readError(runFileName, err)
}

// create makes the directory of a new run and takes its lock. Of several processes that do so at
// once, one gets it, the others errRunTaken.
func (r runDir) create() (lock io.Closer, err error) {
	if err := r.fs.MkdirAll(r.dir, 0o755); err != nil {
		return nil, fmt.Errorf("train: make %s: %w", r.dir, err)
	}
	runs := r.fs.PathDir(r.dir)
	if err := errors.Join(r.syncDir(runs), r.syncDir(r.fs.PathDir(runs))); err != nil {
		return nil, err
	}
	if lock, err = r.lock(); err != nil {
		return nil, err
	}
	if err := r.isNew(); err != nil { // who had the lock before may have begun it, and be done
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

// syncDir makes the names in a directory durable.
func (r runDir) syncDir(dir string) error {
	if err := atomicfile.SyncDir(r.fs, dir); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	return nil
}

// lock keeps a second process from training the same run.
func (r runDir) lock() (io.Closer, error) {
	l, err := lockfile.Take(r.fs, r.path("LOCK"))
	if errors.Is(err, lockfile.ErrHeld) {
		return nil, fmt.Errorf("train: run %s is being trained by another process: %w", r.name,
			errRunTaken)
	}
	if err != nil {
		return nil, fmt.Errorf("train: run %s: %w", r.name, err)
	}
	return l, nil
}

// writeRun writes run.json.
func (r runDir) writeRun(f runFile) error {
	b, err := f.encode()
	if err != nil {
		return err
	}
	return r.replace(runFileName, b)
}

// readRun reads run.json and checks that the run belongs to the store.
func (r runDir) readRun() (runFile, error) {
	var f runFile
	b, err := r.read(runFileName, runFileBytesMax)
	if errors.Is(err, errNotExist) {
		return f, fmt.Errorf("train: the store has no run %q: it has %s", r.name, r.others())
	}
	if err != nil {
		return f, err
	}
	if err := f.decode(b); err != nil {
		return f, fmt.Errorf("train: run %s: %w", r.name, r.corrupt(runFileName, err.Error()))
	}
	if f.Store != r.uuid.String() {
		return f, fmt.Errorf("train: run %s was trained on store %s, this is %s", r.name, f.Store,
			r.uuid)
	}
	if len(f.Dims) < 2 || len(f.Dims) != len(f.Config.Fanout)+1 {
		return f, fmt.Errorf("train: run %s: %w", r.name,
			r.corrupt(runFileName, fmt.Sprintf("%d widths for %d layers", len(f.Dims),
				len(f.Config.Fanout))))
	}
	return f, nil
}

func (r runDir) corrupt(file, what string) error {
	return &layout.CorruptionError{Path: "runs/" + r.name + "/" + file, Block: -1,
		What: what + "; restore the run from a copy, or train anew"}
}

// replace writes a small file whole.
func (r runDir) replace(name string, b []byte) error {
	if err := atomicfile.Write(r.fs, r.path(name), b); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	return nil
}

// Files of a run that are read whole are no larger than this; what is larger is damage.
const (
	runFileBytesMax = 16 << 20 // settings and a plan: some KiB
	currentBytesMax = 256      // a name and a checksum
	metricsLineMax  = 1 << 20  // the record of an epoch: some KiB
)

// read reads a file of the run that has at most limit bytes.
func (r runDir) read(name string, limit int64) ([]byte, error) {
	b, err := smallfile.Read(r.fs, r.path(name), limit)
	return b, r.readError(name, err)
}

// readError is the error of reading a file of the run.
func (r runDir) readError(name string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, smallfile.ErrTooLarge):
		err = r.corrupt(name, err.Error())
	}
	return fmt.Errorf("train: run %s: %w", r.name, err)
}

// metricsLog appends records to metrics.jsonl.
type metricsLog struct {
	file vfs.File
	path string
	off  int64
}

// openMetrics starts the file with the records of the epochs up to and with the last: what a
// killed run wrote after its last checkpoint is done, and written, again.
func (r runDir) openMetrics(last int) (*metricsLog, error) {
	path := r.path(metricsName)
	f, err := r.fs.Create(atomicfile.Part(path), vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, fmt.Errorf("train: create the metrics of run %s: %w", r.name, err)
	}
	m := &metricsLog{file: f, path: atomicfile.Part(path)}
	err = r.keepMetrics(m, last)
	if err == nil {
		err = m.sync()
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

// keepMetrics copies the records of the epochs up to and with the last.
func (r runDir) keepMetrics(to *metricsLog, last int) error {
	err := smallfile.Lines(r.fs, r.path(metricsName), metricsLineMax, func(line []byte) error {
		var rec EpochRecord
		if json.Unmarshal(line, &rec) != nil || rec.Epoch > last {
			return nil
		}
		return to.write(append(line, '\n'))
	})
	if errors.Is(err, errNotExist) {
		return nil
	}
	return r.readError(metricsName, err)
}

func (m *metricsLog) add(rec EpochRecord) error {
	b, err := json.Marshal(rec)
	if err != nil {
		return fmt.Errorf("train: encode metrics: %w", err)
	}
	return m.write(append(b, '\n'))
}

func (m *metricsLog) write(b []byte) error {
	n, err := m.file.Write(b)
	m.off += int64(n)
	if err != nil {
		return fmt.Errorf("train: write %s at offset %d: %w", m.path, m.off, err)
	}
	return nil
}

func (m *metricsLog) sync() error {
	if err := m.file.Sync(); err != nil {
		return fmt.Errorf("train: sync %s: %w", m.path, err)
	}
	return nil
}

// Close syncs and closes the file.
func (m *metricsLog) Close() error {
	if err := errors.Join(m.file.Sync(), m.file.Close()); err != nil {
		return fmt.Errorf("train: close %s: %w", m.path, err)
	}
	return nil
}

// LoadConfig returns the settings of a run, to resume it: change what may change, then set Resume.
func LoadConfig(s *layout.Store, run string) (Config, error) {
	if err := validRunName(run); err != nil || run == "" {
		return Config{}, errors.Join(err, errors.New("train: name the run to load"))
	}
	f, err := openRunDir(s, run).readRun()
	if err != nil {
		return Config{}, err
	}
	f.Config.Run = strings.TrimSpace(run)
	return f.Config, nil
}
