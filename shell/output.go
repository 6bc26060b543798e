package shell

import (
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// output is where the result of one statement goes.
type output struct {
	io.Writer
	mode string
	// finish ends the output; ok says that the result is whole.
	finish func(ok bool) error
}

// output opens the place of the next result: the file of .once, or standard output.
func (s *session) output() (output, error) {
	name := s.once
	s.once = ""
	if name == "" {
		return output{s.Out, s.mode(), func(bool) error { return nil }}, nil
	}
	fs := s.Store.FS()
	part := name + ".part"
	f, err := fs.Create(part, vfs.WriteCategoryUnspecified)
	if err != nil {
		return output{}, fmt.Errorf("shell: .once: %w", err)
	}
	return output{f, s.fileMode(name), func(ok bool) error {
		err := f.Close()
		if ok && err == nil {
			err = fs.Rename(part, name)
		} else {
			err = errors.Join(err, fs.Remove(part))
		}
		if err != nil {
			return fmt.Errorf("shell: .once %s: %w", name, err)
		}
		return nil
	}}, nil
}

// fileMode is the mode of a file's extension, or without one that of the session. A file gets no
// box, which leaves rows out, unless that was asked for.
func (s *session) fileMode(name string) string {
	ext := strings.TrimPrefix(path.Ext(name), ".")
	if ext != "auto" && slices.Contains(Modes, ext) {
		return ext
	}
	if s.Mode == "auto" {
		return "csv"
	}
	return s.Mode
}
