// Package train trains graph neural networks on a store: models and their gradients, epochs over
// the batches of package sample, evaluation and prediction over the whole graph, checkpoints.
//
// A run lives in runs/NAME of its store:
//
//	run.json        every effective setting, the store's UUID, gdb's version
//	metrics.jsonl   one record an epoch
//	checkpoint-N/   weights, optimizer state and position: see checkpoint.go
//	CURRENT         the name of the newest whole checkpoint, written last
//	LOCK            held while the run is trained
//
// All randomness is derived from counters (package rng) and reductions have a fixed order for a
// number of workers: the same seed and workers give the same weights, bit for bit, also when the
// run was killed and resumed in between.
package train
