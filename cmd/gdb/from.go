package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"gdb/cmd/gdb/cli"
	"gdb/internal/codec"
	"gdb/layout"
	"gdb/train/runs"
	"gdb/train/setting"
)

// fromFile holds the parts of a run.json from which --from takes settings.
type fromFile struct {
	name   string
	sealed bool // the file is as gdb wrote it
	Config json.RawMessage
	Link   json.RawMessage
}

// readFrom reads the file of --from. A run.json inside a store that is not as gdb wrote it is
// damaged; a copy elsewhere may be edited, and a note says that it was.
func readFrom(a *app, name string) (f fromFile, err error) {
	f.name = name
	b, err := os.ReadFile(name)
	if err != nil {
		return f, cli.Usage(fmt.Errorf("train: --from: %w", err))
	}
	changed := codec.CheckSealed(b)
	f.sealed = changed == nil
	if changed != nil && inRun(name) {
		return f, &layout.CorruptionError{Path: name, Block: -1, What: changed.Error() +
			"; to train with edited settings, edit a copy outside of the store"}
	}
	if err := json.Unmarshal(b, &f); err != nil {
		return f, cli.Usage(fmt.Errorf("train: --from %s: %w", name, err))
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

// node puts the settings of the file in the place of those of base.
func (f fromFile) node(base *setting.Node) error {
	if f.Link != nil {
		return cli.Usage(fmt.Errorf("train: --from %s: the run predicts links: add --task link",
			f.name))
	}
	if f.Config == nil {
		return cli.Usage(fmt.Errorf("train: --from %s: it has no \"config\", the settings of a run",
			f.name))
	}
	return f.decode(f.Config, base)
}

// link puts the settings of the file in the place of those of base.
func (f fromFile) link(base *setting.Link) error {
	if f.Link == nil {
		return cli.Usage(fmt.Errorf("train: --from %s: the run predicts nodes: leave --task out",
			f.name))
	}
	*base = setting.Link{}
	return f.decode(f.Link, base)
}

// decode decodes settings. A file that was written by hand may have no setting of another name.
func (f fromFile) decode(b []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	if !f.sealed {
		d.DisallowUnknownFields()
	}
	if err := d.Decode(to); err != nil {
		return cli.Usage(fmt.Errorf("train: --from %s: %s", f.name,
			strings.TrimPrefix(err.Error(), "json: ")))
	}
	return nil
}
