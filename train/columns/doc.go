// Package columns makes features of the columns of tables: numbers are scaled, words become a value
// each, texts are hashed, times get cycles. Fit chooses an encoder for each column and measures it
// in one pass, on the rows that are trained on; Write writes the rows of all types to a file, which
// is read as any features are.
package columns
