package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"gdb/internal/mem"
	"gdb/internal/message"
	"gdb/kv"
	"gdb/shell/lang"
)

// statusNotFound is the status of what is asked for and does not exist.
const statusNotFound = http.StatusNotFound

// failure is an error as clients get it: what is wrong, where in the request, and what to do.
type failure struct {
	Status int    `json:"-"`
	What   string `json:"what"`
	Where  string `json:"where,omitempty"`
	Do     string `json:"do"`
}

// Error returns it in one line.
func (f *failure) Error() string {
	if f.Where == "" {
		return f.What + ": " + f.Do
	}
	return fmt.Sprintf("%s: %s: %s", f.Where, f.What, f.Do)
}

// wrong returns the error of a request that cannot be answered as it is.
func wrong(where, what, do string) error {
	return &failure{Status: http.StatusBadRequest, What: what, Where: where, Do: do}
}

// Wrong returns the error of a page that cannot be made as it is asked for.
func Wrong(where, what, do string) error { return wrong(where, what, do) }

// NotFound returns the error of a page about what the store does not have.
func NotFound(where, what, do string) error {
	return &failure{Status: statusNotFound, What: what, Where: where, Do: do}
}

// failureOf returns an error as clients get it.
func failureOf(err error) *failure {
	var f *failure
	var syntax *lang.SyntaxError
	var full *mem.LimitError
	text := message.Plain(strings.Join(strings.Fields(err.Error()), " "))
	text = strings.TrimPrefix(text, "shell: ")
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &syntax):
		return &failure{Status: http.StatusBadRequest, What: syntax.Msg, Do: "correct it",
			Where: fmt.Sprintf("statement, character %d", syntax.Pos+1)}
	case errors.Is(err, context.DeadlineExceeded):
		return &failure{Status: http.StatusGatewayTimeout,
			What: "the answer took too long", Do: "ask for less, such as with a LIMIT"}
	case errors.Is(err, context.Canceled):
		return &failure{Status: http.StatusServiceUnavailable, What: "the request was given up",
			Do: "send it again"}
	case errors.As(err, &full):
		return &failure{Status: http.StatusServiceUnavailable,
			What: fmt.Sprintf("no memory is left for %s (%s)", full.What,
				mem.FormatSize(full.Want)),
			Do: "ask for less or again later; the server has more with a larger --memory"}
	case errors.Is(err, kv.ErrNotFound):
		return &failure{Status: statusNotFound, What: text, Do: "name what the store has"}
	}
	return &failure{Status: http.StatusUnprocessableEntity, What: text,
		Do: "ask for something else; GET /openapi.json tells what can be asked"}
}
