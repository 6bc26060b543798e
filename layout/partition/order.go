package partition

// Buckets keep the train edges of a store by edge bucket: bucket (i, j) has the edges from
// partition i to partition j (Waleffe et al., "Marius++", section 5.1).
//
// # Order
//
// A partition buffer holds partitions, and of each pair of them both buckets, (i, j) and (j, i). So
// these stand beside each other in the file, and a pair is one stretch, of twice the bytes of a
// bucket; where partitions are many and buckets small, that is half as many reads. Pairs are in the
// order of the lower partition, then of the higher:
//
//	(0,0) (0,1)(1,0) (0,2)(2,0) … (1,1) (1,2)(2,1) … (p-1,p-1)
//
// So all pairs of partition i with those above it are one stretch as well. A partition that comes
// into a buffer of c is read in c stretches at most: one for each pair with another, or fewer where
// these follow each other. In an order of rows, (i, 0) (i, 1) …, the buckets from i would be one
// stretch, and those to i as many as partitions.
//
// # Files
//
// prep/buckets.edges is a file of edges (edgefile) of the kind GEBK, sorted by bucket, destination,
// source and type. prep/buckets.idx has where each bucket begins, as u64, one more than buckets. In
// the header of both stands what they were made of, so that files of other partitions, or of
// another graph, are made again.

// place is where bucket (i, j) of p partitions stands in the order.
func place(i, j, p int) int {
	low, high := min(i, j), max(i, j)
	first := low * (2*p - low) // of the pairs of the partitions below low
	switch {
	case i == j:
		return first
	case i < j:
		return first + 2*(high-low) - 1
	}
	return first + 2*(high-low)
}
