package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"

	"gdb/cmd/gdb/cli"
)

// wrongFiles are what the commands of wrongInputs read.
var wrongFiles = map[string]string{
	"e.csv":       "src,dst\na,b\nb,c\nc,d\n",
	"n.csv":       "id,label,x,city\na,u,1,Rome\nb,v,2,Bonn\nc,u,3,Rome\nd,v,4,Bonn\n",
	"w.csv":       "src,dst,weight\na,b,1\na,b,2\n",
	"neg.csv":     "src,dst\n0,1\n1,-2\n",
	"float.csv":   "src,dst,weight\n0,1,x\n",
	"ragged.csv":  "src,dst\n0,1\n1,2,3\n",
	"one.csv":     "src\n1\n2\n",
	"empty.csv":   "",
	"head.csv":    "src,dst\n",
	"blank.csv":   "\n\n\n",
	"open.csv":    "anna,bob\ncarl,dora\n",
	"quote.csv":   "src,dst\na,\"b\n",
	"zero.csv":    "a,b\x00\nc,d\n",
	"cr.csv":      "a,b\rc,d\re,f\r",
	"utf16.csv":   "\xff\xfea\x00,\x00b\x00\n\x00",
	"zip.csv":     "PK\x03\x04aaaa",
	"xz.csv":      "\xfd7zXZ\x00aaaaaa",
	"tar.csv":     strings.Repeat("a", 257) + "ustar" + strings.Repeat("\x00", 300),
	"arrow.csv":   "ARROW1\x00\x00",
	"bad.arrow":   "ARROW1\x00\x00ARROW1",
	"v1.feather":  "FEA1 FEA1",
	"d.pt":        "PK\x03\x04" + strings.Repeat("\x00", 26) + "archive/data.pkl",
	"old.pth":     "\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.",
	"g.dgl":       "\x27\xa1\xb4\xf6\xf0\x60\x2e\xdd\x00",
	"g.pkl":       "\x80\x04\x95",
	"g.mat":       "MATLAB 5.0 MAT-file",
	"g.h5":        "\x89HDF\r\n\x1a\n",
	"pyg/data.pt": "PK\x03\x04" + strings.Repeat("\x00", 26) + "archive/data.pkl",
	"bad.parquet": "PAR1 and no table PAR1",
	"bad.npy":     "\x93NUMPY no array",
	"cut.csv.gz":  "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03KI",
	"g.graph":     "3 2\n2\n1 3\n2\n",
	"m.csv":       "%%MatrixMarket matrix\n3 3 1\n1 2 1\n",
	"time.csv":    "src,dst,time\na,b,soon\n",
	"nan.csv":     "id,x\na,1\nb,nan\nc,1\nd,1\n",
	"gap.csv":     "id,x\na,1\nb,\nc,1\nd,1\n",
	"text.csv":    "id,x\na,one\nb,two\nc,one\nd,two\n",
	"mixed.csv":   "id,x\na,1\nb,2\nc,3\nd,x\n",
	"few.csv":     "id,x\na,1\nb,2\n",
	"twice.csv":   "id,x\na,1\na,2\nb,1\nc,1\nd,1\n",
	"label2.csv":  "id,label\na,u\na,v\n",
	"ghost.csv":   "id,label\na,u\nzz,v\n",
	"train.txt":   "a\nzz\n",
	"both.txt":    "a\nb\n",
	"notes.md":    "# notes\n",
}

// wrongInputs are commands that must fail: each with its exit code, and what its only line says.
var wrongInputs = []struct {
	args string
	code int
	says string
}{
	{"ingest", 2, "no source"},
	{"ingest e.csv", 2, "no --out STORE: say where the store goes, as in --out e.gdb"},
	{"ingest nope.csv --out s", 1, "nope.csv: there is no such file"},
	{"ingest nope --out s", 1, "nope: there is no such file"},
	{"ingest *.tsv --out s", 1, "*.tsv: no file matches"},
	{"ingest empty --out s", 1, "empty: no edges were found"},
	{"ingest empty.csv --out s", 1, "empty.csv: the file is empty"},
	{"ingest head.csv --out s", 1, "head.csv: there are no edges"},
	{"ingest blank.csv --out s", 1, "blank.csv: there are no rows in it"},
	{"ingest one.csv --out s", 1, "one.csv: its rows have one field, but an edge is two nodes"},
	{"ingest neg.csv --out s", 1, "neg.csv line 3: id \"-2\" is negative; node ids begin at 0"},
	{"ingest ragged.csv --out s", 1, "ragged.csv line 3: 3 fields instead of 2"},
	{"ingest open.csv --out s", 2, "say --header yes or --header no"},
	{"ingest quote.csv --out s", 1, "quote.csv line 2"},
	{"ingest zero.csv --out s", 1, "zero.csv line 1: there is a zero byte in it"},
	{"ingest cr.csv --out s", 1, "its lines end with carriage returns alone; convert it"},
	{"ingest utf16.csv --out s", 1, "utf16.csv: is UTF-16; save it as UTF-8"},
	{"ingest zip.csv --out s", 1, "zip.csv: is a zip archive; unpack it with unzip"},
	{"ingest xz.csv --out s", 1, "xz.csv: is compressed with xz"},
	{"ingest tar.csv --out s", 1, "tar.csv: is a tar archive"},
	{"ingest arrow.csv --out s", 1, "arrow.csv: is an Arrow file; give it the ending .arrow"},
	{"ingest bad.arrow --out s", 1, "bad.arrow: is damaged, or no Arrow file: it ends too soon"},
	{"ingest v1.feather --out s", 1, "v1.feather: is a Feather file of version 1"},
	{"ingest d.pt --out s", 1, "d.pt: is a PyTorch file; save its arrays in one directory: numpy."},
	{"ingest pyg --out s", 1, "data.pt: is a PyTorch file"},
	{"ingest old.pth --out s", 1, "old.pth: is a PyTorch file"},
	{"ingest g.dgl --out s", 1, "g.dgl: is a file of DGL; save its arrays"},
	{"ingest --edges g.pkl --out s", 1, "g.pkl: is a Python pickle; load it in Python"},
	{"ingest e.csv --nodes g.mat --out s", 1, "g.mat: is a MATLAB file; save its edges: numpy."},
	{"ingest g.h5 --out s", 1, "g.h5: is an HDF5 file; save its arrays"},
	{"ingest bad.parquet --out s", 1, "bad.parquet: is damaged, or no Parquet file"},
	{"ingest --edges bad.npy --out s", 1, "bad.npy"},
	{"ingest cut.csv.gz --out s", 1, "cut.csv.gz line 1: the compressed file is truncated"},
	{"ingest g.graph --out s", 1, "its name says METIS"},
	{"ingest m.csv --out s", 1, "is a Matrix Market file"},
	{"ingest float.csv --out s --weight-col weight", 1,
		"float.csv line 2: column \"weight\", \"x\", is not a number"},
	{"ingest time.csv --out s --time-col time", 1,
		"time.csv line 2: column \"time\", \"soon\", is not a time"},
	{"ingest e.csv --src-col source --out s", 2, "--src-col: there is no column \"source\""},
	{"ingest e.csv --src-col src --dst-col src --out s", 1, "which columns are source and dest"},
	{"ingest e.csv --format tsv --out s", 2, "--format tsv is not one of npy, csv, parquet"},
	{"ingest e.csv --delim ;; --out s", 2, "--delim \";;\" is not one character"},
	{"ingest e.csv --header maybe --out s", 2, "--header \"maybe\" is not one of auto, yes, no"},
	{"ingest e.csv --merge sum --out s", 2, "--merge sum, but edges have no weights"},
	{"ingest w.csv --merge most --out s", 2, "--merge most is not one of sum, mean"},
	{"ingest w.csv --merge error --out s", 1, "several edges from a to b have different weights"},
	{"ingest e.csv --dedup --keep-duplicates --out s", 2, "contradict each other"},
	{"ingest e.csv --partitions 4 --out s", 2,
		"--partitions 4 needs --partitioner random, range, ldg, fennel, gap"},
	{"ingest e.csv --partitioner gap --out s", 2,
		"--partitioner gap needs --partitions, 2 or more"},
	{"ingest e.csv --partitioner range --partitions 2 --restream 1 --out s", 2,
		"--restream and --cluster are for --partitioner ldg, fennel, gap, which read the lists"},
	{"ingest e.csv --block 5KiB --out s", 2, "--block 5KiB"},
	{"ingest e.csv --normalize row --out s", 2, "--normalize row, but there are no features"},
	{"ingest e.csv --label-col label --out s", 2, "--label-col needs the file with that column"},
	{"ingest e.csv --nodes nope.csv --out s", 1, "nope.csv: there is no such file"},
	{"ingest e.csv --nodes e.csv --out s", 2, "it is given for something else too"},
	{"ingest --edges n.csv --nodes e.csv --out s", 1, "exchange --edges and --nodes"},
	{"ingest --edges n.csv --nodes e.csv --id-col id --out s", 2,
		"there is no column \"id\" in it, but in n.csv: the files of edges and nodes look exch"},
	{"ingest --edges n.csv --nodes e.csv --feature-cols x --out s", 1,
		"exchange --edges and --nodes"},
	{"ingest --edges n.csv --nodes e.csv --src-col src --out s", 2,
		"there is no column \"src\" in it, but in e.csv: the files of edges and nodes look exch"},
	{"ingest e.csv n.csv --out s", 1, "n.csv: it has none of the columns of e.csv: id, label"},
	{"ingest e.csv --nodes n.csv --label-col src --out s", 2,
		"n.csv: --label-col: there is no column \"src\""},
	{"ingest e.csv --nodes n.csv --feature-cols y --out s", 2,
		"--feature-cols: there is no column \"y\""},
	{"ingest e.csv --nodes n.csv --feature-cols city --out s", 1,
		"n.csv: column \"city\" has text, such as \"Bonn\", and features are numbers"},
	{"ingest e.csv --nodes nan.csv --feature-cols x --out s", 1, "nan.csv line 3: column \"x\" is"},
	{"ingest e.csv --nodes gap.csv --feature-cols x --out s", 1,
		"gap.csv line 3: column \"x\" is empty; --fill mean"},
	{"ingest e.csv --nodes mixed.csv --feature-cols x --out s", 1,
		"mixed.csv line 5: column \"x\", \"x\", is not a number"},
	{"ingest e.csv --nodes few.csv --feature-cols x --out s", 1, "node c has no row"},
	{"ingest e.csv --nodes twice.csv --feature-cols x --out s", 1,
		"twice.csv line 3: node \"a\" has a row already"},
	{"ingest e.csv --labels label2.csv --out s", 1,
		"label2.csv line 3: node \"a\" has another label already"},
	{"ingest e.csv --labels ghost.csv --out s", 1, "ghost.csv line 3: label of unknown node"},
	{"ingest e.csv --split train=train.txt --out s", 1, "train.txt line 2"},
	{"ingest e.csv --split train --out s", 2, "--split \"train\": want NAME=FILE"},
	{"ingest e.csv --split train=both.txt --split test=both.txt --out s", 1, "both.txt line 1"},
	{"ingest e.csv --split random=60/20 --out s", 2, "split \"random=60/20\": want random=TRAIN"},
	{"ingest e.csv --split random=60/60/20 --out s", 2, "random=60/60/20"},
	{"ingest e.csv --features random:0 --out s", 2, "--features random:0 is not degree, one-hot"},
	{"ingest e.csv --memory 1MiB --out s", 2, "--memory 1.0 MiB is too small, the least is"},
	{"ingest e.csv --memory lots --out s", 2, "lots"},
	{"ingest e.csv --out notes.md", 1, "notes.md: a file is here: --out names a directory"},
	{"ingest e.csv --out full", 1, "the directory is not empty, and not a store"},
	{"info nope", 1, "nope"},
	{"info e.csv", 1, "e.csv: not a gdb store, but a file"},
	{"train notes.md", 1, "notes.md: not a gdb store, but a file"},
	{"predict nope --out p.txt", 2, "use .csv, .parquet or .npy"},
	{"runs full", 1, "full"},
}

// TestWrongInputs: each ends with its exit code and one line that says what is wrong, and leaves
// nothing behind.
func TestWrongInputs(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("pyg", 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range wrongFiles {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"empty", "full"} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile("full/diary.txt", []byte("dear"), 0o644); err != nil {
		t.Fatal(err)
	}
	there := tree(t)
	for _, c := range wrongInputs {
		t.Run(c.args, func(t *testing.T) {
			var out, errs bytes.Buffer
			code := execute(context.Background(), strings.Fields(c.args),
				cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
			var lines []string
			for line := range strings.Lines(errs.String()) {
				n := len(lines)
				switch {
				case strings.HasPrefix(line, "gdb: "):
					lines = append(lines, strings.TrimSpace(line))
				case strings.HasPrefix(line, "  ") && n > 0 && code == exitUsage:
					lines[n-1] += " " + strings.TrimSpace(line) // broken at the end of a screen
				}
			}
			said := strings.Join(lines, "")
			if code != c.code || len(lines) != 1 || !strings.Contains(said, c.says) {
				t.Errorf("exit code %d, want %d: %s, want %q", code, c.code, errs.String(), c.says)
			}
			if now := tree(t); now != there {
				t.Errorf("left behind: %s, before %s", now, there)
			}
			os.RemoveAll("s")
		})
	}
}

// tree lists the names in the working directory and in full.
func tree(t *testing.T) string {
	t.Helper()
	var names []string
	for _, dir := range []string{".", "full", "empty"} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, dir+"/"+e.Name())
		}
	}
	return strings.Join(names, " ")
}
