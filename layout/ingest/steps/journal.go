package steps

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"gdb/internal/codec"
	"gdb/internal/files"
	"gdb/kv"
	"gdb/layout"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

const version = 3

// Journal is one small file in the temporary directory of an ingest, replaced as a whole (written
// beside, synced, renamed) after each finished step. It is a line with the checksum of the rest,
// and the rest is JSON.
type Journal struct {
	fs   vfs.FS
	path string
	State
}

// NewJournal returns an empty journal in dir that is not saved yet.
func NewJournal(fs vfs.FS, dir string) *Journal {
	return &Journal{fs: fs, path: fs.PathJoin(dir, layout.JournalName)}
}

// State is what the file holds.
type State struct {
	Version int
	// Options and Sources are fingerprints: what is resumed must be the same ingest.
	Options string
	Sources []SourceFile
	UUID    kv.UUID
	Created time.Time
	MadeOut bool // the store's directory was made by this ingest
	// Live lists the files of the temporary directory that later steps need, by path below it;
	// all others are leftovers.
	Live  []FileRef
	Steps []StepRecord
}

// SourceFile is the state of a source file at the start of the ingest.
type SourceFile struct {
	Path     string
	Size     int64
	Modified time.Time
}

// FileRef is a file of the temporary directory, by path below it.
type FileRef struct {
	Path string
	Size int64
}

// StepRecord is a finished step with what it gave.
type StepRecord struct {
	Name   string
	Result json.RawMessage
}

// bytesMax is the largest journal. One of 100 G edges sorted in 1 GiB lists some 3000 runs,
// each in 100 bytes.
const bytesMax = 256 << 20

// LoadJournal reads the journal in dir, or returns nil if there is none.
func LoadJournal(fs vfs.FS, dir string) (*Journal, error) {
	j := NewJournal(fs, dir)
	b, err := files.ReadSmall(fs, j.path, bytesMax)
	if err != nil && oserror.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("ingest: %w", err)
	}
	if err := j.decode(b); err != nil {
		return nil, fmt.Errorf("ingest: read %s: %w; delete the directory and start again",
			j.path, err)
	}
	return j, nil
}

func (j *Journal) decode(b []byte) error {
	head, body, _ := bytes.Cut(b, []byte("\n"))
	if want := headOf(body); string(head) != want {
		return fmt.Errorf("journal is damaged: it begins with %.60q, want %q", head, want)
	}
	if err := json.Unmarshal(body, &j.State); err != nil {
		return fmt.Errorf("journal is damaged: %w", err)
	}
	if j.Version != version {
		return fmt.Errorf("journal has version %d, this gdb reads %d", j.Version, version)
	}
	return nil
}

func headOf(body []byte) string {
	return fmt.Sprintf("gdb ingest journal crc32c=%08x", //lint:program the first line of a file
		codec.Checksum(body))
}

// Save replaces the file and makes it durable.
func (j *Journal) Save() error {
	j.Version = version
	body, err := json.Marshal(&j.State)
	if err != nil {
		return fmt.Errorf("ingest: encode the journal: %w", err)
	}
	err = files.WriteAtomic(j.fs, j.path, []byte(headOf(body)+"\n"), body)
	if err != nil {
		return fmt.Errorf("ingest: save the journal: %w", err)
	}
	return nil
}

// Result decodes the result of a finished step; false if it was not finished.
func (j *Journal) Result(name string, out any) (bool, error) {
	for _, s := range j.Steps {
		if s.Name == name {
			if err := json.Unmarshal(s.Result, out); err != nil {
				return false, fmt.Errorf("ingest: journal, step %s: %w", name, err)
			}
			return true, nil
		}
	}
	return false, nil
}

// Finish records a step: kept files are live from now on, dropped ones are not.
func (j *Journal) Finish(name string, result any, keep []FileRef, drop []string) error {
	raw, err := json.Marshal(result)
	if err != nil {
		return fmt.Errorf("ingest: encode the journal: %w", err)
	}
	j.Steps = append(j.Steps, StepRecord{name, raw})
	j.Live = slices.DeleteFunc(j.Live, func(f FileRef) bool {
		return slices.Contains(drop, f.Path)
	})
	j.Live = append(j.Live, keep...)
	return j.Save()
}

// Forget takes a finished step back.
func (j *Journal) Forget(name string, drop []string) error {
	j.Steps = slices.DeleteFunc(j.Steps, func(s StepRecord) bool { return s.Name == name })
	j.Live = slices.DeleteFunc(j.Live, func(f FileRef) bool {
		return slices.Contains(drop, f.Path)
	})
	return j.Save()
}
