package query

import (
	"cmp"
	"context"

	"gdb/internal/pace"
	"gdb/layout"
)

type nodeDegree struct {
	node   layout.NodeID
	degree uint64
}

// topDegrees keeps the highest degrees, at most most of them. It sorts and cuts its list when twice
// that number has come.
type topDegrees struct {
	most int
	list []nodeDegree
}

func (t *topDegrees) add(ctx context.Context, v layout.NodeID, degree uint64) {
	if len(t.list) >= 2*t.most+1 {
		t.list = t.sorted(ctx)
	}
	t.list = append(t.list, nodeDegree{v, degree})
}

// sorted returns the highest degrees, at most most of them. Once ctx is done it returns any
// degrees.
func (t *topDegrees) sorted(ctx context.Context) []nodeDegree {
	_ = pace.SortFunc(ctx, t.list, func(a, b nodeDegree) int {
		return cmp.Or(cmp.Compare(b.degree, a.degree), cmp.Compare(a.node, b.node))
	})
	return t.list[:min(len(t.list), t.most)]
}
