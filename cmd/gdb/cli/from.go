package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"gdb/internal/codec"
	"gdb/layout"
	"gdb/train/runs"
	"gdb/train/setting"
)

// From holds the parts of a run.json from which --from and --from-run take settings.
type From struct {
	name   string
	sealed bool            // the file is as gdb wrote it
	Config json.RawMessage `json:"config"`
	Links  json.RawMessage `json:"link"`
}

// FromFlags returns what --from, the name of a file, or --from-run, that of a run, takes settings
// from; nil if neither was given. open returns the store.
func (a *App) FromFlags(name string, l *setting.Line, open func() (*layout.Store, error)) (*From,
	error) {
	run := l.FromRun()
	switch {
	case run == "" && name == "":
		return nil, nil
	case run != "" && name != "":
		return nil, Usage(errors.New("train: --from-run takes the settings of its run: leave " +
			"--from out"))
	case run != "" && l.Resume() != "":
		return nil, Usage(errors.New("train: --from-run begins a new run, and --resume goes on " +
			"with one: give one of them"))
	case run != "":
		st, err := open()
		if err != nil {
			return nil, err
		}
		dir := runs.Open(st, run)
		if _, err := dir.ReadAny(); err != nil {
			return nil, fmt.Errorf("--from-run: %w", err)
		}
		name = dir.Path(runs.FileName)
	}
	f, err := readFrom(a, name)
	return &f, err
}

// readFrom reads the file of --from. A run.json inside a store that is not as gdb wrote it is
// damaged; a copy elsewhere may be edited, and a note says that it was.
func readFrom(a *App, name string) (f From, err error) {
	f.name = name
	b, err := os.ReadFile(name)
	if err != nil {
		return f, Usage(fmt.Errorf("train: --from: %w", err))
	}
	changed := codec.CheckSealed(b)
	f.sealed = changed == nil
	if changed != nil && inRun(name) {
		return f, &layout.CorruptionError{Path: name, Block: -1, What: changed.Error() +
			"; to train with edited settings, edit a copy outside of the store"}
	}
	if err := json.Unmarshal(b, &f); err != nil {
		return f, Usage(fmt.Errorf("train: --from %s: %w", name, err))
	}
	if changed != nil && bytes.Contains(b, []byte(`"crc32c"`)) {
		a.Note("--from " + name + " was edited since a run wrote it: " + changed.Error())
	}
	return f, nil
}

// inRun reports whether a file is the run.json of a run of a store.
func inRun(name string) bool {
	full, err := filepath.Abs(name)
	if err != nil || filepath.Base(full) != runs.FileName {
		return false
	}
	runsDir := filepath.Dir(filepath.Dir(full))
	_, err = os.Stat(filepath.Join(filepath.Dir(runsDir), "catalog"))
	return err == nil && filepath.Base(runsDir) == "runs"
}

// Node puts the settings of the file in the place of those of base.
func (f From) Node(base *setting.Node) error {
	if f.Links != nil {
		return Usage(fmt.Errorf("train: --from %s: the run predicts links: add --task link",
			f.name))
	}
	if f.Config == nil {
		return Usage(fmt.Errorf("train: --from %s: it has no \"config\", the settings of a run",
			f.name))
	}
	return f.decode(f.Config, base)
}

// Link puts the settings of the file in the place of those of base.
func (f From) Link(base *setting.Link) error {
	if f.Links == nil {
		return Usage(fmt.Errorf("train: --from %s: the run predicts nodes: leave --task out",
			f.name))
	}
	*base = setting.Link{}
	return f.decode(f.Links, base)
}

// decode decodes settings. A file that was written by hand may have no setting of another name.
func (f From) decode(b []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	if !f.sealed {
		d.DisallowUnknownFields()
	}
	if err := d.Decode(to); err != nil {
		return Usage(fmt.Errorf("train: --from %s: %s", f.name,
			strings.TrimPrefix(err.Error(), "json: ")))
	}
	return nil
}
