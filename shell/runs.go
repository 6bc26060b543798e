package shell

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"gdb/internal/codec"
	"gdb/internal/smallfile"
	"gdb/layout"
	"gdb/sample"
)

// runSettings are what a run's batches follow from, and its caches.
type runSettings struct {
	Model  string `json:"model"`
	Fanout []int  `json:"fanout"`
	Batch  int    `json:"batch"`
	Epochs int    `json:"epochs"`
	Split  string `json:"split"` // K of train@K
	Seed   uint64 `json:"seed"`
}

// runFile is what the shell reads of a run.json.
type runFile struct {
	Store    string      `json:"store"`
	Config   runSettings `json:"config"`
	Features string      `json:"features"` // the name of the feature file
	Planned  struct {
		Cache    string `json:"cache"` // the policy of the feature cache
		Features int64  `json:"feature_cache_bytes"`
		Neighbor int64  `json:"neighbor_cache_bytes"`
		Lists    struct {
			Neighbors int64 `json:"neighbor_cache_bytes"`
		} `json:"lists"`
	} `json:"planned"`
}

// runFileBytesMax is the largest run.json.
const runFileBytesMax = 16 << 20

// readRun reads the settings of a run. Nothing but its run.json is opened.
func (e *engine) readRun(name string) (run runFile, err error) {
	names, err := e.runNames()
	if err != nil {
		return run, err
	}
	if !slices.Contains(names, name) {
		return run, fmt.Errorf("no run %s%s; RUNS lists them", named(name), near(name, names))
	}
	b, err := smallfile.Read(e.store.FS(), e.store.Path("runs", name, "run.json"), runFileBytesMax)
	if err != nil && !errors.Is(err, smallfile.ErrTooLarge) {
		return run, fmt.Errorf("run %s: %w", name, err)
	}
	if err == nil {
		err = codec.CheckSealed(b)
	}
	if err == nil {
		err = json.Unmarshal(b, &run)
	}
	if err == nil {
		err = run.Config.validate()
	}
	if err != nil {
		return run, fmt.Errorf("run %s: %w", name, &layout.CorruptionError{Block: -1,
			Path: "runs/" + name + "/run.json", What: err.Error() + "; restore it from a copy"})
	}
	if uuid := e.meta().UUID.String(); run.Store != uuid {
		return run, fmt.Errorf("run %s was trained on store %s, this is %s", name, run.Store, uuid)
	}
	return run, nil
}

func (c *runSettings) validate() error {
	if c.Batch < 1 {
		return fmt.Errorf("batches of %d", c.Batch)
	}
	return sample.Config{Fanout: c.Fanout}.Validate()
}

// text is the settings in one line.
func (c *runSettings) text() string {
	return fmt.Sprintf("%s, fanout %s, batch %d, seed %d", c.Model, sample.FormatFanout(c.Fanout),
		c.Batch, c.Seed)
}

// runNames are the runs whose settings are there. The catalog is not opened.
func (e *engine) runNames() (names []string, err error) {
	store := e.store.FS()
	all, err := store.List(e.store.Path("runs"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the runs: %w", err)
	}
	for _, name := range all {
		if strings.HasPrefix(name, ".") {
			continue
		}
		if _, err := store.Stat(e.store.Path("runs", name, "run.json")); err == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// RunName is a run with its settings in one line.
type RunName struct{ Name, Settings string }

// RunNames lists the runs of a store, as completion shows them. What cannot be read of a run is
// left out: using it says why.
func RunNames(st *layout.Store) (out []RunName) {
	e := &engine{store: st}
	names, err := e.runNames()
	if err != nil {
		return nil
	}
	for _, name := range names {
		one := RunName{Name: name}
		if run, err := e.readRun(name); err == nil {
			one.Settings = run.Config.text()
		}
		out = append(out, one)
	}
	return out
}

// runCandidates are the names of runs.
func (e *engine) runCandidates() (all []candidate) {
	for _, r := range RunNames(e.store) {
		all = append(all, candidate{word: r.Name, help: r.Settings})
	}
	return all
}
