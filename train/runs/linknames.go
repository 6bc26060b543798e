package runs

import "fmt"

// The names of arrays in a checkpoint of a run that predicts links; those of the optimizer's state
// follow EntitiesName and RelationsName and a blank.
const (
	EntitiesName      = "entities"
	RelationsName     = "relations"
	BestEntitiesName  = "best entities"
	BestRelationsName = "best relations"
)

// PartitionsDir is the directory of a run that has its vectors by partition, if they are on disk.
const PartitionsDir = "partitions"

// LinkState names the arrays that an optimizer keeps beside the values of link prediction.
func LinkState(optimizer string) []string {
	if optimizer == "adam" {
		return []string{"first moments", "second moments"}
	}
	return []string{"sums of squares"}
}

// NoVectorsYet is the error of a run with an encoder before its first evaluation.
func NoVectorsYet(run string) error {
	return fmt.Errorf("train: run %s has not been evaluated yet, and the vectors of its encoder "+
		"are made then: train on, or with a smaller --eval-every", run)
}
