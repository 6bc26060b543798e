package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// notRun are commands of the pages that this test does not run, by how they begin ($ is their end),
// each with the reason. Their flags are looked at all the same.
var notRun = []struct{ begins, why string }{
	{"gdb serve cora.gdb --http", "answers until it is ended; http.txtar runs the like"},
	{"gdb serve r22.gdb", "of a graph of bench gen rmat"},
	{"gdb mcp cora.gdb", "answers until its input ends; http.txtar runs the like"},
	{"gdb ui ", "answers until it is ended; ui.txtar runs the like"},
	{"gdb bench gen rmat --scale", "writes gigabytes"},
	{"gdb bench gen kron --in cora.gdb --factor 64", "writes 90 MB and trains on them"},
	{"gdb bench gen sbm --nodes 200000", "writes 60 MB"},
	{"gdb bench gen sbm --nodes 131072", "writes 65 MB"},
	{"gdb ingest coauthor-cs", "of a public graph"},
	{"gdb ingest shop/", "schema.txtar runs the like"},
	{"gdb train cora.gdb --search", "search.txtar runs the like"},
	{"gdb append shop.gdb", "of rows that come later; typednodes.txtar runs the like"},
	{"gdb index shop.gdb", "index.txtar runs the like"},
	{"gdb index STORE TYPE.COLUMN", "index.txtar runs the like"},
	{"gdb train cs.gdb", "of a public graph"},
	{"gdb ingest ratings.csv --weight-col rating", "edges_predicted.txtar runs the like"},
	{"gdb train otc.gdb", "edges_predicted.txtar runs the like"},
	{"gdb train STORE --task edge", "edges_predicted.txtar runs the like"},
	{"gdb predict STORE --run r0003 --new-since", "fromrun.txtar runs the like"},
	{"gdb predict papers.gdb --nodes", "of nodes that come later; predict_new.txtar runs the like"},
	{"gdb predict shop.gdb --nodes", "of nodes that come later; predict_new.txtar runs the like"},
	{"gdb train cora.gdb --order", "partitions_in_memory.txtar runs the like"},
	{"gdb plan cora.gdb --order", "partitions_in_memory.txtar runs the like"},
	{"gdb ingest cora64", "of the graph of bench gen kron"},
	{"gdb ingest pubmed-nofeat", "of a public graph"},
	{"gdb train pubmed.gdb", "of a public graph"},
	{"gdb ingest fb15k-237", "of a public graph"},
	{"gdb ingest cora --undirected --edge-split", "of a public graph"},
	{"gdb train cora.gdb --task link", "of a public graph; links.txtar runs the like"},
	{"gdb train fb.gdb", "of a public graph"},
	{"gdb eval fb.gdb", "of a public graph"},
	{"gdb predict fb.gdb", "of a public graph"},
	{"gdb embed fb.gdb", "of a public graph"},
	{"gdb plan fb.gdb", "of a public graph"},
	{"gdb train STORE --task link$", "of a store with splits of its edges"},
	{"gdb plan STORE --task link --memory SIZE$", "of a store with splits of its edges"},
	{"gdb plan --task link --backend cuda$", "of a store with splits of its edges"},
	{"gdb ingest edges.csv --out g.gdb --edge-split", "of a graph with many edges"},
	{"gdb ingest --nodes user=users.csv", "of tables of a shop; typed.txtar runs the like"},
	{"gdb eval my.gdb --run first --calibrate", "of a graph whose val can be all right"},
	{"gdb eval --calibrate", "of a graph whose val can be all right"},
	{"gdb predict my.gdb --run first --probabilities --calibrated", "of its temperature"},
	{"gdb train shop.gdb --task link", "of these tables; typed.txtar runs the like"},
	{"gdb eval shop.gdb --run rec", "of these tables; typed.txtar runs the like"},
	{"gdb predict shop.gdb --run rec", "of these tables; typed.txtar runs the like"},
	{"gdb ingest rmat", "of a graph of bench gen rmat"},
	{"gdb ingest sbm", "of the graph of bench gen sbm"},
	{"gdb train r20.gdb", "of a graph of bench gen rmat"},
	{"gdb train r22.gdb", "of a graph of bench gen rmat"},
	{"gdb train r18.gdb", "of a graph of bench gen rmat"},
	{"gdb train s20.gdb", "of a graph of bench gen rmat"},
	{"gdb train sbm.gdb", "of the graph of bench gen sbm"},
	{"gdb bench train", "minutes, and cgroups that not all machines give"},
	{"gdb bench link", "minutes, of a public graph"},
	{"gdb bench io --", "reads a file of 4 GiB for minutes"},
	{"gdb bench sample --", "samples a graph of 64 million edges for minutes"},
	{"gdb bench ingest --", "gigabytes"},
	{"gdb bench gather --store big.gdb", "of a graph of bench gen rmat"},
	{"gdb bench nearest --exact", "of an index of gigabytes"},
	{"gdb index STORE vectors", "index.txtar runs the like"},
	{"gdb bench partition --store dblp.gdb", "of a public graph"},
	{"gdb order papers.gdb", "order.txtar runs the like"},
	{"gdb ingest --partitioner gap", "names flags, and leaves source and store out"},
	{"gdb train --strategy macro$", "of a store in order of partitions"},
	{"gdb bench cache --plot DIR", "names a flag, and leaves the store out"},
	{"gdb ingest --undirected --normalize row", "names flags, and leaves source and store out"},
	{"gdb split STORE$", "names the command, and leaves --split out"},
	{"gdb train papers.gdb --tensorboard", "of the graph of the quickstart, which its test trains"},
}

// placeholders are words in commands that stand for others.
var placeholders = map[string]string{"STORE": "my.gdb", "S": "my.gdb", "NAME": "first",
	"SIZE": "1GiB", "COMMAND": "train", "SRC...": "cites.csv", "DIR": "dir"}

// isPlaceholder says whether a value of a flag stands for others: M, C, off|on.
var isPlaceholder = regexp.MustCompile(`^[A-Z]+$|\|`)

// shownCommand is a command of a page.
type shownCommand struct {
	page, line string
	inline     bool
}

// commandsOf returns the commands of a page: lines of its blocks, and inline. Those after a prompt
// are left to the tests that compare their screens.
func commandsOf(page, text string) (all []shownCommand) {
	inBlock := false
	var prose strings.Builder
	text = strings.ReplaceAll(text, "\\\n", " ")
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "```"):
			inBlock = !inBlock
		case inBlock && strings.HasPrefix(line, "gdb "), strings.HasPrefix(line, "    gdb "):
			line, _, _ = strings.Cut(strings.TrimSpace(line), "  #")
			for _, one := range strings.Split(line, " && ") {
				all = append(all, shownCommand{page, strings.Join(strings.Fields(one), " "), false})
			}
		case !inBlock:
			prose.WriteString(line)
		}
	}
	for _, m := range regexp.MustCompile("`(gdb [^`]*)`").FindAllStringSubmatch(prose.String(),
		-1) {
		all = append(all, shownCommand{page, strings.Join(strings.Fields(m[1]), " "), true})
	}
	return all
}

// splitWords splits a command line as a shell does.
func splitWords(line string) (words []string) {
	for _, m := range regexp.MustCompile(`'([^']*)'|"([^"]*)"|\S+`).FindAllStringSubmatch(line,
		-1) {
		word := m[0]
		if strings.ContainsAny(word[:1], `'"`) {
			word = m[1] + m[2]
		}
		words = append(words, word)
	}
	return words
}

// checkFlags looks at the flags of a command line: there must be such, and they must take their
// values. whole is false where a flag is named without its value.
func checkFlags(t *testing.T, c *cobra.Command, rest []string) (arguments []string, whole bool) {
	t.Helper()
	whole = true
	for i := 0; i < len(rest); i++ {
		name, _, given := strings.Cut(rest[i], "=")
		f := (*pflag.Flag)(nil)
		switch {
		case name == "--help":
			continue
		case strings.HasPrefix(name, "--"):
			f = c.Flags().Lookup(name[2:])
			if f == nil {
				f = c.InheritedFlags().Lookup(name[2:])
			}
		case strings.HasPrefix(name, "-") && len(name) == 2:
			f = c.Flags().ShorthandLookup(name[1:])
		default:
			arguments = append(arguments, rest[i])
			continue
		}
		if f == nil || f.Hidden {
			t.Errorf("%s has no flag %s", c.CommandPath(), name)
			return arguments, false
		}
		if given || f.NoOptDefVal != "" {
			continue
		}
		if i++; i == len(rest) {
			return arguments, false
		}
		value := rest[i]
		if isPlaceholder.MatchString(value) {
			whole = false
			continue
		}
		if err := f.Value.Set(value); err != nil {
			t.Errorf("%s %s %s: %v", c.CommandPath(), name, value, err)
		}
	}
	return arguments, whole
}

// runnable returns a command of a page as it is run: with words for its placeholders, and with a
// store and few epochs where the page leaves them out. It is nil for a command that is only named.
func runnable(t *testing.T, s shownCommand, fresh string) []string {
	t.Helper()
	words := splitWords(s.line)[1:]
	for i, w := range words {
		if new, ok := placeholders[w]; ok {
			words[i] = new
		}
		if i > 0 && words[i-1] == "--out" && w == "STORE" {
			words[i] = fresh
		}
	}
	c, rest, err := (&app{}).rootCommand().Find(words)
	if err != nil || c.Root() == c {
		t.Errorf("%s: %s: no such command: %v", s.page, s.line, err)
		return nil
	}
	arguments, whole := checkFlags(t, c, rest)
	if !whole || s.inline && len(rest) == 0 && c.Name() != "gdb" {
		return nil
	}
	if len(arguments) == 0 && strings.HasPrefix(c.Use, c.Name()+" STORE") &&
		!slices.Contains(words, "--help") {
		words = append(words, "my.gdb")
	}
	if c.Name() == "train" && s.page != "README.md" && !slices.Contains(words, "--epochs") &&
		!slices.Contains(words, "--resume") {
		words = append(words, "--epochs", "1")
	}
	if c.Name() == "gemm" { // else it multiplies for half a minute
		words = append(words, "--rounds", "1")
	}
	return words
}

// writeReadme writes the files that README.md speaks of.
func writeReadme(t *testing.T) {
	t.Helper()
	cites, papers := "citing,cited\n", "paper,topic,w0,w1,w2,w3\n"
	sets := map[string]string{}
	for i := range 30 {
		topic, w := "graphs", 1
		if i%2 == 1 {
			topic, w = "trees", 0
		}
		cites += fmt.Sprintf("p%d,p%d\n", i+1, (i+2)%30+1)
		papers += fmt.Sprintf("p%d,%s,%d,%d,0,1\n", i+1, topic, w, 1-w)
		set := []string{"train", "val", "test"}[i/2%3]
		sets[set+".txt"] += fmt.Sprintf("p%d\n", i+1)
	}
	sets["cites.csv"], sets["papers.csv"] = cites, papers
	for name, text := range sets {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// docPages returns the pages that have commands, README.md first.
func docPages(t *testing.T, root string) (names []string, texts map[string]string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob(filepath.Join(root, "docs", "format", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	texts = map[string]string{}
	for _, path := range slices.Concat([]string{filepath.Join(root, "README.md")}, found, more) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
		texts[name] = string(b)
	}
	return names, texts
}

// TestDocsCommands runs the commands of all pages, but for those of notRun; of all, there must be
// such a command with such flags.
func TestDocsCommands(t *testing.T) {
	root := filepath.Join(inTempDir(t), "..", "..")
	writeReadme(t)
	names, texts := docPages(t, root)
	seen, left, ran := map[string]bool{}, map[string]bool{}, 0
	for _, page := range names {
		for i, s := range commandsOf(page, texts[page]) {
			words := runnable(t, s, fmt.Sprintf("new%d.gdb", i))
			skip := slices.IndexFunc(notRun, func(n struct{ begins, why string }) bool {
				return strings.HasPrefix(s.line+"$", n.begins)
			})
			line := strings.Join(words, "\x00")
			switch {
			case skip >= 0:
				left[notRun[skip].begins] = true
			case words == nil || seen[line]:
			default:
				seen[line] = true
				ran++
				runShown(t, s, words)
			}
		}
	}
	for _, n := range notRun {
		if !left[n.begins] {
			t.Errorf("no page has a command %q: take it out of notRun", n.begins)
		}
	}
	if ran < 30 {
		t.Errorf("%d commands were run", ran)
	}
}

// runShown runs a command of a page, which must be done. A dry run is followed by the real one.
func runShown(t *testing.T, s shownCommand, words []string) {
	t.Helper()
	if code, out, errs := said(words...); code != exitDone {
		t.Errorf("%s: %s, run as %q: exit code %d: %s%s", s.page, s.line, words, code, out, errs)
	}
	if i := slices.Index(words, "--dry-run"); i >= 0 {
		runShown(t, s, slices.Delete(slices.Clone(words), i, i+1))
	}
}

// TestDocsFlags: a flag that a page names is one of some command, under the name of today.
func TestDocsFlags(t *testing.T) {
	flags := map[string]bool{"--help": true}
	eachCommand(func(c *cobra.Command, _ []string) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			flags["--"+f.Name] = flags["--"+f.Name] || !f.Hidden
		})
	})
	names, texts := docPages(t, filepath.Join("..", ".."))
	code := regexp.MustCompile("`[^`]+`")
	flag := regexp.MustCompile("(^|[\\s`])(--[a-z-]+)")
	n := 0
	for _, page := range names {
		for _, span := range code.FindAllString(texts[page], -1) {
			for _, m := range flag.FindAllStringSubmatch(span, -1) {
				n++
				if !flags[m[2]] {
					t.Errorf("%s: %s: no command has a flag %s", page, span, m[2])
				}
			}
		}
	}
	if n < 200 {
		t.Errorf("%d flags were looked at", n)
	}
}
