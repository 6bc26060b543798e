package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// shellContract is what the shell promises, and the tests that hold it to each promise: a test by
// its name, or a script by its path.
var shellContract = []struct{ promise, tests string }{
	{"1 data on standard output, everything else on standard error",
		"TestTerminal TestStreams cmd/gdb/testdata/shell_run.txtar"},
	{"2 each stream is looked at by itself; NO_COLOR, TERM=dumb, --color",
		"TestStreams TestPlainTerminals cmd/gdb/testdata/shell_run.txtar"},
	{"3 a box on a terminal, CSV with a header elsewhere",
		"TestStreams TestConversation cmd/gdb/testdata/shell_run.txtar"},
	{"4 only the box cuts, rounds and stops at 40 rows; all else is complete and raw",
		"TestModesAreComplete TestOutputStreams shell/testdata/golden/hub " +
			"shell/testdata/golden/dots"},
	{"5 no pager, prompt, progress or color in a pipe",
		"TestQuietTerminal TestPager cmd/gdb/testdata/shell_run.txtar"},
	{"6 -c, -f and a pipe; the first error stops; --keep-going counts",
		"cmd/gdb/testdata/shell_run.txtar cmd/gdb/testdata/shell_errors.txtar"},
	{"7 exit codes 0, 1, 2, 3 and 130, and a page about them",
		"TestErrorKinds TestInterruptScript TestConversation cmd/gdb/testdata/usage.txtar " +
			"cmd/gdb/testdata/shell_errors.txtar"},
	{"8 it only reads, and locks nobody out",
		"TestReadersWriteNothing TestReadersDoNotLock TestReadersBesideTraining"},
	{"9 a statement ends with its semicolon, a dot command with its line",
		"TestConversation TestEditing TestNextItem TestPipedLines"},
	{"10 Up, Ctrl-R, and history that is the user's alone",
		"TestConversation TestRecall shell/testdata/golden/contract"},
	{"11 Tab: the common prefix, then a menu with descriptions; words of the grammar, then names",
		"TestConversation TestMenu TestCandidates TestEveryKeywordIsExplained"},
	{"12 what is pasted does not run before Enter", "TestPaste TestEditing"},
	{"13 Ctrl-C clears the input or ends the statement; three end the shell, Ctrl-D if it is empty",
		"TestConversation TestInterruptStatement TestInterruptScript TestSupervise TestCancel " +
			"TestCancelHops TestEditEnds"},
	{"14 what a statement cost, on a terminal", "TestConversation TestTimingLine TestTerminal"},
	{"15 progress after two seconds, every ten in a pipe", "TestProgress"},
	{"16 an error says what, where and what to do", "TestSyntaxErrors TestCarets TestMatchCarets"},
	{"17 .help: one screen, a statement, a search",
		"TestHelpFitsAScreen shell/testdata/golden/dots shell/testdata/golden/contract"},
	{"18 the nearest name within distance 2", "TestNear TestSyntaxErrors"},
	{"19 EXPLAIN reads no data file, PROFILE tells what was done",
		"TestExplainReadsNothing TestProfileTotal TestNeighborsReads"},
	{"20 .watch until Ctrl-C", "TestInterruptStatement"},
	{"language: every form of every statement", "TestForms TestExamplesParse"},
	{"language: keywords fold case, names do not; clauses in any order; #17 is the internal id",
		"TestTwin shell/testdata/golden/contract"},
	{"language: a clause that is missing is named", "TestSyntaxErrors"},
	{"language: INTO by extension, through a temporary file",
		"TestFileFails TestFileCrash TestIntoParquet shell/testdata/golden/into"},
	{"language: NEIGHBORS, DEGREES, PATH and MATCH answer as lists in memory do",
		"TestTwin TestRealGraphs TestEmbeddedGraph"},
	{"language: SAMPLE is the batch of training",
		"TestSampleIsTheBatchOfTraining TestSampleByWeight"},
	{"language: MATCH is one anchored, bounded pattern; what is refused is named",
		"TestMatchCarets shell/testdata/golden/match shell/testdata/golden/contract"},
	{"language: STATS, TRACE, RUNS, BLOCK, CHECK",
		"TestStatsIO TestTraceIO TestRuns shell/testdata/golden/stats " +
			"shell/testdata/golden/plain"},
	{"language: SIMULATE CACHE", "TestSimulateIsTheCaches TestSimulateRun"},
	{"dot commands, by unambiguous prefixes",
		"TestConversation TestPager TestEditor TestErrorKinds shell/testdata/golden/dots " +
			"shell/testdata/golden/contract"},
	{"a library: statements at the same time, typed rows, bounded memory",
		"ExampleDB_Query ExampleOpen TestConcurrentReaders TestQueryTypes TestQueryBudget " +
			"TestQueryConcurrent"},
	{"docs/shell.md is what the commands print", "TestShellDoc"},
	{"memory stays bounded whatever the statement",
		"TestHubCount TestBitsBudget TestOutputStreams"},
	{"no text makes the parser fail without a place", "FuzzParse FuzzKeys"},
}

var testName = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example)\w*)\(`)

// TestShellContract holds that every promise is kept by tests that are there.
func TestShellContract(t *testing.T) {
	there := map[string]bool{}
	for _, pattern := range []string{"*_test.go", "../../shell/*_test.go",
		"../../shell/*/*_test.go", "../../*_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range testName.FindAllStringSubmatch(string(b), -1) {
				there[m[1]] = true
			}
		}
	}
	for i, c := range shellContract {
		if number, _, _ := strings.Cut(c.promise, " "); i < 20 && number != strconv.Itoa(i+1) {
			t.Errorf("promise %d is missing: %s", i+1, c.promise)
		}
		tests := strings.Fields(c.tests)
		if len(tests) == 0 {
			t.Errorf("%s: no test", c.promise)
		}
		for _, name := range tests {
			if strings.Contains(name, "/") {
				_, err := os.Stat(filepath.Join("../..", name))
				there[name] = err == nil
			}
			if !there[name] {
				t.Errorf("%s: there is no %s", c.promise, name)
			}
		}
	}
}
