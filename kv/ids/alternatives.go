package ids

import (
	"context"
	"strings"
	"unicode/utf8"

	"gdb/kv"
)

// Alternatives finds ids that help a user whose id d does not have. meant is an id that d has and
// that differs only in the case of letters or by a type in front; "" if there is none. examples
// holds the ids of the first nodes, at most two. It is empty if they cannot be read; whoever reads
// these ids next reports what is wrong with the dictionary. It takes one lookup for each type of
// nodes and each case.
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

// titled returns a name with its first letter in upper case.
func titled(name string) string {
	r, n := utf8.DecodeRuneInString(name)
	return strings.ToUpper(string(r)) + strings.ToLower(name[n:])
}
