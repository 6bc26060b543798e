package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// historyMost is how many inputs are kept; the file may grow to twice as many between sessions.
const historyMost = 2000

// History keeps what was typed: a JSON string a line, so that an input of several lines is one
// entry. Sessions that run at once only append.
type History struct{ file string }

// NewHistory returns the user's history; nil if there is nowhere to keep one.
func NewHistory() *History {
	if file := historyFile(); file != "" {
		return &History{file}
	}
	return nil
}

// historyFile returns where history is kept by the rules of the XDG base directories, "" if
// nowhere.
func historyFile() string {
	state := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		state = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(state, "gdb", "shell_history")
}

// Load returns the last inputs. Lines that are no entries are passed over.
func (h *History) Load() ([]string, error) {
	f, err := os.Open(h.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var texts []string
	in := bufio.NewScanner(f)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var text string
		if json.Unmarshal(in.Bytes(), &text) == nil {
			texts = append(texts, text)
		}
	}
	if err := errors.Join(in.Err(), f.Close()); err != nil {
		return texts, fmt.Errorf("%s: %w; delete it to begin anew", h.file, err)
	}
	if len(texts) > 2*historyMost {
		texts = texts[len(texts)-historyMost:]
		return texts, h.rewrite(texts)
	}
	return texts, nil
}

// rewrite replaces the file by the entries.
func (h *History) rewrite(texts []string) error {
	var b strings.Builder
	for _, text := range texts {
		line, err := json.Marshal(text)
		if err != nil {
			return err
		}
		b.Write(append(line, '\n'))
	}
	part := h.file + ".part"
	if err := os.WriteFile(part, []byte(b.String()), 0o600); err != nil {
		return err
	}
	return os.Rename(part, h.file)
}

// Add appends an entry; only its owner can read the file.
func (h *History) Add(text string) error {
	line, err := json.Marshal(text)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(h.file), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(h.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}
