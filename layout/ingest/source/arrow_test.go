package source_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"gdb/layout/ingest/source"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// feather is a file of columns of texts, which are its rows.
func feather(t *testing.T, names string, rows ...string) []byte {
	t.Helper()
	var fields []arrow.Field
	for name := range strings.FieldsSeq(names) {
		fields = append(fields, arrow.Field{Name: name, Type: arrow.BinaryTypes.String})
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
	for _, row := range rows {
		for i, v := range strings.Fields(row) {
			b.Field(i).(*array.StringBuilder).Append(v)
		}
	}
	var out bytes.Buffer
	w, err := ipc.NewFileWriter(&out, ipc.WithSchema(b.Schema()), ipc.WithLZ4())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(b.NewRecordBatch()); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestArrowGraph reads files of edges and nodes that are found by their names, and edges that are a
// directory of files.
func TestArrowGraph(t *testing.T) {
	// Each file has bytes of its own: a file may change what is written to it.
	edge := func(row string) []byte { return feather(t, "note dst src", row) }
	nodes := feather(t, "label id", "u a", "v b", "u c")
	fs := files{"d/edges.feather": edge("x b a"), "d/nodes.arrow": nodes,
		"parts/0.arrow": edge("x b a"), "parts/1.arrow": edge("y c b"), "parts/_SUCCESS": ""}.fs(t)
	for _, c := range []struct {
		opt  source.Options
		want string
	}{
		{source.Options{Sources: []string{"d"}}, "edge a b"},
		{source.Options{Edges: "parts", Nodes: "d/nodes.arrow"}, "edge b c"},
	} {
		src, err := source.Open(context.Background(), fs, &c.opt)
		if err != nil {
			t.Fatal(err)
		}
		got, err := dump(src)
		if err != nil || src.Info().Format != "arrow" || !strings.Contains(got, c.want) ||
			!strings.Contains(got, "node b") {
			t.Errorf("%s: %s, %v", src.Info().Format, got, err)
		}
	}
}
