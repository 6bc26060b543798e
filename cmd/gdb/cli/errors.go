package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// UsageError is a wrong command line or statement.
type UsageError struct{ err error }

// Error returns what is wrong.
func (e UsageError) Error() string { return e.err.Error() }

// Unwrap is the error that it was made of.
func (e UsageError) Unwrap() error { return e.err }

// Usage is an error that a wrong command line is the cause of.
func Usage(err error) error { return UsageError{err} }

// Interrupted is the exit code of a command that was stopped, and said so.
const Interrupted = 130

// Reported is returned by commands that have printed why they failed.
type Reported struct{ Code int }

// Error names the exit code.
func (e Reported) Error() string { return fmt.Sprintf("exit %d", e.Code) }

// ExactArgs is cobra.ExactArgs with a usage error.
func ExactArgs(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			_, name, _ := strings.Cut(cmd.CommandPath(), " ")
			return Usage(fmt.Errorf("%s takes %s, got %d: %s", name, Plural(n, "argument"),
				len(args), cmd.UseLine()))
		}
		return nil
	}
}

// NoCommand refuses a word that is no command, and says which was probably meant.
func NoCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := fmt.Errorf("unknown command %q for %q", args[0], cmd.CommandPath())
	cmd.SuggestionsMinimumDistance = 2
	for _, meant := range cmd.SuggestionsFor(args[0]) {
		return Usage(fmt.Errorf("%w; did you mean %s?", err, meant))
	}
	return Usage(fmt.Errorf("%w; %s --help lists the commands", err, cmd.CommandPath()))
}

// FirstError is the first of two errors that is one.
func FirstError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}
