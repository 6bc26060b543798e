// Package runs keeps the runs of a store on disk, whatever they learn.
//
// A run is a directory, runs/NAME of the store, which Dir names. run.json (File) holds its settings
// and, once it is done, its results. metrics.jsonl has a Record for each epoch. A checkpoint is a
// directory with a state file, which holds the position of the run as JSON and named arrays of
// float32; CURRENT names the newest one, and is written last, so that a crash leaves the old
// checkpoint or the new one. Whole finds the newest checkpoint that is not damaged. Sets remember
// with which splits of the store a run began.
//
// The package only knows these files: package run trains, and the tasks decide what positions and
// arrays hold.
package runs
