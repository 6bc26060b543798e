// Package rowcache gathers rows of features by node: from disk (NewDirect), from all rows in memory
// (NewResident), or through a cache of some rows (New), whose Policy says which. Which rows are
// kept changes what is read and how long it takes, and no bit of what is gathered.
package rowcache
