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

// listReader hands out lists in bounded parts. It takes the memory of ListEntries entries of 4 to
// 18 bytes, and of NodeBatch nodes.
type listReader struct {
	ses   topology.Session
	batch int    // how many degrees are read at once
	bound uint64 // how many entries are read at once
	emit  func(nodes []layout.NodeID, l *listfile.Lists) (more bool, err error)
}

// EachList calls fn with consecutive parts of nodes and their lists until it returns false. A list
// of more than ListEntries entries comes in several calls with its node alone. limit is how many
// entries the caller will use: if they are few, few are read at once.
func (g *Graph) EachList(ctx context.Context, dir layout.Direction, nodes []layout.NodeID,
	limit int64, fn func([]layout.NodeID, *listfile.Lists) (bool, error)) error {
	t, err := g.Topology(ctx, dir)
	if err != nil {
		return err
	}
	r := listReader{ses: t.NewSession(), emit: fn,
		batch: int(max(listsLeast, min(limit, NodeBatch))),
		bound: uint64(max(listsLeast, min(limit, ListEntries)))}
	defer r.ses.Release()
	deg := make([]uint32, r.batch)
	for more := true; more && len(nodes) > 0; {
		part := nodes[:min(len(nodes), r.batch)]
		nodes = nodes[len(part):]
		if err := r.ses.Degrees(ctx, part, deg[:len(part)]); err != nil {
			return err
		}
		if more, err = r.groups(ctx, part, deg[:len(part)]); err != nil {
			return err
		}
	}
	return nil
}

// groups emits whole lists, as many at once as the bound allows.
func (r *listReader) groups(ctx context.Context, nodes []layout.NodeID, deg []uint32) (bool,
	error) {
	for len(nodes) > 0 {
		n, entries := 1, uint64(deg[0])
		for n < len(nodes) && entries+uint64(deg[n]) <= r.bound {
			entries += uint64(deg[n])
			n++
		}
		var more bool
		var err error
		if entries > r.bound {
			more, err = r.parts(ctx, nodes[:1], deg[0])
		} else {
			more, err = r.whole(ctx, nodes[:n])
		}
		if err != nil || !more {
			return false, err
		}
		nodes, deg = nodes[n:], deg[n:]
	}
	return true, nil
}

func (r *listReader) whole(ctx context.Context, nodes []layout.NodeID) (bool, error) {
	l, err := r.ses.Lists(ctx, nodes)
	if err != nil {
		return false, err
	}
	return r.emit(nodes, l)
}

// parts emits one long list in parts.
func (r *listReader) parts(ctx context.Context, node []layout.NodeID, degree uint32) (bool,
	error) {
	ses, ok := r.ses.(topology.PartReader)
	if !ok {
		return r.whole(ctx, node)
	}
	for from := uint64(0); from < uint64(degree); from += r.bound {
		to := min(from+r.bound, uint64(degree))
		l, err := ses.ListPart(ctx, node[0], uint32(from), uint32(to))
		if err != nil {
			return false, err
		}
		if more, err := r.emit(node, l); err != nil || !more {
			return false, err
		}
	}
	return true, nil
}

// ParseTime reads a date, with or without a time of day, as ingest does. It returns seconds since
// 1970.
func ParseTime(s string) (seconds int64, ok bool) { return input.ParseTime([]byte(s)) }

// Time returns the time of an edge as the source wrote it: a number, or a date. The time may also
// be a mean of times.
func (g *Graph) Time(t float64) any { return timeOf(g.Meta().Times, t) }

// TimeOf returns the time of one edge as the source wrote it.
func (g *Graph) TimeOf(t int64) any {
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
