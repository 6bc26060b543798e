// Package stream has what an ingest does with edges and features while they stream by, in bounded
// memory: it packs edges into words that sort in the order of the stored lists (EdgeCodec), counts
// degrees (DegreeCounters, SortedDegrees) and pairs of nodes, merges the weights of parallel edges,
// and tells and scales features that need it.
package stream
