package link

import (
	"context"
	"errors"
	"fmt"

	"gdb/compute/decoder"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout/partition"
	"gdb/train/link/encode"
	"gdb/train/link/entities"
	"gdb/train/link/paged"
	"gdb/train/link/rank"
	"gdb/train/link/triples"
	"gdb/train/runs"
	"gdb/train/setting"
)

// onDisk is the source whose vectors are on disk.
type onDisk struct {
	*paged.Source // nil until it is open
	t             *trainer
	table         Table
	near          *paged.Neighbors      // neighbors for an encoder; nil without one
	before        partition.BufferStats // at the last call of count
}

// config returns the configuration with which the vectors of the run are opened.
func (d *onDisk) config() paged.Config {
	t := d.t
	return paged.Config{Store: t.store, Device: t.dev, Path: t.Dir.Path(runs.PartitionsDir),
		Plan: t.plan, Init: initOf(&t.cfg), Budget: t.budget}
}

func (d *onDisk) check(record, best []byte) error { return paged.Check(d.config(), record, best) }

func (d *onDisk) open(ctx context.Context, record, best []byte) (note string, err error) {
	d.Source, note, err = paged.Open(ctx, d.config(), record, best)
	if err != nil {
		return "", err
	}
	t, arrays := d.t, d.Arrays()
	t.CloseLater(d.Source)
	d.table = Table{Rows: d.BufferRows(), Dim: t.cfg.Dim, Values: arrays[0], State: arrays[1:]}
	if t.cfg.NegativeSampling == setting.NegativesDegree {
		if err := t.budget.Reserve("degrees", degreeBytes*int64(d.BufferRows())); err != nil {
			return "", fmt.Errorf("train: %w", err)
		}
	}
	if t.stepper.enc == nil {
		return note, nil
	}
	d.near, err = paged.NewNeighbors(d.Buckets(), d.BufferRows(), t.store.Meta().Undirected,
		t.budget)
	if err != nil {
		return "", err
	}
	t.CloseLater(d.near)
	return note, t.stepper.enc.drawNear(d.near, d.table.Values, t.budget)
}

// Load loads the partitions and edges of a part of an epoch.
func (d *onDisk) Load(ctx context.Context, epoch uint64, part int) (*triples.Part, error) {
	p, err := d.Source.Load(ctx, epoch, part)
	if err == nil && d.near != nil {
		err = d.near.Load(ctx, p.Set, d.First)
	}
	return p, err
}

func (d *onDisk) rows() *Table { return &d.table }

func (d *onDisk) scored(ctx context.Context, values []float32, best bool) (rank.Vectors,
	entities.Known, error) {
	if !d.t.cfg.ScoredOnDisk() {
		return entities.InMemory(values, d.t.cfg.Dim), entities.Indexed{Index: d.t.data.known}, nil
	}
	r, err := d.Rows(ctx, [][]triples.Triple{d.t.data.val, d.t.data.test}, best)
	return r, r, err
}

func (d *onDisk) learned(ctx context.Context, to *Table) error {
	rows, err := d.Rows(ctx, nil, false)
	if err != nil {
		return err
	}
	return errors.Join(rows.Each(ctx, func(p *rank.Block) error {
		for i := range p.Count {
			copy(to.row(p.Entity(i)), p.Rows[i*to.Dim:][:to.Dim])
		}
		return nil
	}), rows.Close())
}

func (d *onDisk) keepBest(ctx context.Context) (unsaved bool, err error) {
	if !d.t.cfg.ScoredOnDisk() {
		return false, nil
	}
	return true, d.KeepBest(ctx)
}

func (d *onDisk) count(epoch uint64, rec *runs.LinkEpoch) error {
	now, err := d.Stats()
	rec.Sets, rec.Wait = d.Sets(epoch), d.t.pos.Wait
	rec.Read, rec.Written = now.ReadBytes-d.before.ReadBytes, now.WriteBytes-d.before.WriteBytes
	d.before = now
	return err
}

// policies maps the names that settings give orders of links to the orders.
var policies = map[string]partition.Policy{setting.OrderBeta: partition.Beta,
	setting.OrderTwoLevel: partition.TwoLevel, setting.OrderDispersed: partition.Dispersed,
	setting.OrderSequential: partition.Sequential}

// memoryBytes returns what a training takes that keeps all vectors in memory.
func memoryBytes(c *Config, m *kv.Meta) int64 {
	edges := int64(m.SplitEdges())
	arrays := int64(2 + len(runs.LinkState(c.Optimizer))) // with those of the best evaluation
	rows := arrays * 4 * int64(m.Nodes) * int64(c.Dim)
	step := stepBytes(c, int(m.Nodes), newJoins(m).pairs)
	return rows + mem.HeapCost(12*edges+2*triples.Bytes(edges)+step)
}

// besideBytes returns what a training with vectors on disk takes in addition to its plan.
func besideBytes(c *Config, m *kv.Meta) (int64, error) {
	dec, err := decoder.New(c.Decoder, c.Dim, decoder.Options{Norm: c.Norm})
	if err != nil {
		return 0, err
	}
	edges := int64(m.SplitEdges() - m.SplitEdges("train"))
	relations := int64(max(1, len(m.EdgeTypes)))
	if c.Reciprocal {
		relations *= 2
	}
	arrays := int64(2 + len(runs.LinkState(c.Optimizer)))
	table := mem.ArenaBytes(4 * max(1, relations*int64(dec.RelationDim(c.Dim))))
	const empty = 3 // tables of no entities, and of the best ones
	n := mem.HeapCost(evaluatedBytes*edges+stepBytes(c, 0, newJoins(m).pairs)) + arrays*table +
		empty*mem.ArenaBytes(1)
	return n + encodedBytes(c, m), nil
}

// MakePlan chooses how a training goes through partitions on disk, and completes the settings of
// the order. It returns nil if all vectors are in memory.
func MakePlan(c *Config, m *kv.Meta) (*paged.Plan, error) {
	if c.Order == setting.OrderAuto {
		fits := memoryBytes(c, m) <= mem.NewProcessBudget(c.Memory).Limit()
		given := c.Partitions != 0 || c.PartitionsInMemory != 0 || c.LogicalPartitions != 0
		if c.Order = setting.OrderTwoLevel; !given && (fits || c.Encodes() || c.Validate() != nil) {
			c.Order = setting.OrderMemory
		}
	}
	if !c.OnDisk() {
		return nil, nil
	}
	p, err := planOf(c, m)
	if err == nil {
		c.Partitions, c.PartitionsInMemory = p.Order.Parts, p.Order.Capacity
		c.LogicalPartitions = p.Order.Logical
	}
	return p, err
}

// planOf returns the plan for settings whose order goes through partitions.
func planOf(c *Config, m *kv.Meta) (*paged.Plan, error) {
	if c.NegativeSampling == setting.NegativesDegree && m.Typed() {
		return nil, errors.New("train: negatives by degree of a typed store are drawn with all " +
			"vectors in memory only: raise --memory, or take --negative-sampling uniform")
	}
	beside, err := besideBytes(c, m)
	if err != nil {
		return nil, err
	}
	limit := mem.NewProcessBudget(c.Memory).Limit()
	extra := 0
	if c.NegativeSampling == setting.NegativesDegree {
		extra = degreeBytes
	}
	edgeExtra, what := 0, "steps, relations"
	if c.Encodes() {
		what += ", all vectors encoded"
		extra, edgeExtra = extra+paged.RowBytes, paged.NeighborBytes
	}
	p, err := paged.NewPlan(m, paged.Want{Policy: policies[c.Order], Parts: c.Partitions,
		Capacity: c.PartitionsInMemory, Logical: c.LogicalPartitions, Dim: c.Dim,
		TrainParts: func(parts int) int { return trainParts(m, parts) },
		State:      len(runs.LinkState(c.Optimizer)), Extra: extra, EdgeExtra: edgeExtra,
		Seed: c.Seed, EdgeSeconds: edgeSeconds(c), Memory: limit - beside})
	if err != nil {
		return nil, err
	}
	p.Parts = append([]mem.Part{{Name: "program", Bytes: mem.ProcessBytes},
		{Name: what, Bytes: beside}}, p.Parts...)
	return p, nil
}

// edgeSeconds returns about how long an edge takes to compute on two cores of the machine in
// docs/link.md, where vectors do not fit in caches: the rows of its ends, and its scores. It is a
// constant and not measured, because orders, and with them what is learned, follow from it.
func edgeSeconds(c *Config) float64 {
	const rows, scores = 40e-9, 0.15e-9 // seconds for each column
	return float64(c.Dim) * (rows + scores*float64(max(0, c.Negatives)))
}

// initOf returns a function that draws the initial vector of an entity, the same as in memory.
func initOf(c *Config) func(row []float32, entity uint64) {
	return func(row []float32, entity uint64) {
		decoder.InitialEntity(row, c.Seed, entity, c.Init)
	}
}

// plannedFor tells the user that vectors are on disk, and that batches are smaller if they are;
// batch is the number of edges of a step. It returns "" if all vectors are in memory.
func plannedFor(p *paged.Plan, c *Config, batch int) string {
	if p == nil {
		return ""
	}
	text := fmt.Sprintf("vectors are on disk: %d of %d partitions are in memory at a time; the "+
		"order of edges is not that of a training in memory", p.Order.Capacity, p.Order.Parts)
	if batch < c.Batch {
		text += fmt.Sprintf(", and batches have %d edges, not %d, since these are between fewer "+
			"entities", batch, c.Batch)
	}
	return text
}

// denseBatch is how many edges of a batch an entity may be an end of, on average, before batches
// get fewer edges.
const denseBatch = 1.0 / 16

// batchOf returns how many edges a step has with vectors on disk.
//
// A step changes each row once, by the sum of what the batch's edges ask for. The edges of a set of
// partitions are between few entities, each of which is then in a batch more often than if the
// batch were drawn from all edges. Its row takes fewer and longer steps, as with a larger batch.
// Where entities are in a batch often, batches therefore have fewer edges, so that an entity is in
// one as often as it would be with all vectors in memory. Without that FB15k-237 lost 2.5 % of its
// MRR at a buffer of a quarter (docs/link.md).
func batchOf(c *Config, p *paged.Plan, entities int) int {
	density := max(2*float64(c.Batch)/float64(entities), denseBatch)
	held := float64(entities) * float64(p.Order.Capacity) / float64(p.Order.Parts)
	return max(1, min(c.Batch, int(density*held/2)))
}

// encodedBytes returns what an encoder takes in addition to the plan, with vectors on disk: three
// tables of all entities (as learned, as encoded, and as encoded at the best evaluation), the
// vectors of a batch, and for evaluations all edges and lists.
func encodedBytes(c *Config, m *kv.Meta) int64 {
	if !c.Encodes() {
		return 0
	}
	edges := int64(m.SplitEdges())
	table := 4 * int64(m.Nodes) * int64(c.Dim)
	batch := encode.BatchBytes(c, m, stepRows(c, newJoins(m).pairs))
	n := 3*mem.ArenaBytes(table) + mem.HeapCost(batch)
	n += 12*edges + triples.Bytes(2*edges)
	if c.EncodesFeatures() {
		n += mem.ArenaBytes(4 * int64(m.Nodes) * int64(setting.FeatureDim(m)))
	}
	n += int64(len(m.Directions)) * (4*int64(m.Edges) + 8*int64(m.Nodes))
	return n
}
