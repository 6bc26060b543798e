package cli

import (
	"fmt"

	"github.com/spf13/pflag"
)

// Once is a flag's value that is an error where the flag is given a second time with another
// value: the first would be lost without a word.
type Once struct {
	pflag.Value
	first string
	given bool
}

// Set takes the value.
func (o *Once) Set(s string) error {
	if o.given && s != o.first {
		return fmt.Errorf("it was given as %q before, and one is read: give it once", o.first)
	}
	o.first, o.given = s, true
	return o.Value.Set(s)
}

// OnlyOnce makes it an error to give a flag with two values, but for those that take several.
func OnlyOnce(f *pflag.FlagSet) {
	f.VisitAll(func(flag *pflag.Flag) {
		if _, several := flag.Value.(pflag.SliceValue); !several {
			flag.Value = &Once{Value: flag.Value}
		}
	})
}
