// Package bulk samples many batches together.
//
// Passes are for a topology that does not fit in memory. A hop of all batches is one pass through
// the file of lists, in its order: each block is read at most once a hop, in large reads, where
// batches by themselves would read it once for each of them, in small ones. Draws are functions of
// batch, hop and node, so that batches are the same.
//
// MacroBatches draw the seeds of several batches as one, the macro-batch, and slice batches from
// it: the large-batch sampling of Joestar (section 5.2.1). A node that several of the batches reach
// is drawn once for all of them, and with the fanout of the hop at which the macro-batch first
// meets it: so draws are used again within a macro-batch, which samples of their own are not.
// Workers share each hop of a macro-batch (section 5.2.3), and the next one is drawn while batches
// are sliced from this one. What is drawn is a function of the seed, the epoch, the number of the
// macro-batch, the hop and the node alone.
package bulk
