package train

import "context"

// data is a training whose nodes, features and labels are open: see checked.
type data struct {
	*checked
	in    *inputs
	nodes *splits
}

// openData opens what a training reads, but for the graph.
func openData(ctx context.Context, c *checked) (*data, error) {
	store, err := withSums(ctx, c.store, c.dev, &c.cfg, c.loop.Note)
	if err != nil {
		return nil, err
	}
	d := &data{checked: c, in: newInputs(store, c.dev, &c.cfg)}
	c.loop.CloseLater(d.in)
	if err := d.in.checkLeast(&c.cfg, true); err != nil {
		return nil, err
	}
	if err := d.in.openTimes(ctx, &c.cfg); err != nil {
		return nil, err
	}
	if err := d.in.openEdgeColumns(ctx, &c.cfg); err != nil {
		return nil, err
	}
	if d.nodes, err = loadSplits(ctx, c, d.in); err != nil {
		return nil, err
	}
	d.in.Budget.CollectHeap() // what loading took beyond what is kept
	note, err := d.in.openRows(ctx, &c.cfg)
	if err != nil {
		return nil, err
	}
	c.loop.Note(note)
	if !c.shares { // models of several widths may read the batches
		d.in.splitRows(&c.cfg)
	}
	return d, d.in.openLabels(ctx, &c.cfg)
}
