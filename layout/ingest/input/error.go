package input

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cockroachdb/errors/oserror"

	"gdb/internal/tables"
)

// ErrUsage says that options contradict each other or the source.
var ErrUsage = errors.New("usage")

// usageError is an ErrUsage that says which options are wrong.
type usageError struct{ error }

// Is makes it an ErrUsage.
func (e usageError) Is(target error) bool { return target == ErrUsage }

// Unwrap returns what is wrong.
func (e usageError) Unwrap() error { return e.error }

// Usage returns an ErrUsage with this text.
func Usage(format string, args ...any) error {
	return AsUsage(fmt.Errorf("ingest: "+format, args...))
}

// AsUsage makes an error an ErrUsage with the same text.
func AsUsage(err error) error { return usageError{err} }

// Error is a wrong row, header or file of the user's.
type Error struct {
	Where string // "edges.csv line 17"
	What  string // "destination -3 is negative"
	Do    string // "node ids begin at 0"

	Flag bool // a flag is wrong, not the file
}

// Is makes an error of a flag that does not fit the file an ErrUsage too.
func (e *Error) Is(target error) bool { return e.Flag && target == ErrUsage }

// Error returns one line: where, what, what to do.
func (e *Error) Error() string {
	s := e.Where + ": " + e.What
	if e.Do != "" {
		sep := "; "
		if strings.HasSuffix(s, "?") {
			sep = " "
		}
		s += sep + e.Do
	}
	return s
}

// Wrong returns an Error; do may be empty.
func Wrong(where, do, format string, args ...any) error {
	return &Error{Where: where, What: fmt.Sprintf(format, args...), Do: do}
}

// At names a line of a file, or the file alone if the line is 0: not known.
func At(file string, line int64) string {
	if line == 0 {
		return file
	}
	return fmt.Sprintf("%s line %d", file, line)
}

// Missing returns the error of a file that is not there, or err.
func Missing(path string, err error) error {
	if oserror.IsNotExist(err) {
		return &Error{Where: path, What: "there is no such file"}
	}
	return AsError(err)
}

// AsError turns what the readers of files say is wrong into an Error.
func AsError(err error) error {
	var n *tables.FormatError
	var b *Error
	switch {
	case err == nil || errors.As(err, &b):
		return err
	case errors.As(err, &n):
		return &Error{Where: n.File, What: n.What, Do: n.Do}
	}
	return err
}
