package linkcmd

import (
	"slices"

	"gdb/cmd/gdb/cli"
	"gdb/train/link/loss"
	"gdb/train/setting"

	"github.com/spf13/pflag"
)

// noteIdle tells of flags that were given and change nothing with the other settings.
func noteIdle(e *Env, given *pflag.FlagSet, c *setting.Link) {
	distances := []string{"transe", "rotate"}
	margins := []string{loss.Margin, loss.Adversarial}
	cli.NoteIdle(e.App, given, []cli.Idle{
		{Flags: []string{"fanout", "encoder-lr", "encoder-input"}, Without: "--encoder",
			If: !c.Encodes()},
		{Flags: []string{"negative-sampling", "filter-negatives", "degree-power"},
			Without: "a number of --negatives", If: c.Negatives == setting.NegativesAll},
		{Flags: []string{"degree-power"}, Without: "--negative-sampling degree",
			If: c.NegativeSampling != setting.NegativesDegree},
		{Flags: []string{"norm-order"}, Without: "--decoder " + cli.OneOf(distances),
			If: !slices.Contains(distances, c.Decoder)},
		{Flags: []string{"margin"}, Without: "--loss " + cli.OneOf(margins),
			If: !slices.Contains(margins, c.Loss)},
		{Flags: []string{"temperature"}, Without: "--loss " + loss.Adversarial,
			If: c.Loss != loss.Adversarial},
		{Flags: []string{"regularizer-weight"}, Without: "--regularizer",
			If: c.Regularizer == setting.RegularizerNone},
	})
}
