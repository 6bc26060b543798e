// Package bulk samples many batches together.
//
// Passes are for a topology that does not fit in memory. They draw a hop of all batches in one pass
// through the file of lists, in its order: each block is read at most once per hop, in large reads.
// Drawn one by one, each batch would read it again, in small reads. Draws depend on batch, hop and
// node alone, so the batches are the same either way.
//
// MacroBatches draw the seeds of several batches as one, the macro-batch, and slice batches from
// it: the large-batch sampling of Joestar (section 5.2.1). A node that several of the batches reach
// is drawn once for all of them, with the fanout of the hop at which the macro-batch first meets
// it. So draws are shared within a macro-batch, unlike those of separate samples. Workers share
// each hop of a macro-batch (section 5.2.3), and the next macro-batch is drawn while batches are
// sliced from this one. Draws depend on the seed, the epoch, the number of the macro-batch, the hop
// and the node alone.
package bulk
