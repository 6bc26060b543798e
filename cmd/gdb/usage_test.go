package main

import (
	"bytes"
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gdb/cmd/gdb/cli"
	"gdb/internal/message"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// said runs a command line whose output goes into pipes.
func said(args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	code = execute(context.Background(), args, cli.Streams{In: strings.NewReader(""), Out: &o,
		Err: &e})
	return code, o.String(), e.String()
}

// eachCommand calls do for all commands and topics.
func eachCommand(do func(c *cobra.Command, path []string)) {
	a := &app{}
	root := a.rootCommand()
	a.complete(root)
	walk(root, func(c *cobra.Command) { do(c, strings.Fields(c.CommandPath())[1:]) })
}

func checkFits(t *testing.T, what, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > message.ScreenColumns {
			t.Errorf("%s: %d columns: %s", what, n, line)
		}
	}
}

// TestHelpFits: help of all commands and topics fits a screen, and begins with what it is about.
func TestHelpFits(t *testing.T) {
	n := 0
	eachCommand(func(c *cobra.Command, path []string) {
		args := append(slices.Clone(path), "--help")
		if c.IsAdditionalHelpTopicCommand() {
			args = append([]string{"help"}, path...)
		}
		code, out, errs := said(args...)
		if code != 0 || errs != "" || len(out) < 80 || out[0] == '\n' {
			t.Errorf("%v: exit code %d, %s%s", args, code, errs, out)
		}
		checkFits(t, strings.Join(args, " "), out)
		n++
	})
	if n < 30 {
		t.Errorf("%d commands", n)
	}
}

// longUsageErrors are wrong command lines with much to say.
var longUsageErrors = []string{
	"train s --model transformer", "train s --cache most-recently-used-of-all-of-them",
	"train s --fanout 10,ten", "train s --metric precision-at-ten --loss none",
	"ingest e.csv --out s --split train", "ingest e.csv --out s --block 5KiB",
	"ingest --edges a.csv --edges REL=b.csv --out s", "ingest - --dry-run --out s",
	"bench gather --cache none,belady --store s", "bench gen web --out s",
	"bench sample --block-cache 1MiB --neighbor-cache 2MiB", "shell s --mode parquet",
	"shell s -c x -f y", "runs", "eval a b c d e f g h", "--color sometimes version",
	"predict s --out predictions.of.all.nodes.with.a.long.name.and.no.known.extension.txt",
	"ingest --edges a --out s --this-is-no-flag-but-a-sentence-of-many-words-that-has-no-end",
}

// TestUsageErrorsFit: what is wrong with a command line fits a screen too, or as --log json is an
// object a line.
func TestUsageErrorsFit(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, line := range longUsageErrors {
		code, _, errs := said(strings.Fields(line)...)
		if code != exitUsage || !strings.HasPrefix(errs, "gdb: ") {
			t.Errorf("%s: exit code %d: %s", line, code, errs)
		}
		checkFits(t, line, errs)
		_, _, object := said(append(strings.Fields(line), "--log", "json")...)
		if !strings.HasPrefix(object, `{"event":"note","text":"gdb: `) ||
			strings.Count(object, "\n") != 1 {
			t.Errorf("%s --log json: %s", line, object)
		}
	}
	eachCommand(func(c *cobra.Command, path []string) {
		if c.Runnable() {
			_, _, errs := said(append(path, "--no-such-flag")...)
			checkFits(t, strings.Join(path, " "), errs)
		}
	})
}

// otherMeanings are flags that say different things to different commands, each with the reason.
var otherMeanings = map[string]string{
	"batches":       "of each thread, or of each round: what bench measures",
	"block":         "of topology, or of reads: bench io takes several",
	"cache":         "bench gather takes several policies",
	"device-memory": "of a device that a plan is for, or taken of one that is there",
	"dim":           "of a graph that is made, which may be made of another",
	"edges":         "a file for ingest, a count for bench, which makes graphs",
	"epochs":        "trained, or replayed",
	"fanout":        "bench has other defaults, and says whose it is",
	"feature-cache": "bench gather takes a share of the features too",
	"io":            "info: whether to print it; else how to read; bench io takes several",
	"json":          "one object, or of training one a line",
	"features":      "ingest: a file of them, or how they are made; train: which are read",
	"metric":        "of a training, or of an evaluation, which has the run's for default",
	"mode":          "shell: the form of results; for eval an old name of --eval-mode",
	"model":         "bench train can leave the model out",
	"neighbor-cache": "training can choose the size; bench sample takes it as a part of " +
		"--block-cache",
	"nodes":       "a file for ingest, a count for bench, which makes graphs",
	"normalize":   "fixed: as it is stored for ingest, as it is read for train",
	"out":         "what is written: a store, a file, a directory",
	"partitions":  "of ids, which ingest numbers by them, or of vectors on disk",
	"partitioner": "an ingest deals by none if it is not told to, order by gap",
	"parts":       "how many stores are made, or, for bench, numbers of partitions",
	"resume":      "fixed: ingest knows by --out what goes on, train needs the run's name",
	"rounds":      "bench gather has another number for stores",
	"run":         "train names a new run, others one that is there",
	"sample":      "bench sample takes several",
	"scale":       "of a graph in memory, or of one that is written",
	"split": "fixed: makes splits (ingest, split), or names nodes (eval, predict, report); for " +
		"train an old name of --split-column",
	"split-column": "ingest: the default of splits.npy, as a number; else which of them",
	"store":        "what for differs: a measurement says what it does with it",
	"top":          "of predictions, or of what one of them depends on",
	"strategy":     "of training; for bench sample an old name of --sample",
	"topology":     "bench sample takes several",
}

// TestFlagsMeanOneThing: a flag that several commands have is told in the same words by all, or
// there is a reason.
func TestFlagsMeanOneThing(t *testing.T) {
	texts := map[string]map[string][]string{}
	eachCommand(func(c *cobra.Command, path []string) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name == "help" || c.Name() == "completion" || path == nil ||
				len(path) > 0 && path[0] == "completion" {
				return
			}
			if texts[f.Name] == nil {
				texts[f.Name] = map[string][]string{}
			}
			texts[f.Name][f.Usage] = append(texts[f.Name][f.Usage], strings.Join(path, " "))
		})
	})
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		switch reason := otherMeanings[name]; {
		case len(texts[name]) > 1 && reason == "":
			t.Errorf("--%s has several meanings: %v; use one text, other names, or give a reason",
				name, texts[name])
		case len(texts[name]) == 1 && reason != "":
			t.Errorf("--%s has one meaning now: take it out of otherMeanings", name)
		}
	}
	for name := range otherMeanings {
		if texts[name] == nil {
			t.Errorf("no command has --%s: take it out of otherMeanings", name)
		}
	}
}

// TestRandomBesideFiles: splits that are drawn do not replace those of files without a word.
func TestRandomBesideFiles(t *testing.T) {
	code, _, errs := said("ingest", "e.csv", "--out", "s", "--split", "train=f", "--split",
		"random=60/20/20")
	if code != exitUsage || !strings.Contains(errs, "would replace --split train=f") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"e.csv": "src,dst\na,b\nb,c\nc,a\n",
		"n.csv":    "id,part\na,train\nb,val\nc,test\n",
		"kind.csv": "id,split,x\na,train,1\nb,val,2\nc,test,3\n", "d/edges.csv": "0,1\n1,2\n",
		"d/train.txt": "0\n"} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const drawn = " --out s --split random=34/33/33"
	for line, want := range map[string]string{
		"--edges e.csv --nodes kind.csv": "would replace the splits of the source, test, train, " +
			"val: leave it out; --split-col none leaves the column split out",
		"--edges e.csv --nodes n.csv --split-col part": "--split-col none leaves the column part " +
			"out",
		"d": "would replace the splits of the source, train: leave it out; gdb split draws others",
	} {
		code, _, errs := said(strings.Fields("ingest " + line + drawn)...)
		errs = strings.Join(strings.Fields(errs), " ")
		if _, err := os.Stat("s"); code != exitUsage || !strings.Contains(errs, want) ||
			err == nil {
			t.Errorf("%s: exit code %d, want %q, and no store: %s", line, code, want, errs)
		}
	}
	code, out, errs := said(strings.Fields("ingest --edges e.csv --nodes kind.csv " +
		"--split-col none" + drawn)...)
	if code != 0 || !strings.Contains(out, "train 1, val 1, test 1 nodes") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
}

// TestOtherNames: flags by the names that other programs give them are met with gdb's.
func TestOtherNames(t *testing.T) {
	for line, want := range map[string]string{"train s --layers 3": "--fanout",
		"train s --learning-rate 0.1": "here it is --lr", "train s --gpu 0": "--backend cuda",
		"train s --batch-size 9": "here it is --batch", "ingest d --sep ,": "here it is --delim",
		"ingest d --output s": "here it is --out", "info s --layers 3": "--help lists the flags"} {
		code, _, errs := said(strings.Fields(line)...)
		if code != exitUsage || !strings.Contains(strings.Join(strings.Fields(errs), " "), want) {
			t.Errorf("%s: exit code %d: %s", line, code, errs)
		}
	}
}
