package graph

import (
	"context"
	"math"
	"time"

	"gdb/kv"
	"gdb/layout"
	"gdb/layout/ingest/input"
	"gdb/layout/listfile"
	"gdb/layout/topology"
)

// ListEntries bounds how many list entries are in memory at once; longer lists come in parts.
const ListEntries = 1 << 16

// listsLeast is how many nodes, or entries, are read at once at least: all entries may be of a type
// that is not wanted.
const listsLeast = 16

// EachList calls fn with consecutive parts of nodes and their lists until it returns false. A list
// of more than ListEntries entries comes in several calls with its node alone. limit is how many
// entries the caller will use: if they are few, few are read at once.
func (g *Graph) EachList(ctx context.Context, dir layout.Direction, nodes []layout.NodeID,
	limit int64, fn func([]layout.NodeID, *listfile.Lists) (bool, error)) error {
	t, err := g.Topology(ctx, dir)
	if err != nil {
		return err
	}
	ses := t.NewSession()
	defer ses.Release()
	return topology.EachList(ctx, ses, nodes, topology.ListsMost{
		Nodes:   int(max(listsLeast, min(limit, NodeBatch))),
		Entries: uint64(max(listsLeast, min(limit, ListEntries)))}, fn)
}

// EachInRange calls fn with the lists of the nodes from … to-1, as topology.EachInRange does: in
// large sequential reads where lists are on disk.
func (g *Graph) EachInRange(ctx context.Context, dir layout.Direction, from, to layout.NodeID,
	fn func(first layout.NodeID, cont bool, l *listfile.Lists) error) error {
	t, err := g.Topology(ctx, dir)
	if err != nil {
		return err
	}
	return topology.EachInRange(ctx, t, from, to, fn)
}

// ParseTime reads a date, with or without a time of day, as ingest does. It returns seconds since
// 1970.
func ParseTime(s string) (seconds int64, ok bool) { return input.ParseTime([]byte(s)) }

// Time returns the time of an edge as the source wrote it: a number, or a date. The time may also
// be a mean of times.
func (g *Graph) Time(t float64) any { return timeOf(g.Meta().Times, t) }

// TimeOf returns the time of one edge as the source wrote it; nil if its relation has no times.
func (g *Graph) TimeOf(t int64) any {
	if t == kv.NoTime && g.Meta().Typed() {
		return nil
	}
	if g.Meta().Times == kv.TimeNumber {
		return t
	}
	return timeOf(g.Meta().Times, float64(t))
}

// The years for which times are written as dates.
const (
	yearFirst = 0
	yearLast  = 9999
)

func timeOf(form kv.TimeForm, t float64) any {
	at := time.Unix(int64(math.Floor(t)), 0).UTC()
	switch y := at.Year(); {
	case form == kv.TimeNumber || y < yearFirst || y > yearLast:
		return t
	case form == kv.TimeDate && at.Equal(at.Truncate(24*time.Hour)):
		return at.Format(time.DateOnly)
	}
	return at.Format(time.RFC3339)
}
