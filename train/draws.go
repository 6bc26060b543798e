package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"gdb/compute/backend"
	"gdb/layout/topology"
	"gdb/sample"
	"gdb/train/devicesample"
	"gdb/train/model"
	"gdb/train/plan"
	"gdb/train/setting"
)

// triedBatches is how many batches are drawn on the device to learn how long one takes, after a
// first one that does not count.
const triedBatches = 8

// cannotDraw says why the device that computes cannot draw the batches of a run; nil if it can.
func cannotDraw(in *inputs, c *Config) error {
	fanout, layers := model.Of(c).Sampled()
	large := func(f int) bool { return f > backend.FanoutMost }
	switch {
	case c.Backend != backend.CUDA:
		return errors.New("the run computes on the cpu, and not with --backend cuda")
	case len(layers) > 0:
		return fmt.Errorf("a device does not draw whole hops (--sampler %s)", c.Sampler)
	case c.Draw() != sample.DrawUniform:
		return fmt.Errorf("a device draws uniformly, and not --sample %s", c.Sample)
	case len(fanout) == 0:
		return fmt.Errorf("a %s here has no neighbors to draw", c.Model)
	case slices.ContainsFunc(fanout, large):
		return fmt.Errorf("a device draws at most %d neighbors of a node, or all",
			backend.FanoutMost)
	case c.Parts() > 1:
		return errors.New("several devices slice their parts from a batch that the host draws")
	case c.MacroBatch > 1:
		return errors.New("a device draws each batch by itself, without --macro-batch")
	case c.Buffered():
		return errors.New("a device draws from the whole graph, and not from partitions in " +
			"memory (--order)")
	case in.Meta.Typed():
		return errors.New("a device does not draw from the lists of each relation, which a typed " +
			"store has")
	case in.Extras != (sample.Extras{Degrees: in.Degrees}):
		return fmt.Errorf("a device has no weights and types of edges, which this %s reads",
			c.Model)
	}
	return nil
}

// drawConfig returns how a device draws batches of at most some nodes and edges.
func drawConfig(in *inputs, c *Config, nodes, edges int64) backend.DrawConfig {
	fanout, _ := model.Of(c).Sampled()
	return backend.DrawConfig{Fanout: fanout, Degrees: in.Degrees, Seeds: c.Batch,
		Nodes: int(nodes), Edges: int(min(edges, math.MaxUint32-1))}
}

// openDraws copies the lists of the graph to the device, if the plan says that it draws batches. It
// returns nil if the host draws them: also if both were tried and the host is faster.
func openDraws(ctx context.Context, p *planned) (g *devicesample.Graph, err error) {
	on := p.plan.OnDevice
	if on == nil || on.Lists == 0 || p.backend() == nil {
		return nil, nil
	}
	release, err := p.in.UseGraph(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, release()) }()
	g, err = devicesample.Open(ctx, p.backend(), []topology.Reader{p.in.Topology},
		drawConfig(p.in, &p.cfg, p.plan.BatchNodes, p.plan.BatchEdges), p.cfg.Seed, p.in.Budget)
	if err != nil {
		return nil, fmt.Errorf("train: draw batches on the device: %w", err)
	}
	if p.cfg.SampleOn != setting.SampleDevice {
		on.Draws, err = p.tryDraws(g)
		if err != nil || !on.Draws.OnDevice {
			return nil, errors.Join(err, g.Close())
		}
	}
	p.loop.CloseLater(g)
	return g, nil
}

// backend returns the memory of the device that computes; nil if there is none.
func (p *planned) backend() backend.Device { return p.steps.be.Device() }

// tryDraws draws some batches on the device, one after the other, and compares the time with that
// of the samplers that the plan has on the host.
func (p *planned) tryDraws(g *devicesample.Graph) (*plan.DrawWay, error) {
	w := &plan.DrawWay{}
	order, err := sample.EpochOrder(p.nodes.train, p.cfg.Seed, 0, p.cfg.Batch)
	if err != nil {
		return w, err
	}
	var b sample.Batch
	var begun time.Time
	n := min(1+triedBatches, order.Batches())
	for i := range n {
		if i == 1 || n == 1 {
			begun = time.Now()
		}
		b.Index, b.Seeds = i, order.Seeds(i, b.Seeds[:0])
		if drawn, err := g.Try(&b); err != nil || !drawn {
			return w, err
		}
	}
	w.Device = time.Since(begun).Seconds() / float64(max(1, n-1))
	if f := p.plan.Forecast; f != nil {
		w.Host = f.Sample / float64(max(1, f.Batches)) / float64(max(1, p.plan.Samplers))
	}
	w.OnDevice = w.Device <= w.Host
	return w, nil
}
