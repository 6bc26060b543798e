package check

import (
	"errors"
	"fmt"
	"slices"

	"gdb/kv"
	"gdb/layout"

	"github.com/cockroachdb/errors/oserror"
)

// dataFolders are the folders of a store in which every file is listed in the catalog.
var dataFolders = []string{"topology", "edges", "features", "labels", "ids"}

// uncheckedFolders are no part of the graph. What is in them carries checksums that are verified
// whenever it is read: prep, which can be made again, and the checkpoints in runs; tmp has what an
// ingest was making.
var uncheckedFolders = []string{"prep", "runs", "tmp"}

// labeledSet is the stored set of the nodes that have multi-labels.
const labeledSet = "labeled"

// catalog checks the metadata, and with Full what it says of the store as a whole.
func (c *checker) catalog() error {
	c.begin(layout.CatalogName)
	defer c.end()
	findings, err := c.s.Catalog().Verify(c.ctx)
	if err != nil {
		return err
	}
	c.report.Findings = append(c.report.Findings, findings...)
	if !c.opt.Full || len(findings) > 0 {
		return nil
	}
	c.partitions()
	if err := c.sets(); err != nil {
		return err
	}
	if c.opt.File != "" {
		return nil
	}
	for _, folder := range dataFolders {
		if err := c.listing(folder); err != nil {
			return err
		}
	}
	return nil
}

// partitions checks that the partitions follow each other and hold all nodes and edges.
func (c *checker) partitions() {
	m, next, edges := c.s.Meta(), uint64(0), uint64(0)
	if len(m.Partitions) == 0 {
		return
	}
	for i, p := range m.Partitions {
		if uint64(p.First) != next && p.Nodes > 0 {
			c.find(-1, -1, "partition %d begins with node %d, want %d", i, p.First, next)
		}
		next += p.Nodes
		edges += p.Edges
	}
	if next != m.Nodes || edges != m.Edges {
		c.find(-1, -1, "partitions have %d nodes and %d edges, the store %d and %d", next, edges,
			m.Nodes, m.Edges)
	}
}

// sets checks the size and range of the splits.
func (c *checker) sets() error {
	nodes := slices.Clone(c.s.Meta().Splits)
	if l := c.s.Meta().Labels; l != nil && l.Kind == "multi" {
		nodes = append(nodes, kv.SplitMeta{Name: labeledSet, Count: l.Labeled})
	}
	total := c.s.Meta().Nodes
	for _, w := range nodes {
		set, err := c.s.Catalog().Set(c.ctx, w.Name)
		switch {
		case errors.Is(err, kv.ErrNotFound), errors.Is(err, kv.ErrDamaged):
			c.find(-1, -1, "set %q: %v", w.Name, err)
		case err != nil:
			return err
		case set.GetCardinality() != w.Count:
			c.find(-1, -1, "set %q has %d nodes, want %d", w.Name, set.GetCardinality(), w.Count)
		case w.Count > 0 && uint64(set.Maximum()) >= total:
			c.find(-1, -1, "set %q has node %d of %d", w.Name, set.Maximum(), total)
		}
	}
	return nil
}

// unchecked notes the folders that a check of the whole store does not look into.
func (c *checker) unchecked() error {
	if c.opt.File != "" {
		return nil
	}
	for _, folder := range uncheckedFolders {
		names, err := c.s.FS().List(c.s.Path(folder))
		if err != nil && !oserror.IsNotExist(err) {
			return fmt.Errorf("layout: check: list %s: %w", folder, err)
		}
		if len(names) > 0 {
			c.report.Unchecked = append(c.report.Unchecked, folder)
		}
	}
	return nil
}

// listing finds files of a folder that the catalog does not list.
func (c *checker) listing(folder string) error {
	names, err := c.s.FS().List(c.s.Path(folder))
	if oserror.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		rel := folder + "/" + name
		info, err := c.s.FS().Stat(c.s.Path(rel))
		if err != nil {
			return err
		}
		if info.IsDir() {
			if err := c.listing(rel); err != nil {
				return err
			}
			continue
		}
		listed := func(m kv.FileMeta) bool { return m.Path == rel }
		if !slices.ContainsFunc(c.s.Meta().Files, listed) {
			c.report.Findings = append(c.report.Findings, kv.Finding{Path: rel, Block: -1,
				Offset: -1, What: "the catalog does not list this file; delete it or move it away"})
		}
	}
	return nil
}
