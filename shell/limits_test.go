package shell

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"gdb/shell/lang"
)

// TestStatementsAreBounded: lists that no statement needs are refused with a word that says how
// many there may be.
func TestStatementsAreBounded(t *testing.T) {
	many := func(word string, n int) string { return strings.Repeat(word+",", n-1) + word }
	for src, want := range map[string]string{
		"SAMPLE 1 FANOUT " + many("2",
			65): "at most 64 hops",
		"SIMULATE CACHE SIZES " + many("1MiB",
			257): "at most 256",
		"MATCH (a {id: 1})-[]->(b) RETURN " + many("a.id",
			257): "at most 256 values",
		"MATCH (a {id: 1})-[]->(b) WHERE a.id IN [" + many("1", 1<<16+1) +
			"] RETURN b": "at most 65536 values",
	} {
		var wrong *lang.SyntaxError
		if _, err := lang.Parse(src); !errors.As(err, &wrong) || !strings.Contains(wrong.Msg,
			want) {
			t.Errorf("%.40s…: %v, want %q", src, err, want)
		}
	}
	if _, err := lang.Parse("SAMPLE 1 FANOUT " + many("2", 64)); err != nil {
		t.Errorf("64 hops: %v", err)
	}
}

// TestLongListsTakeNoMemory: a list of nodes is read from the text of its statement, whenever it is
// needed.
func TestLongListsTakeNoMemory(t *testing.T) {
	const nodes = 1 << 20
	src := "NEIGHBORS " + strings.Repeat("#3,'a',b,", nodes/3) + "#3 IN COUNT"
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p, err := lang.Parse(src)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for i, ref := range p.Operand.Nodes.IDs.All() {
		if i != n || ref.Internal != (i%3 == 0) {
			t.Fatalf("node %d is %v", i, ref)
		}
		n++
	}
	runtime.ReadMemStats(&after)
	if n != nodes/3*3+1 || n != p.Operand.Nodes.IDs.Count {
		t.Errorf("%d nodes, counted %d", n, p.Operand.Nodes.IDs.Count)
	}
	// Quoted text is put together anew, 8 bytes each of three times; nothing else may be allocated.
	if took := after.TotalAlloc - before.TotalAlloc; took > 3*8*nodes {
		t.Errorf("%d bytes were allocated for %d nodes", took, n)
	}
}

// TestLongLinesOfAPipe are refused before they fill the memory.
func TestLongLinesOfAPipe(t *testing.T) {
	e := newPipeEditor(strings.NewReader(strings.Repeat("x", ScriptBytes+2)), nil)
	if _, err := e.Read(t.Context(), ""); !errors.Is(err, errLong) {
		t.Errorf("a line: %v", err)
	}
	e = newPipeEditor(strings.NewReader(strings.Repeat("NEIGHBORS\n", ScriptBytes/10+2)), nil)
	if _, err := e.Read(t.Context(), ""); !errors.Is(err, errLong) {
		t.Errorf("a statement of many lines: %v", err)
	}
	if _, err := ReadScript(strings.NewReader(strings.Repeat("x", ScriptBytes+1))); !errors.Is(err,
		errLong) {
		t.Errorf("a file: %v", err)
	}
}
