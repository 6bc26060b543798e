package exec

import (
	"context"
	"fmt"

	"gdb/layout"
	"gdb/shell/graph"
)

// rowBytesMost bounds the rows that are in memory at once.
const rowBytesMost = 1 << 20

// Features is the operator that reads feature rows.
type Features struct{ *Operator }

const featuresName = "features"

// Features plans to read the rows of the nodes that in hands on.
func (x *Execution) Features(in *Operator) Features {
	f := x.Graph.Meta().Features[0]
	return Features{x.Operator(featuresName, fmt.Sprintf("%s, %d x %s", f.Path, f.Dim, f.DType),
		in.Rows, x.Estimates().RowReads(f, in.Rows), in)}
}

// Each calls fn with the rows of consecutive parts of nodes.
func (f Features) Each(ctx context.Context, nodes []layout.NodeID,
	fn func(part []layout.NodeID, data []float32) error) error {
	rows, err := f.x.Graph.Rows(ctx, f.x.Graph.Meta().Features[0])
	if err != nil {
		return err
	}
	dim := rows.Meta().Dim
	most := max(1, min(graph.NodeBatch, rowBytesMost/(4*dim)))
	buf := make([]float32, min(most, len(nodes))*dim)
	for len(nodes) > 0 {
		part := nodes[:min(len(nodes), most)]
		nodes = nodes[len(part):]
		data := buf[:len(part)*dim]
		err := f.Run(ctx, func(ctx context.Context) error {
			return rows.Gather(ctx, part, nil, data)
		})
		if err != nil {
			return err
		}
		f.Emit(len(part), len(part)*rows.Meta().RowBytes)
		if err := fn(part, data); err != nil {
			return err
		}
	}
	return nil
}
