package ids

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"gdb/kv"
)

// fewIDs is a dictionary of a few ids.
type fewIDs []string

func (f fewIDs) Internal(_ context.Context, external string) (kv.NodeID, error) {
	if i := slices.Index(f, external); i >= 0 {
		return kv.NodeID(i), nil
	}
	return 0, kv.ErrNotFound
}

func (f fewIDs) External(_ context.Context, nodes []kv.NodeID, dst []string) ([]string, error) {
	for _, n := range nodes {
		if int(n) >= len(f) {
			return dst, kv.ErrNotFound
		}
		dst = append(dst, f[n])
	}
	return dst, nil
}

func (f fewIDs) Close() error { return nil }

// TestAlternatives holds what is offered for an id that is not there.
func TestAlternatives(t *testing.T) {
	d := fewIDs{"user:Ann", "film:heat", "Berlin"}
	m := &kv.Meta{Nodes: 3, NodeTypes: []kv.NodeTypeMeta{{Name: "user"}, {Name: "film"}}}
	for id, want := range map[string]string{
		"heat": "film:heat [] ", "Ann": "user:Ann [] ", "berlin": "Berlin [] ",
		"FILM:HEAT": "film:heat [] ", "bob": " [user:Ann film:heat] ", "": " [user:Ann film:heat] ",
	} {
		meant, examples := Alternatives(t.Context(), d, m, id)
		if got := fmt.Sprint(meant, " ", examples, " "); got != want {
			t.Errorf("%q: %q, want %q", id, got, want)
		}
	}
	if meant, examples := Alternatives(t.Context(), fewIDs{}, &kv.Meta{}, "x"); meant != "" ||
		len(examples) != 0 {
		t.Errorf("of a store without nodes: %q, %q", meant, examples)
	}
}
