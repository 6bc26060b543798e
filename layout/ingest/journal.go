package ingest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"gdb/internal/atomicfile"
	"gdb/internal/codec"
	"gdb/internal/smallfile"
	"gdb/kv"
	"gdb/layout"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const journalVersion = 1

// journal is the memory of an unfinished ingest: one small file in its temporary directory,
// replaced as a whole (written beside, synced, renamed) after each finished step. It is a line
// with the checksum of the rest, and the rest is JSON.
type journal struct {
	fs   vfs.FS
	dir  string
	path string
	journalState
}

// journalState is what the file holds.
type journalState struct {
	Version int
	// Options and Sources are fingerprints: what is resumed must be the same ingest.
	Options string
	Sources []sourceFile
	UUID    kv.UUID
	Created time.Time
	MadeOut bool // the store's directory was made by this ingest
	// Live lists the files of the temporary directory that later steps need, by path below it;
	// all others are leftovers.
	Live  []fileRef
	Steps []stepRecord
}

// sourceFile is the state of a source file at the start of the ingest.
type sourceFile struct {
	Path     string
	Size     int64
	Modified time.Time
}

type fileRef struct {
	Path string
	Size int64
}

// stepRecord is a finished step with what it gave.
type stepRecord struct {
	Name   string
	Result json.RawMessage
}

// journalBytesMax is the largest journal. One of 100 G edges sorted in 1 GiB lists some 3000 runs,
// each in 100 bytes.
const journalBytesMax = 256 << 20

// loadJournal reads the journal in dir, or returns nil if there is none.
func loadJournal(fs vfs.FS, dir string) (*journal, error) {
	j := &journal{fs: fs, dir: dir, path: fs.PathJoin(dir, layout.JournalName)}
	b, err := smallfile.Read(fs, j.path, journalBytesMax)
	if isNotExist(err) {
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

func (j *journal) decode(b []byte) error {
	head, body, _ := bytes.Cut(b, []byte("\n"))
	if want := journalHead(body); string(head) != want {
		return fmt.Errorf("journal is damaged: it begins with %.60q, want %q", head, want)
	}
	if err := json.Unmarshal(body, &j.journalState); err != nil {
		return fmt.Errorf("journal is damaged: %w", err)
	}
	if j.Version != journalVersion {
		return fmt.Errorf("journal has version %d, this gdb reads %d", j.Version, journalVersion)
	}
	return nil
}

func journalHead(body []byte) string {
	return fmt.Sprintf("gdb ingest journal crc32c=%08x", //lint:program the first line of a file
		codec.Checksum(body))
}

// save replaces the file and makes it durable.
func (j *journal) save() error {
	j.Version = journalVersion
	body, err := json.Marshal(&j.journalState)
	if err != nil {
		return fmt.Errorf("ingest: encode the journal: %w", err)
	}
	err = atomicfile.Write(j.fs, j.path, []byte(journalHead(body)+"\n"), body)
	if err != nil {
		return fmt.Errorf("ingest: save the journal: %w", err)
	}
	return nil
}

// result decodes the result of a finished step; false if it was not finished.
func (j *journal) result(name string, out any) (bool, error) {
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

// finish records a step: kept files are live from now on, dropped ones are not.
func (j *journal) finish(name string, result any, keep []fileRef, drop []string) error {
	raw, err := json.Marshal(result)
	if err != nil {
		return fmt.Errorf("ingest: encode the journal: %w", err)
	}
	j.Steps = append(j.Steps, stepRecord{name, raw})
	j.Live = slices.DeleteFunc(j.Live, func(f fileRef) bool {
		return slices.Contains(drop, f.Path)
	})
	j.Live = append(j.Live, keep...)
	return j.save()
}

// forget takes a finished step back.
func (j *journal) forget(name string, drop []string) error {
	j.Steps = slices.DeleteFunc(j.Steps, func(s stepRecord) bool { return s.Name == name })
	j.Live = slices.DeleteFunc(j.Live, func(f fileRef) bool {
		return slices.Contains(drop, f.Path)
	})
	return j.save()
}

// syncDir makes the names in a directory durable.
func syncDir(fs vfs.FS, dir string) error {
	if err := atomicfile.SyncDir(fs, dir); err != nil {
		return fmt.Errorf("ingest: %w", err)
	}
	return nil
}
