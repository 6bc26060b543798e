package store

import (
	"context"

	"gdb/internal/message"
	"gdb/layout"
	"gdb/layout/columnfile"
	"gdb/layout/nodeindex"
	"gdb/shell/cypher/temporal"
	"gdb/shell/cypher/value"
)

// indexMost is how many nodes a look-up by an index finds at most: of values that more nodes have,
// all are looked at.
const indexMost = 1 << 16

// index returns the index of a property of nodes that have one label; nil if there is none. It
// warns of one that cannot be used.
func (s *store) index(ctx context.Context, key string, labels []string) (*nodeindex.Reader, error) {
	if len(labels) != 1 || !s.meta.Typed() {
		return nil, nil
	}
	r, why, err := s.g.Indexes.Of(ctx, labels[0], key)
	if why != "" {
		s.x.Warn("the index %s.%s is not used: %s; %s index STORE %[1]s.%[2]s makes it again",
			labels[0], key, why, message.Program)
	}
	return r, err
}

// findIndexed calls yield with the nodes that may have a value, by an index; false if there is none
// that can tell.
func (s *store) findIndexed(ctx context.Context, labels []string, key string, v any,
	yield func(value.Node) error) (bool, error) {
	r, err := s.index(ctx, key, labels)
	if r == nil || err != nil {
		return false, err
	}
	v, some, ok := indexed(r.Type, v)
	if !some || !ok {
		return ok, nil
	}
	nodes, ok, err := r.Find(v, indexMost, make([]layout.NodeID, 0, 1))
	if !ok || err != nil {
		return false, err
	}
	for _, n := range nodes {
		if err := yield(value.Node{ID: int64(n), G: s}); err != nil {
			return true, err
		}
	}
	return true, nil
}

// indexed returns a value as an index of a column has it; some is false if the column has none that
// equals it, and ok if the index cannot tell.
func indexed(typ string, v any) (_ any, some, ok bool) {
	switch v := v.(type) {
	case bool:
		n := int64(0)
		if v {
			n = 1
		}
		return n, typ == columnfile.Bool, true
	case temporal.Instant:
		kinds := map[string]string{columnfile.Date: temporal.KindDate,
			columnfile.Timestamp: temporal.KindDateTime}
		n, _, fits := v.Epoch()
		is := kinds[typ] == v.Kind()
		return n, is, fits || !is
	case int64, float64:
		return v, typ == columnfile.Int64 || typ == columnfile.Float64, true
	case string:
		return v, typ == columnfile.String, true
	}
	return nil, false, true
}
