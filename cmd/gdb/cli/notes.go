package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// Notes writes each line as a JSON object, for --log json. Lines that are objects, as those of
// progress, stay as they are; empty ones are left out.
type Notes struct {
	w    io.Writer
	part []byte // of a line that is not whole yet
}

// NewNotes returns a writer of notes in front of w.
func NewNotes(w io.Writer) *Notes { return &Notes{w: w} }

// Write takes bytes of lines.
func (j *Notes) Write(b []byte) (int, error) {
	j.part = append(j.part, b...)
	for {
		line, rest, whole := bytes.Cut(j.part, []byte{'\n'})
		if !whole {
			return len(b), nil
		}
		j.part = append([]byte(nil), rest...)
		if len(line) == 0 {
			continue
		}
		if line[0] != '{' || !json.Valid(line) {
			// Encoding a map of strings cannot fail.
			line, _ = json.Marshal(map[string]string{"event": "note", "text": string(line)})
		}
		if _, err := fmt.Fprintf(j.w, "%s\n", line); err != nil {
			return 0, err
		}
	}
}
