// Package paged trains vectors of entities that do not fit in memory: they are on disk by
// partition, some partitions are in a buffer, and an epoch goes through the edges between these,
// set by set (Waleffe, Mohoney, Rekatsinas and Venkataraman, "Marius++", sections 5 and 6). While a
// set is trained on, the partitions and the edges of the next one are read, and what has left the
// buffer is written.
//
// A Plan says how many partitions there are and which are in memory when. A Source goes through an
// epoch by it, and Rows go through all entities once, to evaluate and to predict.
package paged
