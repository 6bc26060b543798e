// Package rowcache gathers rows of features by node: from disk (NewDirect), from all rows in memory
// (NewResident), or through a cache of some rows (New), whose Policy says which. Which rows are
// kept changes what is read and how long it takes, and no bit of what is gathered. FindHot finds
// the nodes whose rows a static cache keeps.
//
// Staged reads rows before batches ask for them: those of many batches in one pass over their file,
// in its order, where batches by themselves would read each by itself.
//
// CopyRows copies rows in memory by their numbers. Rows of a table that is far larger than the
// caches of the CPU come from memory, and one copy after the other waits for it: here rows are
// asked for ahead, and what is too much for those caches is written past them.
package rowcache
