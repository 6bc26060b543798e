// Package columnfile stores a column of a table in checksummed blocks of rows: numbers, strings,
// dates, times and sparse vectors, any of which may be null. A Writer writes the rows in order; a
// Reader scans ranges of them, without the blocks that a range of values rules out, and gathers
// any rows. Vectors of a fixed width are files of rows (rowfile). docs/format/columns.md describes
// the files.
package columnfile
