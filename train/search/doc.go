// Package search chooses settings of a training. It draws trials from a space of settings, and
// trains them by successive halving (Jamieson and Talwalkar, "Non-stochastic Best Arm
// Identification and Hyperparameter Optimization", 2016, Figure 1): all for a few epochs, the best
// third for three times as many, until three are left, which train to the end.
//
// The package knows neither runs nor models: who searches says how a trial is trained.
package search
