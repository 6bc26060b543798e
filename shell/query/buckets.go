package query

import (
	"context"
	"fmt"
	"sort"

	"gdb/kv"
	"gdb/layout"
	"gdb/layout/listfile"
	"gdb/shell/exec"
	"gdb/shell/words"
)

// bucketPartitionsMost bounds the counters of STATS BUCKETS: 8 bytes for each pair of partitions.
const bucketPartitionsMost = 2048

// buckets runs STATS BUCKETS: it counts the edges between each two partitions.
type buckets struct {
	x    *exec.Execution
	scan exec.Scan
}

func planBuckets(x *exec.Execution) (*exec.Plan, error) {
	n := len(x.Graph.Meta().Partitions)
	if n > bucketPartitionsMost {
		return nil, fmt.Errorf("the store has %d partitions, and this counts the pairs of up to %d",
			n, bucketPartitionsMost)
	}
	b := &buckets{x, x.Scan([]layout.Direction{layout.In}, -1)}
	return &exec.Plan{Run: b.run, Root: x.Operator("buckets", "edges by pair of partitions",
		float64(n*n), 0, b.scan.Operator)}, nil
}

// run counts the edges of each bucket (i,j) in one scan of the in-lists.
func (b *buckets) run(ctx context.Context) error {
	m := b.x.Graph.Meta()
	n := len(m.Partitions)
	if err := b.x.Hold("counters and order of pairs of partitions", 16*int64(n*n)); err != nil {
		return err
	}
	edges, err := b.count(ctx, m.Partitions)
	if err != nil {
		return err
	}
	b.x.Header("bucket", "edges", "bytes", "share", "skew")
	perEdge := uint64(b.x.Estimates().EntryBytes())
	for _, i := range topped(b.x, len(edges), func(i int) uint64 { return edges[i] }) {
		b.x.Row(fmt.Sprintf("(%d,%d)", i/n, i%n), words.Count(edges[i]),
			words.Size(edges[i]*perEdge), share(edges[i], m.Edges),
			skew(edges[i], m.Edges, len(edges)))
	}
	return nil
}

// count counts the edges of each pair of partitions. A list is sorted and partitions are ranges, so
// the edges of a bucket are adjacent in each list.
func (b *buckets) count(ctx context.Context, parts []kv.Partition) ([]uint64, error) {
	n := len(parts)
	edges := make([]uint64, n*n)
	return edges, b.scan.Each(ctx, layout.In,
		func(first layout.NodeID, _ bool, l *listfile.Lists) error {
			for k := range len(l.Off) - 1 {
				j := partitionOf(parts, first+layout.NodeID(k))
				list := l.Nbrs[l.Off[k]:l.Off[k+1]]
				for len(list) > 0 {
					i := partitionOf(parts, list[0])
					end := uint64(parts[i].First) + parts[i].Nodes
					run := sort.Search(len(list),
						func(q int) bool { return uint64(list[q]) >= end })
					edges[i*n+j] += uint64(run)
					list = list[run:]
				}
			}
			return nil
		})
}

// partitionOf returns the partition of a node; every node is in one.
func partitionOf(parts []kv.Partition, v layout.NodeID) int {
	return sort.Search(len(parts), func(i int) bool { return parts[i].First > v }) - 1
}
