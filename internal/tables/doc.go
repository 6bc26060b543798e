// Package tables reads and writes files of numbers that other tools use: NumPy's arrays, members of
// .npz archives, structured arrays, Parquet, and comma-separated values. All are streamed: memory
// is one buffer, whatever the size of the file. NewWriter writes a table of typed columns in the
// format that an extension names.
//
// # NumPy's file
//
//	0        6       8              10 or 12
//	+--------+-------+--------------+--------------------------+---------------+
//	| magic  | major | header bytes | header, a Python literal | elements      |
//	| \x93NUMPY  minor| u16, or u32  | padded with blanks, '\n' |               |
//	+--------+-------+--------------+--------------------------+---------------+
//
// The header reads {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }. Its length has 16
// bits in version 1.0, and 32 in 2.0 and 3.0. The elements begin at a multiple of 64.
package tables
