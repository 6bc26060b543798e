package train

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"gdb/blockdev"
	"gdb/internal/codec"
	"gdb/internal/lockfile"
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

// nextRunName is the first of r0001, r0002, … that has no directory.
func nextRunName(s *layout.Store) (string, error) {
	taken, err := s.FS().List(s.Path("runs"))
	if err != nil && !errors.Is(err, errNotExist) {
		return "", fmt.Errorf("train: list %s: %w", s.Path("runs"), err)
	}
	last := 0
	for _, name := range taken {
		n := 0
		if _, err := fmt.Sscanf(name, "r%d", &n); err == nil {
			last = max(last, n)
		}
	}
	return fmt.Sprintf("r%04d", last+1), nil
}

// exists says whether there is a run to go on with.
func (r runDir) exists() bool {
	if r.fs == nil {
		return false
	}
	_, err := r.fs.Stat(r.path("run.json"))
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

// create makes the directory of a new run.
func (r runDir) create() error {
	if _, err := r.fs.Stat(r.path("run.json")); err == nil {
		return fmt.Errorf("train: run %s exists: choose another --run, or go on with --resume %s",
			r.name, r.name)
	} else if !errors.Is(err, errNotExist) {
		return fmt.Errorf("train: look for run %s: %w", r.name, err)
	}
	if err := r.fs.MkdirAll(r.dir, 0o755); err != nil {
		return fmt.Errorf("train: make %s: %w", r.dir, err)
	}
	runs := r.fs.PathDir(r.dir)
	return errors.Join(r.syncDir(runs), r.syncDir(r.fs.PathDir(runs)))
}

// lock keeps a second process from training the same run.
func (r runDir) lock() (io.Closer, error) {
	l, err := lockfile.Take(r.fs, r.path("LOCK"))
	if errors.Is(err, lockfile.ErrHeld) {
		return nil, fmt.Errorf("train: run %s is being trained by another process: %w", r.name, err)
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
	return r.replace("run.json", b)
}

// readRun reads run.json and checks that the run belongs to the store.
func (r runDir) readRun() (runFile, error) {
	var f runFile
	b, err := readAll(r.fs, r.path("run.json"))
	if errors.Is(err, errNotExist) {
		return f, fmt.Errorf("train: the store has no run %q: it has %s", r.name, r.others())
	}
	if err != nil {
		return f, fmt.Errorf("train: run %s: %w", r.name, err)
	}
	if err := f.decode(b); err != nil {
		return f, fmt.Errorf("train: run %s: %w", r.name, r.corrupt("run.json", err.Error()))
	}
	if f.Store != r.uuid.String() {
		return f, fmt.Errorf("train: run %s was trained on store %s, this is %s", r.name, f.Store,
			r.uuid)
	}
	if len(f.Dims) < 2 || len(f.Dims) != len(f.Config.Fanout)+1 {
		return f, fmt.Errorf("train: run %s: %w", r.name,
			r.corrupt("run.json", fmt.Sprintf("%d widths for %d layers", len(f.Dims),
				len(f.Config.Fanout))))
	}
	return f, nil
}

func (r runDir) corrupt(file, what string) error {
	return &layout.CorruptionError{Path: "runs/" + r.name + "/" + file, Block: -1,
		What: what + "; restore the run from a copy, or train anew"}
}

// replace writes a small file whole: a temporary one, synced, then renamed.
func (r runDir) replace(name string, b []byte) error {
	tmp := r.path(name + ".tmp")
	if err := writeSynced(r.fs, tmp, b); err != nil {
		return err
	}
	if err := r.fs.Rename(tmp, r.path(name)); err != nil {
		return fmt.Errorf("train: rename %s: %w", tmp, err)
	}
	return r.syncDir(r.dir)
}

func (r runDir) syncDir(dir string) error {
	d, err := r.fs.OpenDir(dir)
	if err != nil {
		return fmt.Errorf("train: open directory %s: %w", dir, err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("train: sync directory %s: %w", dir, err)
	}
	return nil
}

// writeSynced writes a file whole. Errors name it, and where writing ended.
func writeSynced(fs vfs.FS, path string, parts ...[]byte) error {
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return fmt.Errorf("train: create %s: %w", path, err)
	}
	off := int64(0)
	for _, b := range parts {
		n, err := f.Write(b)
		off += int64(n)
		if err != nil {
			return errors.Join(fmt.Errorf("train: write %s at offset %d: %w", path, off, err),
				f.Close())
		}
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("train: sync %s: %w", path, err)
	}
	return nil
}

// readAll reads a file whole: as many bytes as it is long, so that an answer that is cut off is an
// error and never a shorter file. Errors name it, and where reading ended.
func readAll(fs vfs.FS, path string) ([]byte, error) {
	f, err := fs.Open(path)
	if err != nil {
		return nil, fmt.Errorf("train: open %s: %w", path, err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("train: read %s: %w", path, err), f.Close())
	}
	b := make([]byte, info.Size())
	n, err := io.ReadFull(f, b)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = blockdev.ErrTruncated
	}
	if err != nil {
		err = &blockdev.ReadError{Path: path, Off: int64(n), Len: len(b) - n, Err: err}
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	return b, nil
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
	path := r.path("metrics.jsonl")
	old, err := readAll(r.fs, path)
	if err != nil && !errors.Is(err, errNotExist) {
		return nil, err
	}
	var keep bytes.Buffer
	for line := range bytes.Lines(old) {
		var rec EpochRecord
		if json.Unmarshal(line, &rec) == nil && rec.Epoch <= last {
			keep.Write(line)
		}
	}
	tmp := path + ".tmp"
	f, err := r.fs.Create(tmp, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, fmt.Errorf("train: create %s: %w", tmp, err)
	}
	m := &metricsLog{file: f, path: tmp}
	err = errors.Join(m.write(keep.Bytes()), m.sync())
	if err == nil {
		if err = r.fs.Rename(tmp, path); err != nil {
			err = fmt.Errorf("train: rename %s: %w", tmp, err)
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
