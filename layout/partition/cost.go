package partition

// Cost counts what an epoch moves between disk and memory.
type Cost struct {
	Sets int
	// Loads is the number of partitions that are read, and Swaps how many of these come after
	// the first set.
	Loads, Swaps int
	// ReadBytes and WriteBytes count partitions; each that leaves is written. EdgeBytes counts the
	// edge buckets that are read as partitions enter.
	ReadBytes, WriteBytes, EdgeBytes int64
}

// Cost adds up an epoch, given the bytes of each partition and of each bucket of edges. changed
// says that what is learned lies in the partitions, so that they are written back.
func (e *Epoch) Cost(partBytes func(part int) int64, bucketBytes func(Bucket) int64,
	changed bool) (c Cost) {
	c.Sets = e.Sets()
	for i := range e.sets {
		entering := e.Entering(i)
		c.Loads += len(entering)
		if i > 0 {
			c.Swaps += len(entering)
		}
		for _, part := range entering {
			c.ReadBytes += partBytes(part)
		}
		eachEntering(e.Partitions(i), entering, func(k Bucket) { c.EdgeBytes += bucketBytes(k) })
		if changed {
			for _, part := range e.Leaving(i) {
				c.WriteBytes += partBytes(part)
			}
		}
	}
	return c
}

// eachEntering calls fn with each bucket between two partitions of which at least one enters.
func eachEntering(parts, entering []int, fn func(Bucket)) {
	isNew := map[int]bool{}
	for _, p := range entering {
		isNew[p] = true
	}
	for _, x := range entering {
		for _, y := range parts {
			fn(bucket(x, y))
			if !isNew[y] {
				fn(bucket(y, x))
			}
		}
	}
}

// Bias returns the Edge Permutation Bias of an epoch (Waleffe et al., "Marius++", section 6). It is
// 0 if edges of all nodes are trained on evenly throughout the epoch, and at most 1.
//
// A partition's tally is the share of its edges that was trained on so far. The bias is the largest
// difference between two tallies after any set. edges returns how many edges a bucket has; nil
// takes all buckets as equal. Partitions without edges have no tally. The time is proportional to
// the number of buckets.
func (e *Epoch) Bias(edges func(Bucket) uint64) (bias float64) {
	if edges == nil {
		edges = func(Bucket) uint64 { return 1 }
	}
	p := e.spec.Parts
	total, seen := make([]float64, p), make([]float64, p)
	for x := range p {
		for y := range p {
			n := float64(edges(bucket(x, y)))
			total[x] += n
			total[y] += n
		}
	}
	for i := range e.sets {
		for _, k := range e.Buckets(i) {
			n := float64(edges(k))
			seen[k.From] += n
			seen[k.To] += n
		}
		low, high := 1.0, 0.0
		for x, all := range total {
			if all > 0 {
				low, high = min(low, seen[x]/all), max(high, seen[x]/all)
			}
		}
		bias = max(bias, high-low)
	}
	return bias
}
