// Package link trains models of link prediction: a vector for each entity and for each relation of
// a graph, so that a decoder scores its edges above others.
//
// A step takes a batch of edges and, for both ends of each, a query: who is the tail of this head
// and relation, who the head of this tail. The true answer is scored beside negatives, entities
// that are drawn for all queries of a chunk together, so that their scores are one product of
// matrices (Waleffe, Mohoney, Rekatsinas and Venkataraman, "Marius++", and Mohoney and others,
// "Marius", section 2.1); or beside all entities. Gradients of rows that occur several times in a
// batch are summed in the order of the batch, and all work is cut by sizes alone, so results have
// the same bits whatever the number of threads.
//
// What a step trains on comes from a Source, part by part: edges, and the rows of entities that are
// in memory with them. Memory is the source that has all of them.
package link
