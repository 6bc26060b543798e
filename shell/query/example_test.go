package query_test

import (
	"context"
	"errors"
	"fmt"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/ingest"
	"gdb/layout/ingest/source"
	"gdb/shell/query"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// people makes a store of three people, of whom some follow others.
func people(ctx context.Context, fs vfs.FS) (*layout.Store, error) {
	f, err := fs.Create("follows.csv", vfs.WriteCategoryUnspecified)
	if err == nil {
		_, err = f.Write([]byte("ann,bob\nbob,cyd\nann,cyd\n"))
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if _, err = ingest.Run(ctx, fs,
		ingest.Options{Options: source.Options{Sources: []string{"follows.csv"},
			Memory: 128 << 20}, Out: "people.gdb"}); err != nil {
		return nil, err
	}
	return layout.Open(ctx, fs, "people.gdb")
}

// ExampleEngine asks who is followed by whom.
func ExampleEngine() {
	ctx := context.Background()
	store, err := people(ctx, vfs.NewMem())
	if err != nil {
		fmt.Println(err)
		return
	}
	dev, err := blockdev.Open(blockdev.Options{Backend: blockdev.Memory})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = dev.Close() }()
	e := query.NewEngine(store, dev, mem.NewBudget(16<<20), 1)
	defer func() { _ = e.Close() }()
	for _, statement := range []string{"NEIGHBORS cyd IN",
		"MATCH (a {id: 'cyd'})<-[]-(b) RETURN count(*) AS followers"} {
		answer, err := e.Query(ctx, statement, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(answer.Columns, answer.Rows)
	}
	// Output:
	// [{node string} {direction string} {neighbor string}] [[cyd in ann] [cyd in bob]]
	// [{followers int64}] [[2]]
}
