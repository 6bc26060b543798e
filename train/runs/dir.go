package runs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"gdb/internal/codec"
	"gdb/internal/files"
	"gdb/kv"
	"gdb/layout"
	"gdb/train/setting"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// File is the content of run.json.
type File struct {
	GDB   string `json:"gdb"`
	Store string `json:"store"`
	// Snapshot is the snapshot of the store that is trained on; it is kept as long as the run.
	Snapshot uint64       `json:"snapshot,omitempty"`
	Created  time.Time    `json:"created"`
	Config   setting.Node `json:"config"`
	// Link holds the settings of a run that predicts links; Config, Dims and Plan have
	// no meaning then.
	Link *setting.Link `json:"link,omitempty"`
	// Features and Dims say what the weights fit: the feature file, and the width of the input
	// and of each layer.
	Features string `json:"features"`
	Dims     []int  `json:"dims"`
	Plan     string `json:"plan"`
	// Planned is the whole plan, and Actual what epochs cost, once the run is done.
	Planned json.RawMessage `json:"planned,omitempty"`
	Actual  json.RawMessage `json:"actual,omitempty"`
	// Test is the evaluation of the best weights on the test split, a train.EvalResult, once the
	// run is done; its classes are left out if there are more than 100.
	Test json.RawMessage `json:"test,omitempty"`
	// Sum is the CRC32C of the file with eight zeros here, in hexadecimal. It comes last.
	Sum string `json:"crc32c"`
}

// Settings returns the settings of the run: Config, or Link of one that predicts links.
func (f *File) Settings() setting.Settings {
	if f.Link != nil {
		return f.Link
	}
	return &f.Config
}

// encode returns the file with its checksum.
func (f File) encode() ([]byte, error) {
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
func (f *File) decode(b []byte) error {
	if err := codec.CheckSealed(b); err != nil {
		return err
	}
	return json.Unmarshal(b, f)
}

// Caches are the caches that a plan gave a run. Sizes are bytes.
type Caches struct {
	Policy    string `json:"cache"` // of the cache of features
	Features  int64  `json:"feature_cache_bytes"`
	Neighbors int64  `json:"neighbor_cache_bytes"`
}

// Caches returns the caches in the plan of the run.
func (f *File) Caches() (Caches, error) {
	var c struct {
		Caches
		Lists struct {
			Neighbors int64 `json:"neighbor_cache_bytes"`
		} `json:"lists"`
	}
	if len(f.Planned) > 0 {
		if err := json.Unmarshal(f.Planned, &c); err != nil {
			return c.Caches, fmt.Errorf("the plan in %s: %w", FileName, err)
		}
	}
	c.Neighbors = max(c.Neighbors, c.Lists.Neighbors)
	return c.Caches, nil
}

// These are the names of the files of a run.
const (
	FileName    = "run.json"
	MetricsName = "metrics.jsonl"
	CurrentName = "CURRENT"
	StateName   = "state" // in the directory of a checkpoint
)

// Dir is the directory of a run, runs/NAME.
type Dir struct {
	fs       vfs.FS
	name     string
	dir      string
	uuid     kv.UUID
	snapshot uint64
	// The last snapshots up to that which added or deleted nodes of a store that it wrote anew, and
	// which deleted some.
	numbered, moved uint64
}

// Open returns the directory of a run. It does no I/O.
func Open(s *layout.Store, name string) Dir {
	return Dir{fs: s.FS(), name: name, dir: s.Path("runs", name), uuid: s.Meta().UUID,
		snapshot: s.Meta().Snapshot, numbered: s.Meta().Numbered, moved: s.Meta().Moved}
}

// Path returns the path of a file in the directory.
func (r Dir) Path(elem ...string) string {
	return r.fs.PathJoin(append([]string{r.dir}, elem...)...)
}

// Name returns the name of the run.
func (r Dir) Name() string { return r.name }

// FS returns the file system of the store.
func (r Dir) FS() vfs.FS { return r.fs }

// UUID returns the UUID of the store.
func (r Dir) UUID() kv.UUID { return r.uuid }

// CreateNext makes the directory of a new run under the first of r0001, r0002, … that nobody has,
// and takes its lock.
func CreateNext(s *layout.Store) (r Dir, lock io.Closer, err error) {
	number, err := lastRunNumber(s)
	for err == nil {
		number++
		r = Open(s, fmt.Sprintf("r%04d", number))
		if lock, err = r.Create(); err == nil {
			return r, lock, nil
		}
		if errors.Is(err, ErrTaken) { // by another process, since the list was read
			err = nil
		}
	}
	return Dir{}, nil, err
}

// lastRunNumber returns the largest N of the runs called rN; 0 if there are none.
func lastRunNumber(s *layout.Store) (last int, err error) {
	taken, err := s.FS().List(s.Path("runs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
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

// Exists reports whether there is a run to go on with.
func (r Dir) Exists() bool {
	if r.fs == nil {
		return false
	}
	_, err := r.fs.Stat(r.Path(FileName))
	return err == nil
}

// others names the runs of the store, for messages.
func (r Dir) others() string {
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

// ErrTaken says that a run of this name exists, or is being made.
var ErrTaken = errors.New("the name is taken")

// IsNew returns an error if the run exists already.
func (r Dir) IsNew() error {
	_, err := r.fs.Stat(r.Path(FileName))
	switch {
	case err == nil:
		return fmt.Errorf("train: run %s exists: %w: choose another --run, or go on with "+
			"--resume %s", r.name, ErrTaken, r.name)
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return r.readError(FileName, err)
}

// Create makes the directory of a new run and takes its lock. Of several processes that do so at
// the same time one succeeds, and the others get ErrTaken.
func (r Dir) Create() (lock io.Closer, err error) {
	if err := r.fs.MkdirAll(r.dir, 0o755); err != nil {
		return nil, fmt.Errorf("train: make %s: %w", r.dir, err)
	}
	runs := r.fs.PathDir(r.dir)
	if err := errors.Join(r.syncDir(runs), r.syncDir(r.fs.PathDir(runs))); err != nil {
		return nil, err
	}
	if lock, err = r.Lock(); err != nil {
		return nil, err
	}
	if err := r.IsNew(); err != nil { // who had the lock before may have begun it, and be done
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

// syncDir makes the names in a directory durable.
func (r Dir) syncDir(dir string) error {
	if err := files.SyncDir(r.fs, dir); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	return nil
}

// Lock keeps a second process from training the same run.
func (r Dir) Lock() (io.Closer, error) {
	l, err := files.Lock(r.fs, r.Path("LOCK"))
	if errors.Is(err, files.ErrLockHeld) {
		return nil, fmt.Errorf("train: run %s is being trained by another process: %w", r.name,
			ErrTaken)
	}
	if err != nil {
		return nil, fmt.Errorf("train: run %s: %w", r.name, err)
	}
	return l, nil
}

// WriteFile writes run.json, with the snapshot of the store that the run is of.
func (r Dir) WriteFile(f File) error {
	f.Snapshot = r.snapshot
	b, err := f.encode()
	if err != nil {
		return err
	}
	return r.replace(FileName, b)
}

// File reads run.json. The error does not name the run; damage is a layout.CorruptionError, which
// names the file.
func (r Dir) File() (f File, err error) {
	b, err := files.ReadSmall(r.fs, r.Path(FileName), runFileBytesMax)
	switch {
	case errors.Is(err, files.ErrTooLarge):
		return f, r.Corrupt(FileName, err.Error())
	case err != nil:
		return f, err
	}
	if err := f.decode(b); err != nil {
		return f, r.Corrupt(FileName, err.Error())
	}
	return f, nil
}

// SameNumbers returns an error if nodes were numbered anew after the snapshot that the run is of:
// vectors that it learned of nodes are by their numbers.
func (r Dir) SameNumbers() error {
	if r.numbered == 0 {
		return nil
	}
	f, err := r.File()
	if err != nil {
		return err
	}
	if f.Snapshot < r.numbered {
		return fmt.Errorf("train: run %s learned vectors of the nodes of snapshot %d, and "+
			"nodes came or went up to snapshot %d: read the store as of the run, without --at, or "+
			"train a run that begins with it (--from-run)",
			r.name, f.Snapshot, r.numbered)
	}
	return nil
}

// HasNodes returns an error if nodes of the snapshot that the run is of were deleted, and others
// moved up: then it is not known which nodes the vectors that it learned are of.
func (r Dir) HasNodes() error {
	if r.moved == 0 {
		return nil
	}
	f, err := r.File()
	if err != nil {
		return err
	}
	if f.Snapshot < r.moved {
		return fmt.Errorf("train: run %s learned vectors of the nodes of snapshot %d, and "+
			"snapshot %d deleted nodes, so others moved up: begin without its vectors, or with a "+
			"run on the store as it is", r.name, f.Snapshot, r.moved)
	}
	return nil
}

// BeginsOthers returns an error if no run on the snapshot that is read can begin with what this one
// has learned: it has saved nothing yet, or is of a later snapshot.
func (r Dir) BeginsOthers() error {
	f, err := r.ReadAny()
	if err != nil {
		return err
	}
	if f.Snapshot > r.snapshot {
		return fmt.Errorf("train: run %s is of snapshot %d, and a run on snapshot %d does not "+
			"begin with it: it may know nodes that come later", r.name, f.Snapshot, r.snapshot)
	}
	if !r.HasCheckpoint() {
		return fmt.Errorf("train: run %s: %w", r.name, ErrNoCheckpoint)
	}
	return nil
}

// ErrOtherTask says that a run was trained for another task than the one it is asked for.
var ErrOtherTask = errors.New("another task")

// ReadFile reads run.json of a run that predicts nodes, and checks that it belongs to the store.
func (r Dir) ReadFile() (File, error) {
	f, err := r.ReadAny()
	if err != nil {
		return f, err
	}
	if f.Link != nil {
		return f, fmt.Errorf("run %s predicts links, and this command is for runs that predict "+
			"nodes: %w", r.name, ErrOtherTask)
	}
	n := f.Config.Hops() // hops that are summed before may have no layer
	if len(f.Dims) < 2 || len(f.Dims) > n+1 || len(f.Dims) <= n && !f.Config.Precompute {
		return f, fmt.Errorf("train: run %s: %w", r.name,
			r.Corrupt(FileName, fmt.Sprintf("%d widths for %d layers", len(f.Dims), n)))
	}
	return f, nil
}

// PredictsLinks reports whether a run predicts links. It returns false for a run that
// cannot be read.
func PredictsLinks(s *layout.Store, run string) bool {
	if run == "" || setting.ValidName(run) != nil {
		return false
	}
	f, err := Open(s, run).ReadAny()
	return err == nil && f.Link != nil
}

// ReadLink reads run.json of a run that predicts links, and checks that it belongs to the store.
func (r Dir) ReadLink() (File, error) {
	f, err := r.ReadAny()
	if err != nil {
		return f, err
	}
	if f.Link == nil {
		return f, fmt.Errorf("train: run %s predicts nodes, not links: %w", r.name, ErrOtherTask)
	}
	if err := f.Link.Validate(); err != nil {
		return f, fmt.Errorf("train: run %s: %w", r.name, r.Corrupt(FileName, err.Error()))
	}
	return f, nil
}

// ReadAny reads run.json of a run of any task, and checks that it belongs to the store.
func (r Dir) ReadAny() (File, error) {
	f, err := r.File()
	if errors.Is(err, fs.ErrNotExist) {
		return f, fmt.Errorf("train: the store has no run %q: it has %s", r.name, r.others())
	}
	if err != nil {
		return f, fmt.Errorf("train: run %s: %w", r.name, err)
	}
	if f.Store != r.uuid.String() {
		return f, fmt.Errorf("train: run %s was trained on store %s, this is %s", r.name, f.Store,
			r.uuid)
	}
	return f, nil
}

// restoreAdvice ends the errors of damaged files of a run.
const restoreAdvice = "; restore the run from a copy, or train anew"

// Corrupt returns the error for a damaged file of the run.
func (r Dir) Corrupt(file, what string) error {
	return &layout.CorruptionError{Path: "runs/" + r.name + "/" + file, Block: -1,
		What: what + restoreAdvice}
}

// replace writes a small file whole.
func (r Dir) replace(name string, b []byte) error {
	if err := files.WriteAtomic(r.fs, r.Path(name), b); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	return nil
}

// These bound the files of a run that are read whole. A larger file is damaged.
const (
	runFileBytesMax = 16 << 20 // settings and a plan: some KiB
	currentBytesMax = 256      // a name and a checksum
	metricsLineMax  = 1 << 20  // the record of an epoch: some KiB
)

// read reads a file of the run that has at most limit bytes.
func (r Dir) read(name string, limit int64) ([]byte, error) {
	b, err := files.ReadSmall(r.fs, r.Path(name), limit)
	return b, r.readError(name, err)
}

// WriteSmall writes a small file that another package keeps in the run, and ReadSmall reads it.
func (r Dir) WriteSmall(name string, b []byte) error { return r.replace(name, b) }

// ReadSmall reads a file that WriteSmall wrote, of at most limit bytes.
func (r Dir) ReadSmall(name string, limit int64) ([]byte, error) { return r.read(name, limit) }

// readError returns the error for a file of the run that cannot be read.
func (r Dir) readError(name string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, files.ErrTooLarge):
		err = r.Corrupt(name, err.Error())
	}
	return fmt.Errorf("train: run %s: %w", r.name, err)
}

// Load returns the settings of a run, to resume it: the caller changes what may change, and then
// sets Resume. It replaces a cache policy that trainings no longer have.
func Load(s *layout.Store, run string) (setting.Node, error) {
	if err := setting.ValidName(run); err != nil || run == "" {
		return setting.Node{}, errors.Join(err, errors.New("train: name the run to load"))
	}
	f, err := Open(s, run).ReadFile()
	if err != nil {
		return setting.Node{}, err
	}
	f.Config.Run = strings.TrimSpace(run)
	f.Config.RenewCache()
	return f.Config, nil
}
