// Package link trains models of link prediction: a vector for each entity and each relation of a
// graph, from which a decoder computes a score for every possible edge. Training makes edges of the
// graph score higher than others.
//
// A step takes a batch of edges and asks two queries for each: which entity is the tail, given head
// and relation, and which is the head, given the tail. The true answer is scored beside negatives.
// These are all entities, or entities that are drawn for all queries of a chunk together, so that
// their scores are one product of matrices (Waleffe, Mohoney, Rekatsinas and Venkataraman,
// "Marius++", and Mohoney and others, "Marius", section 2.1). Gradients of a row that occurs
// several times in a batch are summed in the order of the batch, and work is divided by sizes
// alone, so results have the same bits for any number of threads.
//
// A vectorSource gives steps their edges, part by part, and the rows of entities that are in memory
// meanwhile: inMemory has all rows, onDisk partitions of them. A stepper takes the steps of a part.
// Its comparison says how a batch is compared with drawn negatives: bySide by products of matrices,
// byEdge edge by edge. With all entities as negatives a step is full.
package link
