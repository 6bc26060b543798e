package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gdb/cmd/gdb/cli"
	"gdb/internal/message"
	"gdb/internal/testgraph"

	"github.com/spf13/cobra"
)

// demoSteps are the commands of the demo, run by the same code as on the command line. DIR stands
// for its directory.
var demoSteps = []struct{ why, line string }{
	{"Ingest an array directory: 2,708 papers, their citations and words.",
		"ingest DIR/cora --out DIR/cora.gdb --undirected --normalize row"},
	{"What is in the store?", "info DIR/cora.gdb"},
	{"Is every byte as it was written?", "check DIR/cora.gdb --full"},
	{"What is around paper 42? (#42 would be the internal id.)",
		`shell DIR/cora.gdb -c "NEIGHBORS 42" --mode box`},
	{"Which mini-batch would two seeds give?",
		`shell DIR/cora.gdb -c "SAMPLE 42,7 FANOUT 2,2 SEED 7 SHOW dense" --mode box`},
	{"Train a 2-layer GraphSAGE on the 140 labeled papers of the public split.",
		"train DIR/cora.gdb --run demo " + coraFlags},
	{"Evaluate it, exactly, on the test split.", "eval DIR/cora.gdb --run demo --split test"},
	{"Predict a topic for every paper.",
		"predict DIR/cora.gdb --run demo --out DIR/predictions.csv"},
}

// coraFlags are the training flags of the demo; the README gives the accuracy they reach.
const coraFlags = "--fanout 10,10 --hidden 64 --batch 140 --epochs 60 --lr 0.01 " +
	"--weight-decay 0.0005 --dropout 0.5 --patience 20"

func (a *app) demoCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use: "demo", Short: "Ingest, train and query a real graph (Cora); under a minute",
		Args: cli.ExactArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.demo(cmd.Context(), dir) },
	}
	cmd.Flags().StringVar(&dir, "dir", "gdb-demo", "directory to make and leave the store in")
	return cmd
}

func (a *app) demo(ctx context.Context, dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return fmt.Errorf("demo: %s is here already: delete it, or choose another place with --dir",
			dir)
	}
	start := time.Now()
	cora := filepath.Join(dir, "cora")
	if err := testgraph.WriteCora(a.FS, cora); err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	w := &cli.Lines{W: a.Out}
	w.Printf("Cora, a citation graph, is in %s (source and licence: its README.md).\n", cora)
	for _, step := range demoSteps {
		line := strings.ReplaceAll(step.line, "DIR", dir)
		w.Printf("\n# %s\n%s\n", step.why, continued("$ "+message.Program+" "+line))
		if w.Err != nil {
			return w.Err
		}
		args := append(splitArgs(line), "--memory", fmt.Sprint(a.Memory), "--threads",
			fmt.Sprint(a.Threads), "--seed", fmt.Sprint(a.Seed), "--quiet="+fmt.Sprint(a.Quiet))
		if code := execute(ctx, args, a.Streams); code != exitDone {
			return cli.Reported{Code: code}
		}
	}
	w.Printf("\nDone in %s.\nThe store is %s, the predictions are %s.\nNow: %s shell %s\n",
		time.Since(start).Round(100*time.Millisecond), filepath.Join(dir, "cora.gdb"),
		filepath.Join(dir, "predictions.csv"), message.Program, filepath.Join(dir, "cora.gdb"))
	return w.Err
}

// continued returns a command line for a screen: where it is too long it goes on in the next line,
// as a shell reads it.
func continued(line string) string {
	var out []string
	now := ""
	for _, word := range strings.SplitAfter(line, " ") {
		if now != "" && len(now)+len(word) > message.ScreenColumns-1 {
			out, now = append(out, now+"\\"), "    "
		}
		now += word
	}
	return strings.Join(append(out, now), "\n")
}

// splitArgs splits a command line of ours at spaces outside double quotes.
func splitArgs(line string) []string {
	var args []string
	for i, part := range strings.Split(line, `"`) {
		if i%2 == 1 {
			args = append(args, part)
			continue
		}
		args = append(args, strings.Fields(part)...)
	}
	return args
}
