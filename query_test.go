package gdb_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gdb"
	"gdb/internal/testgraph"
	"gdb/kv"
	"gdb/layout/ingest"
	"gdb/layout/ingest/source"
	shellquery "gdb/shell/query"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// ingestCora writes the arrays of Cora to dir and makes a store of them.
func ingestCora(ctx context.Context, dir, store string) error {
	from := filepath.Join(dir, "cora")
	if err := testgraph.WriteCora(vfs.Default, from); err != nil {
		return err
	}
	_, err := gdb.Ingest(ctx, ingest.Options{Options: source.Options{Sources: []string{from},
		Memory: 256 << 20}, Out: store, Undirected: true})
	return err
}

// ExampleDB_Query ingests Cora, papers and their citations, and asks what is two steps away.
func ExampleDB_Query() {
	dir, err := os.MkdirTemp("", "gdb")
	if err != nil {
		log.Fatal(err) //lint:exit an example ends here
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, store := context.Background(), filepath.Join(dir, "cora.gdb")
	if err := ingestCora(ctx, dir, store); err != nil {
		log.Fatal(err) //lint:exit an example ends here
	}
	db, err := gdb.Open(ctx, store, gdb.Options{Memory: 64 << 20})
	if err != nil {
		log.Fatal(err) //lint:exit an example ends here
	}
	defer func() { _ = db.Close() }()
	result, err := db.Query(ctx, "NEIGHBORS 42 HOPS 2", nil)
	if err != nil {
		log.Fatal(err) //lint:exit an example ends here
	}
	fmt.Println(result.Columns)
	for _, row := range result.Rows {
		fmt.Println(row...)
	}
	fmt.Println(result.Stats.Rows, "rows")
	// Output:
	// [{hop int64} {node string}]
	// 1 87
	// 1 1372
	// 2 842
	// 2 1362
	// 2 2164
	// 5 rows
}

// ExampleOpen samples the neighborhood of a paper as training would, and reads its features.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "gdb")
	if err != nil {
		log.Fatal(err) //lint:exit an example ends here
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, store := context.Background(), filepath.Join(dir, "cora.gdb")
	if err := ingestCora(ctx, dir, store); err != nil {
		log.Fatal(err) //lint:exit an example ends here
	}
	db, err := gdb.Open(ctx, store, gdb.Options{Memory: 64 << 20})
	if err != nil {
		log.Fatal(err) //lint:exit an example ends here
	}
	defer func() { _ = db.Close() }()
	paper, err := db.Node(ctx, "42")
	if err != nil {
		log.Fatal(err) //lint:exit an example ends here
	}
	batch, err := db.Sample(ctx, []kv.NodeID{paper}, []int{10, 5}, 1, 1, 1)
	if err != nil {
		log.Fatal(err) //lint:exit an example ends here
	}
	rows, dim, err := db.Features(ctx, batch.NodeIDs)
	if err != nil {
		log.Fatal(err) //lint:exit an example ends here
	}
	fmt.Println(db.Meta().Nodes, "papers")
	fmt.Println(len(batch.NodeIDs), "nodes in the batch,", len(rows)/dim, "rows of", dim)
	// Output:
	// 2708 papers
	// 6 nodes in the batch, 6 rows of 1433
}

// TestQueryWithoutVectors: NEAREST and SCORE say what they lack where Options.Vectors is not given.
func TestQueryWithoutVectors(t *testing.T) {
	store := filepath.Join(t.TempDir(), "cora.gdb")
	if err := ingestCora(t.Context(), t.TempDir(), store); err != nil {
		t.Fatal(err)
	}
	db, err := gdb.Open(t.Context(), store, gdb.Options{Memory: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	for _, statement := range []string{"NEAREST 42", "SCORE 42, 87"} {
		if _, err := db.Query(t.Context(), statement, nil); err == nil ||
			!strings.Contains(err.Error(), "Options.Vectors") {
			t.Errorf("%s: %v, want Options.Vectors named", statement, err)
		}
	}
}

// TestQueryWritesNoFile: a statement of a program or of a client of gdb serve cannot write where
// the store is: INTO is refused in each kind of statement, before anything runs.
func TestQueryWritesNoFile(t *testing.T) {
	dir := t.TempDir()
	store := filepath.Join(dir, "cora.gdb")
	if err := ingestCora(t.Context(), t.TempDir(), store); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	db, err := gdb.Open(t.Context(), store, gdb.Options{Memory: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	file := filepath.Join(dir, "out.csv")
	for _, statement := range []string{"NEIGHBORS 42 INTO 'out.csv'", "DEGREES INTO 'out.parquet'",
		"MATCH (a {id: 42})-[]-(b) RETURN b.id INTO '" + file + "'", "RUNS INTO 'runs.jsonl'",
		"EXPLAIN NEIGHBORS 42 INTO 'out.csv'", "neighbors 42 into 'cora.gdb/out.npy'"} {
		if _, err := db.Query(t.Context(), statement, nil); !errors.Is(err, shellquery.ErrInto) {
			t.Errorf("%s: %v, want %v", statement, err, shellquery.ErrInto)
		}
	}
	names, err := os.ReadDir(dir)
	if err != nil || len(names) != 1 {
		t.Errorf("%v beside the store, %v", names, err)
	}
}
