package keys

import (
	"context"
	"fmt"
	"slices"
	"testing"
)

// named is a source of types with these numbers of nodes.
type named struct {
	Source
	counts []uint64
}

func (n named) Count(typ int) uint64 { return n.counts[typ] }

func (n named) Names(_ context.Context, typ int, fn func(external []byte) error) error {
	for row := range n.counts[typ] {
		if err := fn(fmt.Appendf(nil, "t%d:%d", typ, row)); err != nil {
			return err
		}
	}
	return nil
}

func TestNamed(t *testing.T) {
	n := named{counts: []uint64{3, 0, 2}}
	if got := Firsts(n, 3); !slices.Equal(got, []uint64{0, 3, 3, 5}) {
		t.Errorf("first nodes %v, want 0 3 3 5", got)
	}
	if got, ok := NameOf(t.Context(), n, 2, 1); got != "t2:1" || !ok {
		t.Errorf("row 1 of type 2 is %q, %t, want t2:1", got, ok)
	}
	if got, ok := NameOf(t.Context(), n, 0, 3); ok {
		t.Errorf("row 3 of type 0 is %q, want none", got)
	}
}
