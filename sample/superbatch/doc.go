// Package superbatch trains on batches that are sampled ahead, so that all accesses to feature rows
// are known before the first: the cache then holds at every moment the rows whose next use is
// nearest, and no other choice reads fewer (Belady; Park et al., Ginex). Batches have the same bits
// as without, because every draw is a function of (seed, epoch, batch, hop, node).
//
// A superbatch goes through three phases.
//
//	sample   batches are sampled by several workers and written to runtime files, and their
//	         accesses dealt out by node range (accesses)
//	plan     backward over the accesses of each range, each gets its next use (findNextUses);
//	         forward over the batches, the cache decides what stays (cacheState), and a plan is
//	         written for each batch
//	train    for each batch, the rows that no slot has are read ahead, the others copied
//	         from the cache's slots, and the rows to keep copied to slots; nothing is decided and
//	         nothing looked up
//
// All passes are sequential and take a few bytes and nanoseconds per access; memory is bounded
// whatever the numbers of nodes and batches. See docs/out-of-core.md.
package superbatch
