package query

import (
	"context"
	"errors"
	"fmt"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/shell/exec"
)

// runPredict runs gdb.predict. It takes three quarters of the memory that is free.
func runPredict(ctx context.Context, x *exec.Execution, args []any,
	yield func([]any) error) (err error) {
	var stop error // of yield: it is no failure of the prediction
	defer func() {
		if err != nil && stop == nil && ctx.Err() == nil {
			err = fmt.Errorf("gdb.predict: %w", err)
		}
	}()
	g := x.Graph
	if g.Predict == nil {
		return errors.New("this program cannot predict: it opened the store without " +
			"Options.Predict")
	}
	nodes, err := nodesOf(args[0])
	if err != nil || len(nodes) == 0 {
		return err
	}
	run, err := findRun(ctx, x, args[1].(string))
	if err != nil {
		return err
	}
	calibrated, memory := args[2] == true, int64(0) // it is nil if it was left out
	if limit := g.Budget.Limit(); limit > 0 {
		free := (limit - g.Budget.Used()) * 3 / 4
		held := mem.NewAccount(g.Budget, "prediction")
		defer held.Release()
		if err := held.Add(free - mem.HeapGarbage(free)); err != nil {
			return err
		}
		memory = free + mem.ProcessBytes
	}
	return g.Predict(ctx, g.Store, g.Dev, run.Name, calibrated, nodes, memory,
		func(v layout.NodeID, prediction any, probability float64) error {
			row := []any{v, prediction, nil}
			if probability == probability {
				row[2] = probability
			}
			stop = yield(row)
			return stop
		})
}
