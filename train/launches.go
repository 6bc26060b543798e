package train

import (
	"context"
	"errors"
	"fmt"

	"gdb/compute/backend"
	"gdb/compute/program"
	"gdb/internal/mem"
	"gdb/sample"
	"gdb/train/model"
	"gdb/train/plan"
	"gdb/train/probe"
)

const (
	// launchSteps is how many steps are given to a device one after the other before it is waited
	// for, when both ways to launch them are timed.
	launchSteps = 4
	// launchWarm rounds of them do not count, in which memory grows and graphs are made; of
	// launchRounds the fastest does.
	launchWarm, launchRounds = 2, 3
)

// TimeLaunches times steps on a sampled batch that are launched at once, with padding, and steps
// whose operations are launched one by one: what a device takes for them while the host prepares no
// batch and sends no rows. It returns nil where there is no choice, it was made before, or there is
// no room to measure in. It changes the weights.
func (s *stepper) TimeLaunches(ctx context.Context, d *sample.Dense) (way *plan.LaunchWay,
	err error) {
	on := s.be.Device()
	if on == nil || !s.be.About().Groups || s.cfg.Grouped != nil || s.vectors != nil {
		return nil, nil
	}
	sizes := program.SizesOf(&d.Lists)
	padding := model.NewPadding(&sizes)
	way = &plan.LaunchWay{}
	err = s.untrained(func() (err error) {
		s.model.Pad(padding)
		if way.AtOnce, err = s.timeRounds(d); err != nil {
			return err
		}
		s.model.Pad(nil)
		on.Group(false)
		way.OneByOne, err = s.timeRounds(d)
		return err
	})
	s.model.Pad(nil)
	on.Group(true)
	way.Grouped = way.AtOnce <= way.OneByOne
	var full *mem.LimitError
	if errors.As(err, &full) {
		way, err = nil, nil
	}
	if err != nil {
		err = fmt.Errorf("time how steps are launched: %w", err)
	}
	return way, errors.Join(err, s.be.Trim(), ctx.Err())
}

// timeRounds returns what a step takes in the fastest of some rounds, in seconds.
func (s *stepper) timeRounds(d *sample.Dense) (seconds float64, err error) {
	all := make([]sample.Batch, launchSteps)
	for i := range all {
		all[i] = sample.Batch{Dense: *d, Seeds: d.NodeIDs[d.NodeIDOffsets[d.Layers()]:]}
		s.task.Blank(&all[i])
		defer all[i].Free()
	}
	zeros := func(*sample.Batch) (backend.Assemble, error) {
		return func(rows int, _ backend.Tensor) backend.Tensor {
			x := s.be.Scratch(rows, s.features)
			backend.Zero(s.be, x)
			return x
		}, nil
	}
	for round := range launchWarm + launchRounds {
		for i := range all {
			if err := s.prepare(&all[i]); err != nil {
				return 0, err
			}
			s.finish(&all[i])
		}
		w, err := probe.Clocked(1, func() (err error) {
			for i := range all {
				if err = s.step(&all[i], zeros); err != nil {
					return err
				}
			}
			_, err = s.losses()
			return err
		})
		if err != nil {
			return 0, err
		}
		one := w.Seconds / launchSteps
		if round == launchWarm || round > launchWarm && one < seconds {
			seconds = one
		}
	}
	return seconds, nil
}
