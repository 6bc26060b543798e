// Package paged trains vectors of entities that do not fit in memory. They are on disk by
// partition, some partitions are in a buffer, and an epoch goes through the edges between these,
// set by set (Waleffe, Mohoney, Rekatsinas and Venkataraman, "Marius++", sections 5 and 6). While a
// set is trained on, the partitions and edges of the next set are read, and partitions that left
// the buffer are written.
//
// A Plan says how many partitions there are and which are in memory when. A Source goes through an
// epoch according to a plan. Rows goes through all entities once, to evaluate and to predict.
package paged
