package linkcmd

import (
	"gdb/cmd/gdb/cli"
	"gdb/train/runs"
	"gdb/train/setting"
)

// Show is gdb runs show of a run that predicts links: its settings, and its epochs.
func Show(e *Env, dir runs.Dir, f *runs.File, status string, asJSON bool) error {
	var epochs []runs.LinkEpoch
	if err := dir.LinkEpochs(func(r *runs.LinkEpoch) error {
		epochs = append(epochs, *r)
		return nil
	}); err != nil {
		return err
	}
	if asJSON {
		return e.PrintJSON(map[string]any{"run": dir.Name(), "status": status, "config": f.Link,
			"epochs": epochs, "test": f.Test})
	}
	w := &cli.Lines{W: e.Out}
	w.Printf("run %s, %s, made by %s\n", dir.Name(), status, f.GDB)
	for _, s := range setting.SetTexts(f.Link) {
		w.Printf("%-18s %s\n", s[0], s[1])
	}
	for _, r := range epochs {
		w.Printf("%s\n", r)
	}
	return w.Err
}
