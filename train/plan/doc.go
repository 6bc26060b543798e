// Package plan decides how a training run splits its memory, and forecasts what an epoch costs.
//
// Facts hold everything the decision depends on: the settings, the store, and the sizes of batches
// that were sampled. A Split is one way to divide the memory between topology, caches, batches and
// the step; Splits lists the ones that fit. Costs hold what the stages of a run (sampling,
// gathering rows, the step) were measured to take; Costs.Choose forecasts every split with them and
// returns the one whose epoch takes least. A Plan is the part of a chosen split that is shown to
// the user and kept in run.json. Package probe measures; this package only computes.
package plan
