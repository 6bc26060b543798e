package partition

// Bucket (i, j) has the train edges of a store from partition i to partition j (Waleffe et al.,
// "Marius++", section 5.1).
//
// # Order
//
// A partition buffer holds some partitions and, for each pair of them, both buckets, (i, j) and (j,
// i). So these two are next to each other in the file, and a pair is one stretch of twice the size
// of a bucket; where partitions are many and buckets small, that halves the reads. Pairs are
// ordered by the lower partition, then by the higher:
//
//	(0,0) (0,1)(1,0) (0,2)(2,0) … (1,1) (1,2)(2,1) … (p-1,p-1)
//
// So all pairs of partition i with higher ones are one stretch as well. A partition that enters a
// buffer of c is read in at most c stretches: one for each pair with another, or fewer where these
// follow each other. If buckets were ordered by rows, (i, 0) (i, 1) …, the buckets from i would be
// one stretch, but those to i as many stretches as there are partitions.
//
// # Files
//
// prep/buckets.edges is a file of edges (edgefile) of the kind GEBK, sorted by bucket, destination,
// source and type. prep/buckets.idx holds where each bucket begins, as u64, and at the end the
// number of edges. The headers of both say what they were made from, so that files of other
// partitions or of another graph are made again.

// place returns the place of bucket (i, j) of p partitions in the order.
func place(i, j, p int) int {
	low, high := min(i, j), max(i, j)
	first := low * (2*p - low) // place after the pairs of partitions below low
	switch {
	case i == j:
		return first
	case i < j:
		return first + 2*(high-low) - 1
	}
	return first + 2*(high-low)
}
