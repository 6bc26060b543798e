// Package export writes what a run learned to files that other tools read.
//
// # Vectors
//
// Vectors of nodes are under the ids of the source: in CSV (columns id, v0, v1, …), in Parquet (id,
// and vector as a list), or in a structured array of NumPy (fields id and vector).
//
// # Weights
//
// Weights are in the format of Hugging Face's library safetensors, which is read without running
// anything:
//
//	0        8              8+n
//	+--------+--------------+---------------------------------+
//	| n, u64 | JSON, spaces | values, array after array       |   little-endian
//	+--------+--------------+---------------------------------+
//
// The JSON is an object: for each array {"dtype": "F32", "shape": [rows, cols], "data_offsets":
// [begin, end]}, in bytes from the first value on, and "__metadata__", an object of strings. Spaces
// make n a multiple of 8, so that values are aligned.
//
// # Epochs
//
// The epochs of a run are event files that TensorBoard shows: records of TFRecord framing (length,
// masked CRC-32C, bytes, masked CRC-32C) that hold Event messages of protocol buffers.
package export
