package store_test

import (
	"context"
	"testing"

	"gdb/layout"
	"gdb/layout/ingest"
	"gdb/layout/ingest/source"
	"gdb/layout/layouttest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// visits is a typed store with dates and times of nodes, and edges with times in a form.
func visits(t *testing.T, times string) *layout.Store {
	fs := vfs.NewMem()
	layouttest.WriteFile(t, fs, "users.csv", []byte("id,born,seen\n"+
		"1,1969-12-31,2024-02-29T07:25:23.5Z\n2,,\n3,1994-05-01,1969-12-31T23:59:59Z\n"))
	layouttest.WriteFile(t, fs, "meets.csv", []byte("a,b,time\n"+times))
	layouttest.WriteFile(t, fs, "likes.csv", []byte("a,b\n3,1\n"))
	ctx := context.Background()
	o := source.Options{Memory: 128 << 20,
		NodeTables: []source.NodeTable{{Type: "user", File: "users.csv"}},
		Relations: []source.Relation{{Src: "user", Name: "meets", Dst: "user", File: "meets.csv"},
			{Src: "user", Name: "likes", Dst: "user", File: "likes.csv"}}}
	if _, err := ingest.Run(ctx, fs, ingest.Options{Options: o, Out: "v.gdb"}); err != nil {
		t.Fatal(err)
	}
	st, err := layout.Open(ctx, fs, "v.gdb")
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// TestTimes holds that dates and times of a store are values of time.
func TestTimes(t *testing.T) {
	const days, clocks = "1,2,2024-05-31\n2,3,1969-12-31\n", "1,2,2024-05-31T12:00:00Z\n"
	for _, c := range []struct{ times, stmt, want string }{
		{days, "MATCH (u:user) WHERE u.born < date('1970-01-01') RETURN u.born, u.born.week",
			"1969-12-31 1"},
		{days, "MATCH (u:user) RETURN u.seen ORDER BY u.seen",
			"1969-12-31T23:59:59Z; 2024-02-29T07:25:23.5Z; <nil>"},
		{days, "MATCH (u:user {id: 1}) RETURN u.seen.nanosecond, " +
			"duration.inDays(u.born, u.seen).days", "500000000 19783"},
		{days, "MATCH ()-[r]->() RETURN r.time, r.time + duration('P1D') ORDER BY r.time",
			"1969-12-31 1970-01-01; 2024-05-31 2024-06-01; <nil> <nil>"},
		{clocks, "MATCH ()-[r:meets]->() RETURN r.time, r.time.hour", "2024-05-31T12:00Z 12"},
		{"1,2,100\n", "MATCH ()-[r:meets]->() RETURN r.time + 1", "101"},
	} {
		if got, err := answer(t, visits(t, c.times), 0, c.stmt); err != nil || got != c.want {
			t.Errorf("%s: %s, %v; want %s", c.stmt, got, err, c.want)
		}
	}
}
