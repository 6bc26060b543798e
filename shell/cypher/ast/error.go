package ast

import "fmt"

// Error is a mistake in a statement or its data. Type and Detail are the specification's names.
type Error struct {
	Type   string // SyntaxError, TypeError, ArgumentError and so on
	Detail string // UndefinedVariable, InvalidArgumentType and so on
	Pos    int    // byte offset in the statement; -1 if it has no place
	Msg    string
}

// Error returns the message.
func (e *Error) Error() string { return e.Msg }

// Errorf returns an error of a type and detail at a place.
func Errorf(pos int, kind, detail, format string, args ...any) *Error {
	return &Error{Type: kind, Detail: detail, Pos: pos, Msg: fmt.Sprintf(format, args...)}
}

// Syntax returns a SyntaxError.
func Syntax(pos int, detail, format string, args ...any) *Error {
	return Errorf(pos, "SyntaxError", detail, format, args...)
}
