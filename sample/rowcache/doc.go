// Package rowcache gathers rows of features by node: from disk (NewDirect), from memory that holds
// all rows (NewResident), or through a cache of some rows (New), whose Policy chooses them. Which
// rows are kept changes what is read and how long it takes, but no bit of what is gathered. FindHot
// finds the nodes whose rows a static cache keeps. A slot is the place of one row in a cache.
//
// Staged reads rows before batches ask for them: the rows of many batches in one pass over the
// file, in its order, instead of row by row.
//
// CopyRows copies rows in memory by their numbers. Rows of a table that is far larger than the
// caches of the CPU come from memory, and each copy waits for it. So rows are prefetched, and
// results that are too large for the caches are written past them.
package rowcache
