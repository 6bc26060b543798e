// Package setting has the settings of trainings, of nodes and of links, as one table.
//
// A setting is a field and a Row. The fields stand in structs by who reads them, each in a file
// with its rows; Node and Link, the settings of the two tasks, embed those that they have:
//
//	Identity  Architecture  Neighbors  Data  PartitionSettings  Learning  NodeLearning  Schedule
//	Evaluation  Caching  Place  Process                                                  -> Node
//	Identity  Scoring  Encoding  Comparing  Learning  Schedule  Ranking  LinkPartitions
//	Process                                                                              -> Link
//
// A row finds its field by its name in run.json. All that has to know every setting is a loop over
// Rows: the flags of commands and their help, defaults (Default, DefaultLink), checks (Validate),
// what a command line says (Line), what may change when a run goes on (SameResult), how records are
// shown (Texts), and what the time of a step depends on (StepName). Rules between several settings
// are code: see Validate.
//
// The package knows the words of models, losses and decoders, and not what they stand for: it
// reaches no kernels.
package setting
