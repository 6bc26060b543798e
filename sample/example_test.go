package sample_test

import (
	"context"
	"fmt"

	"gdb/layout/topology"
	"gdb/sample"
	"gdb/sample/sampletest"
)

// Two hops around the nodes A and B, two in-neighbors each at most.
func ExampleSampler() {
	const A, B, C, D, E, F = 0, 1, 2, 3, 4, 5
	graph := sampletest.FromLists(
		[]sample.NodeID{C, D},    // sources of A's in-edges
		[]sample.NodeID{A, C, E}, // of B's
		[]sample.NodeID{A, E, F}, // of C's
		[]sample.NodeID{B},       // of D's
		[]sample.NodeID{C, F},    // of E's
		[]sample.NodeID{},        // of F's
	)
	s, err := sample.NewSampler([]topology.Reader{graph},
		sample.Config{Fanout: []int{2, 2}, Seed: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	var d sample.Dense
	if err := s.Sample(context.Background(), 0, 0, []sample.NodeID{A, B}, &d); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("node_id_offsets", d.NodeIDOffsets)
	fmt.Println("node_ids       ", names(d.NodeIDs))
	fmt.Println("nbr_offsets    ", d.NbrOffsets)
	fmt.Println("nbrs           ", names(d.Nbrs))
	fmt.Println("repr_map       ", d.ReprMap)
	for l := range d.Layers() {
		v := d.LayerView(l, nil, nil)
		fmt.Printf("layer %d reads %s, computes %s\n", l, names(d.NodeIDs[v.Base:]),
			names(d.NodeIDs[v.Base+v.Skip:]))
	}
	// Output:
	// node_id_offsets [0 1 4 6]
	// node_ids        FCDEAB
	// nbr_offsets     [0 2 3 5 7 9]
	// nbrs            AEBCFCDCE
	// repr_map        [4 3 5 1 0 1 2 1 3]
	// layer 0 reads FCDEAB, computes CDEAB
	// layer 1 reads CDEAB, computes AB
}

func names(ids []sample.NodeID) string {
	out := make([]byte, len(ids))
	for i, v := range ids {
		out[i] = 'A' + byte(v)
	}
	return string(out)
}
