package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gdb/layout"
	"gdb/shell/cypher/check"
	"gdb/shell/cypher/plain"
	"gdb/shell/cypher/value"
	"gdb/shell/exec"
)

// Procedure is what statements may CALL. In arguments and rows, nodes are layout.NodeID.
type Procedure struct {
	Name, Help string
	check.Signature
	// Run calls yield with rows, of a value for each of Signature.Out. Arguments that are left out
	// are nil.
	Run func(ctx context.Context, x *exec.Execution, args []any, yield func([]any) error) error
}

// String returns the name, and the arguments and columns with their types.
func (p Procedure) String() string {
	in := fields(p.In)
	for i := len(in) - p.Optional; i < len(in); i++ {
		in[i] = "[" + in[i] + "]"
	}
	return fmt.Sprintf("%s(%s) :: (%s)", p.Name, strings.Join(in, ", "),
		strings.Join(fields(p.Out), ", "))
}

func fields(of []check.Field) (out []string) {
	for _, f := range of {
		out = append(out, f.Name+" :: "+f.Type)
	}
	return out
}

// signatures returns procedures that cannot run, to check statements with.
func signatures(procs []Procedure) map[string]plain.Procedure {
	out := map[string]plain.Procedure{}
	for _, p := range procs {
		out[p.Name] = plain.Procedure{Signature: p.Signature}
	}
	return out
}

// procedures returns procedures that run on the store. Where an argument that is a node is null,
// they have no rows.
func (s *store) procedures(procs []Procedure) map[string]plain.Procedure {
	out := signatures(procs)
	for _, p := range procs {
		one := out[p.Name]
		one.Run = func(ctx context.Context, args []any, yield func([]any) error) error {
			for i, in := range p.In[:len(p.In)-p.Optional] {
				if args[i] == nil && in.Type != "ANY" {
					return nil
				}
			}
			return p.Run(ctx, s.x, numbers(args), func(row []any) error {
				for _, v := range row {
					if node, is := v.(layout.NodeID); is && s.isDeleted(uint64(node)) {
						return nil
					}
				}
				s.values(p.Out, row)
				return yield(row)
			})
		}
		out[p.Name] = one
	}
	return out
}

// values makes nodes of numbers in a row, and types of relationships of edge types.
func (s *store) values(of []check.Field, row []any) {
	for i, v := range row {
		switch v := v.(type) {
		case layout.NodeID:
			row[i] = value.Node{ID: int64(v), G: s}
		case string:
			if t := slices.Index(s.meta.EdgeTypes, v); t >= 0 && of[i].Name == "type" {
				row[i] = s.relations[t]
			}
		}
	}
}

// numbers returns arguments with layout.NodeID for nodes, and lists as slices.
func numbers(args []any) []any {
	out := make([]any, len(args))
	for i, v := range args {
		switch v := v.(type) {
		case value.Node:
			out[i] = layout.NodeID(v.ID)
		case value.List:
			out[i] = numbers(v)
		default:
			out[i] = v
		}
	}
	return out
}
