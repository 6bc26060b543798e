package link

import (
	"fmt"

	"gdb/compute/backend"
	"gdb/compute/backend/cuda"
	"gdb/compute/decoder"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/train/link/encode"
	"gdb/train/link/rank"
	"gdb/train/runs"
	"gdb/train/setting"
)

// openDevice opens the device that the settings want, if they want one: vectors and the state of
// the optimizer have a place there, and steps are computed there.
func (t *trainer) openDevice() error {
	if t.cfg.Backend != backend.CUDA {
		return nil
	}
	be, err := cuda.OpenNamed(t.cfg.Backend, backend.Options{Workers: t.cfg.Threads,
		Budget: t.budget, Device: t.cfg.Device, Plain: t.cfg.PlainLaunches})
	if err != nil {
		return err
	}
	t.CloseLater(be)
	if err := t.checkDevice(be); err != nil {
		return err
	}
	for _, table := range t.tables() {
		if err := table.openOn(be); err != nil {
			return fmt.Errorf("train: %w", err)
		}
	}
	t.stepper.computeOn(be)
	return nil
}

// keepsEntities reports whether a device has the vectors of all entities: those that an encoder
// reads are on the host, and those on disk are sent for a step.
func keepsEntities(c *Config) bool { return !c.Encodes() && !c.OnDisk() }

// tables lists what a device has.
func (t *trainer) tables() []*Table {
	if !keepsEntities(&t.cfg) {
		return []*Table{t.model.relations}
	}
	return []*Table{t.model.entities, t.model.relations}
}

// checkDevice refuses a device whose memory has no room for vectors and steps.
func (t *trainer) checkDevice(be backend.Backend) error {
	free, total, err := be.Device().DeviceMemory()
	if err != nil {
		return fmt.Errorf("train: ask for the memory of the device: %w", err)
	}
	parts, err := deviceParts(&t.cfg, t.store.Meta())
	if err != nil {
		return err
	}
	vectors, step := parts[0].Bytes, parts[1].Bytes
	if free >= vectors+step {
		return nil
	}
	return fmt.Errorf("train: vectors and the state of the optimizer need %s of the device's "+
		"memory, and a step or an evaluation %s: %s of %s are free, and %s more would do; lower "+
		"--dim, --batch or --negatives, or take --backend cpu", mem.FormatSize(vectors),
		mem.FormatSize(step), mem.FormatSize(free), mem.FormatSize(total),
		mem.FormatSize(vectors+step-free))
}

// deviceParts lists what a training takes of a device: vectors with the state of the optimizer, and
// the larger of a step and an evaluation. An encoder, whose steps hold features and vectors of each
// layer with their gradients, takes about eight times its input and output.
func deviceParts(c *Config, m *kv.Meta) ([]mem.Part, error) {
	dec, err := decoder.New(c.Decoder, c.Dim, decoder.Options{Norm: c.Norm})
	if err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	relations, pairs := max(1, len(m.EdgeTypes)), newJoins(m).pairs
	if c.Reciprocal {
		relations *= 2
	}
	vectors := int64(relations) * int64(dec.RelationDim(c.Dim))
	step := max(deviceStepBytes(c, int(m.Nodes), pairs),
		rank.DeviceBytes(c.Dim, int(m.Nodes), keepsEntities(c)))
	arrays := int64(1 + len(runs.LinkState(c.Optimizer)))
	switch {
	case c.Encodes():
		step += 8 * encode.BatchBytes(c, m, stepRows(c, pairs))
	case c.OnDisk():
		step += (cuda.StepsStaged + 1) * 4 * arrays * stepRows(c, pairs) * int64(c.Dim) * 9 / 8
	default:
		vectors += int64(m.Nodes) * int64(c.Dim)
	}
	return []mem.Part{
		{Name: "vectors", Bytes: 4 * arrays * vectors},
		{Name: "steps, ranks", Bytes: step}}, nil
}

// deviceStepBytes returns what a step takes of a device, with an eighth more by which memory of
// steps grows: rows and their gradients twice, queries with theirs and those of forms, scores with
// theirs, and the words of lists in two steps at once. With all entities as negatives there are
// their gradients, and answers are taken to be an eighth of scores.
func deviceStepBytes(c *Config, entities, pairs int) int64 {
	floats := int64(0)
	rows, queries, width := stepRows(c, pairs), 2*int64(c.Batch), int64(c.Negatives)
	if c.NegativeSampling == setting.NegativesBatch {
		width = int64(c.Batch)
	}
	if c.Negatives == setting.NegativesAll {
		rows, queries, width = 2*int64(c.Batch), int64(c.Batch), 2*int64(entities)
		floats += int64(entities) * int64(c.Dim)
	}
	floats += (3*rows+4*queries)*int64(c.Dim) + queries*(width+8)
	words := cuda.StepsStaged * (4*rows + queries*(width/8+6))
	return 4*(floats+words)*9/8 + 1<<20
}

// computeOn makes steps compute on a device.
func (s *stepper) computeOn(be backend.Backend) {
	s.be, s.side.sorts = be, isFew(s.cfg, s.dec, s.pairs)
	s.how = s.side
}

// openOn takes memory of a device for the values and the state.
func (t *Table) openOn(be backend.Backend) error {
	for range 1 + len(t.State) {
		x, err := be.Params("vectors", t.Rows*t.Dim)
		if err != nil {
			return err
		}
		t.device = append(t.device, x.View(0, t.Rows, t.Dim))
	}
	return nil
}

// host returns the values and the state in the host's memory, in the order of device.
func (t *Table) host() [][]float32 { return append([][]float32{t.Values}, t.State...) }

// upload copies what is learned to the device, if there is one.
func (t *trainer) upload() error {
	for _, table := range t.tables() {
		for i, x := range table.device {
			t.stepper.be.Write(x, table.host()[i])
		}
	}
	return t.stepper.be.Err()
}

// swapBest exchanges the rows of the model and the best ones, on the device too.
func (t *trainer) swapBest() error {
	if err := t.download(); err != nil {
		return err
	}
	t.best.swap(t.model)
	return t.upload()
}

// openDevice opens the device that ranks edges, if one is to, and copies the vectors there if it
// has the room. Else they are sent as they are compared.
func (t *Trained) openDevice() error {
	c := &t.Config
	if c.Backend != backend.CUDA {
		return nil
	}
	be, err := cuda.OpenNamed(c.Backend, backend.Options{Workers: c.Threads, Budget: t.budget,
		Device: c.Device, Plain: true}) // sizes hardly come again
	if err != nil {
		return err
	}
	t.on, t.closers = be, append(t.closers, be)
	free, total, err := be.Device().DeviceMemory()
	if err != nil {
		return fmt.Errorf("train: ask for the memory of the device: %w", err)
	}
	all, count := t.vectors.Table.All(), t.vectors.Table.Count()
	if all == nil || free < 4*int64(len(all))+rank.DeviceBytes(c.Dim, count, true) {
		if need := rank.DeviceBytes(c.Dim, count, false); free < need {
			return fmt.Errorf("train: to rank edges takes %s of the device's memory: %s of %s are "+
				"free, and %s more would do; or take --backend cpu", mem.FormatSize(need),
				mem.FormatSize(free), mem.FormatSize(total), mem.FormatSize(need-free))
		}
		return nil
	}
	there, err := be.Params("vectors", len(all))
	if err != nil {
		return fmt.Errorf("train: %w", err)
	}
	t.there = there.View(0, count, c.Dim)
	be.Write(t.there, all)
	return be.Err()
}

// download copies what was learned since from the device to the host.
func (t *trainer) download() error {
	if !t.stepper.changed {
		return nil
	}
	t.stepper.changed = false
	for _, table := range t.tables() {
		for i, x := range table.device {
			t.stepper.be.Read(table.host()[i], x)
		}
	}
	if err := t.stepper.be.Err(); err != nil {
		return fmt.Errorf("read vectors of the device: %w", err)
	}
	return nil
}

// settle counts the losses of steps that a device has computed, and waits for these.
func (t *trainer) settle() error {
	s := t.stepper
	if len(s.unread) == 0 {
		return nil
	}
	losses := s.be.Losses(nil)
	if err := s.be.Err(); err != nil {
		return err
	}
	for i, edges := range s.unread {
		loss, err := checked(losses[i].Mean)
		if err != nil {
			return err
		}
		t.pos.Loss += loss * float64(s.edgesInMean(edges))
	}
	s.unread = s.unread[:0]
	return nil
}
