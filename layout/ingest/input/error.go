package input

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cockroachdb/errors/oserror"

	"gdb/internal/tables"
)

// Error is a wrong row, header or file of the user's.
type Error struct {
	Where string // "edges.csv line 17"
	What  string // "destination -3 is negative"
	Do    string // "node ids begin at 0"

	Flag bool // a flag is wrong, not the file
}

// Is makes an error of a flag that does not fit the file errUsage too.
func (e *Error) Is(target error) bool { return e.Flag && target == ErrUsage }

// Error is one line: where, what, what to do.
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

// Wrong is an Error; do may be empty.
func Wrong(where, do, format string, args ...any) error {
	return &Error{Where: where, What: fmt.Sprintf(format, args...), Do: do}
}

// Missing is the error for a file that is not there.
func Missing(path string, err error) error {
	if oserror.IsNotExist(err) {
		return &Error{Where: path, What: "there is no such file"}
	}
	return AsError(err)
}

// AsError turns what the readers of files say is wrong into an Error.
func AsError(err error) error {
	var n *tables.FormatError
	var t *LineError
	var b *Error
	switch {
	case err == nil || errors.As(err, &b):
		return err
	case errors.As(err, &n):
		return &Error{Where: n.File, What: n.What, Do: n.Do}
	case errors.As(err, &t):
		return &Error{Where: t.Where(), What: t.What, Do: t.Do}
	}
	return err
}
