package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gdb/cmd/gdb/cli"
	"gdb/internal/testgraph"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// proposed returns what a shell is told to propose: words without their descriptions, and cobra's
// directive.
func proposed(t *testing.T, args ...string) string {
	t.Helper()
	code, out, _ := said(append([]string{"__complete"}, args...)...)
	if code != 0 {
		t.Errorf("%v: exit code %d", args, code)
	}
	var words []string
	for line := range strings.Lines(out) {
		word, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// completions are words of a command line, the last one to complete, and what is proposed. At the
// end is cobra's directive: 4 no files, 2 no space after it, 8 files of the extensions, 16
// directories, 0 files.
var completions = []struct{ line, want string }{
	{"train s.gdb --cache s", "static sieve :4"},
	{"train s.gdb --model ", "sage gcn gat gatv2 gin sgc mlp rgcn hsage hgt rgat :4"},
	{"train s.gdb --optimizer ", "adam adamw sgd adagrad :4"},
	{"train s.gdb --metric m", "micro-f1 macro-f1 mae :4"},
	{"plan s.gdb --loss ", "auto softmax bce mse mae huber :4"},
	{"plan s.gdb --io ", "auto uring pread buffered mmap :4"},
	{"train s.gdb --topology p", "plain packed paged :4"},
	{"train s.gdb --normalize ", "auto none row zscore :4"},
	{"train s.gdb --eval-mode ", "auto exact sampled :4"},
	{"train s.gdb --strategy ", "exact macro pbs :4"},
	{"train s.gdb --backend c", "cpu cuda :4"},
	{"train s.gdb --lr ", ":4"},
	{"train s.gdb --run ", ":4"},
	{"train s.gdb --split-column ", "0 1 :4"},
	{"train s.gdb --split ", "0 1 :4"},
	{"train s.gdb --resume ", "one two :4"},
	{"train s.gdb --from ", "s.gdb/runs/one/run.json s.gdb/runs/two/run.json :0"},
	{"train s.gdb --tensorboard ", ":16"},
	{"train ", ":16"}, {"info ", ":16"}, {"shell ", ":16"}, {"train s.gdb ", ":4"},
	{"eval s.gdb --run t", "two :4"},
	{"eval nowhere --run ", ":4"},
	{"eval s.gdb --split te", "test test@0 test@1 :4"},
	{"eval s.gdb --mode e", "exact :4"},
	{"predict s.gdb --split tr", "train train@0 train@1 :4"},
	{"predict s.gdb --out ", "csv parquet npy :8"},
	{"report s.gdb --split v", "val val@0 val@1 :4"},
	{"report s.gdb --out ", "html :8"},
	{"report s.gdb --run ", "one two :6"}, {"report s.gdb --run one,", "one,two :6"},
	{"runs s.gdb ", "list show compare plot export rm :4"},
	{"runs s.gdb compare ", "one two :4"},
	{"runs s.gdb compare one ", "two :4"},
	{"runs s.gdb plot --out ", "svg safetensors :8"},
	{"shell s.gdb --mode js", "json jsonl :4"},
	{"shell s.gdb -f ", "gdbq txt :8"},
	{"split s.gdb --split ", "random= :4"},
	{"ingest ", ":0"}, {"ingest --edges ", ":0"}, {"ingest --out ", ":16"},
	{"ingest --merge m", "mean min max :4"},
	{"ingest --format ", "npy csv parquet arrow snap ogb triples :4"},
	{"ingest --direction ", "in both :4"},
	{"ingest --feature-dtype b", "bf16 :4"},
	{"ingest --partitioner ", "none random range ldg fennel gap :4"},
	{"order s.gdb --partitioner g", "gap :4"},
	{"ingest --features d", "degree :0"},
	{"ingest --header ", "auto yes no :4"},
	{"ingest --normalize z", "zscore :4"},
	{"ingest --missing-nodes ", "error zero :4"},
	{"ingest --fill m", "mean mean,indicator :4"},
	{"--color a", "auto always :4"}, {"info s.gdb --log ", "text json :4"},
	{"bench gather --cache none,s", "none,static none,sieve :6"},
	{"bench train s.gdb --systems mmap,m", "mmap,mmap mmap,macro mmap,memory :6"},
	{"bench link s.gdb --orders memory,t", "memory,tlbeta :6"},
	{"bench train s.gdb --model ", "sage gcn gat gatv2 gin sgc mlp rgcn hsage hgt rgat none :4"},
	{"bench sample --topology ", "resident plain packed compact paged :6"},
	{"bench sample --strategy w", "weighted :6"},
	{"bench gather --store s.gdb --split-column ", "0 1 :4"},
	{"bench gen ", "rmat sbm typed kron :4"},
	{"help st", "strategies :4"}, {"help bench g", "gather gemm gen :4"},
}

// TestCompletion: shells complete values, of the store on the line too.
func TestCompletion(t *testing.T) {
	t.Chdir(t.TempDir())
	storeWithRuns(t)
	for _, c := range completions {
		if got := proposed(t, strings.Split(c.line, " ")...); got != c.want {
			t.Errorf("%s: %q, want %q", c.line, got, c.want)
		}
	}
}

// storeWithRuns makes s.gdb of Cora with two columns of splits, and runs one and two.
func storeWithRuns(t *testing.T) {
	t.Helper()
	if err := testgraph.WriteCora(vfs.Default, "cora"); err != nil {
		t.Fatal(err)
	}
	sets := map[string]byte{"train": 1, "val": 2, "test": 3}
	header := "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 2708), }"
	header += strings.Repeat(" ", 117-len(header)) + "\n"
	file := []byte("\x93NUMPY\x01\x00\x76\x00" + header)
	column := slices.Repeat([]byte{0}, 2*2708)
	for k := range column {
		column[k] = []byte{sets["train"], sets["val"], sets["test"]}[k%3]
	}
	if err := os.WriteFile("cora/splits.npy", append(file, column...), 0o644); err != nil {
		t.Fatal(err)
	}
	old, err := filepath.Glob("cora/*_idx.npy")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range old {
		if err := os.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
	for _, line := range []string{"ingest cora --out s.gdb --undirected",
		"train s.gdb --run one --epochs 1 --hidden 4 --fanout 2",
		"train s.gdb --run two --epochs 1 --hidden 4 --fanout 2 --split 1"} {
		if code, _, errs := said(strings.Fields(line)...); code != 0 {
			t.Fatalf("%s: exit code %d: %s", line, code, errs)
		}
	}
	// The old name of --eval-mode.
	if code, out, errs := said("eval", "s.gdb", "--run", "two", "--mode", "sampled"); code != 0 ||
		!strings.Contains(out, "over 903 nodes") {
		t.Errorf("eval --mode: exit code %d: %s%s", code, out, errs)
	}
}

// TestCompletedWordsAreTold: the help of a flag has all its words.
func TestCompletedWordsAreTold(t *testing.T) {
	n := 0
	eachCommand(func(c *cobra.Command, path []string) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			propose, ok := c.GetFlagCompletionFunc(f.Name)
			if !ok || f.Hidden || f.Name == "out" || f.Name == "help" {
				return
			}
			words, then := propose(c, nil, "")
			if then&cli.CompleteNothing == 0 {
				return
			}
			for _, word := range words {
				n++
				if !strings.Contains(f.Usage+" "+f.DefValue, word) {
					t.Errorf("%v --%s: the help does not say %s: %s", path, f.Name, word, f.Usage)
				}
			}
		})
	})
	if n < 100 {
		t.Errorf("%d words", n)
	}
}
