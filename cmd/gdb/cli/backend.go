package cli

import (
	"gdb/train"
	"gdb/train/setting"

	"github.com/spf13/pflag"
)

// AppliedFlags are the settings that a command changes of a run that was trained.
type AppliedFlags struct{ line *setting.Line }

// Bind adds the flags that a command has. Their default is what the run has.
func (a *AppliedFlags) Bind(f *pflag.FlagSet, of setting.Commands) {
	a.line = setting.NewLine()
	for _, r := range setting.Rows {
		if r.Applied&of == 0 {
			continue
		}
		help := r.AppliedHelp
		if help == "" {
			help = HelpOf(r.Name)
		}
		f.VarPF(a.line.Value(r), r.Name, "", help).DefValue = ""
		if r.AppliedLinks&of == 0 {
			OnlyFor(f, setting.OfNodes, r.Name)
		}
	}
}

// Precision returns the precision that was given; "" takes that of the run.
func (a *AppliedFlags) Precision() string { return a.line.Precision() }

// Limits returns what bounds an evaluation, in the precision and on the backend that the flags say.
func (a *AppliedFlags) Limits(app *App) (lim train.Limits, err error) {
	lim = app.Limits()
	lim.Precision = a.Precision()
	if lim.Where, err = a.line.Where(); err != nil {
		return lim, Usage(err)
	}
	return lim, nil
}
