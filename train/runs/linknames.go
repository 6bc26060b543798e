package runs

import "fmt"

// These are the names of arrays in a checkpoint of a run that predicts links. An array of the
// optimizer's state has the name EntitiesName or RelationsName, a blank, and a name of LinkState.
const (
	EntitiesName      = "entities"
	RelationsName     = "relations"
	BestEntitiesName  = "best entities"
	BestRelationsName = "best relations"
)

// PartitionsDir is the directory of a run for its vectors by partition, if they are on disk.
const PartitionsDir = "partitions"

// LinkState names the arrays that an optimizer keeps in addition to the values of link prediction.
func LinkState(optimizer string) []string {
	if optimizer == "adam" {
		return []string{"first moments", "second moments"}
	}
	return []string{"sums of squares"}
}

// NoVectorsYet returns the error for a run with an encoder before its first evaluation.
func NoVectorsYet(run string) error {
	return fmt.Errorf("train: run %s has not been evaluated yet, and the vectors of its encoder "+
		"are made then: train on, or with a smaller --eval-every", run)
}
