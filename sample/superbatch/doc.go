// Package superbatch trains on batches that are sampled ahead, so that all accesses to feature rows
// are known before the first. The cache can then hold, at every moment, the rows whose next use is
// nearest, and no other choice reads fewer rows (Belady; Park et al., Ginex). Batches have the same
// bits as without superbatches, because every draw is a function of (seed, epoch, batch, hop,
// node).
//
// A superbatch goes through three phases.
//
//	sample   several workers sample batches and write them to runtime files; the accesses are
//	         dealt out by node range (accesses)
//	plan     backward over the accesses of each range, each access gets its next use
//	         (findNextUses); then, forward over the batches, the cache decides what it
//	         keeps (cacheState), and the changes are written for each batch
//	train    for each batch, the rows that no slot holds are read ahead, the others are copied
//	         from slots, and the rows to keep are copied to slots; nothing is decided and nothing
//	         is looked up
//
// The words: a step is a batch, counted over all epochs; a slot is the place of one row in the
// cache; a span is consecutive batches whose missing rows are read in the same way, either one by
// one or by a sweep, which reads the file of features once and packs the rows by batch. A head is a
// short superbatch that comes before a long one, to hide the work on that (wanted).
//
// All passes are sequential and take a few bytes and nanoseconds per access; memory is bounded
// whatever the numbers of nodes and batches. See docs/out-of-core.md.
package superbatch
