package ids

import (
	"context"
	"strings"
	"unicode/utf8"

	"gdb/kv"
)

// Alternatives helps with an id that d does not have: meant is one that it has and that differs in
// the case of letters or lacks its type in front, "" if there is none; examples are the ids of the
// first nodes, two at most, and none where they cannot be read: what is wrong with the dictionary
// is said by whoever asks for those. It takes a lookup for each type of nodes and each case.
func Alternatives(ctx context.Context, d Dictionary, m *kv.Meta, id string) (meant string,
	examples []string) {
	others := []string{strings.ToLower(id), strings.ToUpper(id), titled(id)}
	for _, t := range m.NodeTypes {
		others = append(others, t.Name+":"+id)
	}
	for _, other := range others {
		if _, err := d.Internal(ctx, other); err == nil {
			return other, nil
		}
	}
	examples, err := d.External(ctx, []kv.NodeID{0, 1}[:min(m.Nodes, 2)], nil)
	if err != nil {
		return "", nil
	}
	return "", examples
}

// titled is a name with a capital.
func titled(name string) string {
	r, n := utf8.DecodeRuneInString(name)
	return strings.ToUpper(string(r)) + strings.ToLower(name[n:])
}
