package inspect

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"gdb/internal/files"
	"gdb/kv"
	"gdb/kv/catalog"
	"gdb/layout"

	"github.com/cockroachdb/errors/oserror"
)

// dataFolders lists the folders of a store in which every file is listed in the catalog.
var dataFolders = []string{"topology", "edges", "features", "labels", "ids", "columns"}

// uncheckedFolders lists the folders that are not part of the graph. The files in prep, which can
// be made again, and the checkpoints in runs have checksums that are verified whenever they are
// read. tmp holds files of an ingest that has not ended.
var uncheckedFolders = []string{"prep", "runs", "tmp"}

// labeledSet is the name of the stored set of the nodes that have multi-labels.
const labeledSet = "labeled"

// catalog checks the metadata, and with Full also what they say of the store as a whole.
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
	return errors.Join(c.listings(), c.strangers())
}

// listings finds files among those of the graph that the catalog does not list.
func (c *checker) listings() error {
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

// sets checks the range of the splits, and the size of the set of nodes with labels. It does not
// compare the sizes of splits with metadata that were read earlier, since splits may be replaced
// meanwhile; sizes were compared with the metadata of the same transaction.
func (c *checker) sets() error {
	meta, names := c.s.Meta(), []string(nil)
	for _, split := range meta.Splits {
		names = append(names, split.Name)
	}
	if l := meta.Labels; l != nil && l.Kind == "multi" {
		names = append(names, labeledSet)
	}
	for _, name := range names {
		set, err := c.s.Catalog().Set(c.ctx, name)
		switch {
		case errors.Is(err, kv.ErrNotFound), errors.Is(err, kv.ErrDamaged):
			c.find(-1, -1, "set %q: %v", name, err)
		case err != nil:
			return err
		case name == labeledSet && set.GetCardinality() != meta.Labels.Labeled:
			c.find(-1, -1, "set %q has %d nodes, want %d", name, set.GetCardinality(),
				meta.Labels.Labeled)
		case !set.IsEmpty() && uint64(set.Maximum()) >= meta.Nodes:
			c.find(-1, -1, "set %q has node %d of %d", name, set.Maximum(), meta.Nodes)
		}
	}
	return nil
}

// unchecked lists the folders that a check of the whole store leaves out.
func (c *checker) unchecked() error {
	if c.opt.File != "" {
		return nil
	}
	folders := uncheckedFolders
	if all, err := c.s.FS().List(c.s.Dir()); err == nil && c.s.Meta().Manifest > 0 {
		folders = slices.Concat(slices.DeleteFunc(all, func(name string) bool {
			return !isPrep(name)
		}), folders)
	}
	for _, folder := range folders {
		names, err := c.s.FS().List(c.at(folder))
		if err != nil && !oserror.IsNotExist(err) {
			return fmt.Errorf("layout: check: list %s: %w", folder, err)
		}
		if folder == "tmp" {
			names = slices.DeleteFunc(names, func(n string) bool { return n == layout.ReadersDir })
		}
		if len(names) > 0 {
			c.report.Unchecked = append(c.report.Unchecked, folder)
		}
	}
	return nil
}

// isPrep reports whether a folder has what was made of some snapshot.
func isPrep(name string) bool { return strings.HasPrefix(name, layout.PrepDir+"-") }

// strangers finds files that do not belong into the store: beside its folders, among the files of
// the catalog, and among the folders of runs.
func (c *checker) strangers() error {
	folders := slices.Concat(dataFolders, uncheckedFolders, []string{layout.CatalogName})
	live := c.s.Meta().Manifest > 0
	err := c.each("", func(rel string, _ bool) error {
		ofLevels := live && (rel == layout.LevelsDir || isPrep(rel))
		if !slices.Contains(folders, rel) && !ofLevels {
			c.stranger(rel, "nothing of a store has this name")
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = c.each(layout.CatalogName, func(rel string, _ bool) error {
		if !catalog.IsOwn(c.s.FS().PathBase(rel)) {
			c.stranger(rel, "no file of the catalog has this name")
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.each("runs", func(rel string, isDir bool) error {
		if !isDir {
			c.stranger(rel, "it is no run")
		}
		return nil
	})
}

// stranger adds a finding for a file that does not belong into the store.
func (c *checker) stranger(rel, why string) {
	c.report.Strangers++
	c.report.Findings = append(c.report.Findings, kv.Finding{Path: rel, Block: -1, Offset: -1,
		What: why + "; delete it or move it away"})
}

// at returns where a file of the store's own folder is, whatever base its graph has.
func (c *checker) at(rel string) string {
	return c.s.FS().PathJoin(append([]string{c.s.Dir()}, strings.Split(rel, "/")...)...)
}

// each calls fn for each entry of a folder, ordered by name, with its path in the store and whether
// it is a folder. An entry that cannot be examined, such as a circular link, counts as no folder.
func (c *checker) each(folder string, fn func(rel string, isDir bool) error) error {
	names, err := c.s.FS().List(c.at(folder))
	if oserror.IsNotExist(err) {
		return nil
	}
	if errors.Is(err, syscall.ENOTDIR) || errors.Is(err, files.ErrRefused) {
		c.find(-1, -1, "%s is no folder", folder)
		return nil
	}
	if err != nil {
		return fmt.Errorf("list %s: %w", folder, err)
	}
	slices.Sort(names)
	for _, name := range names {
		rel := strings.TrimPrefix(folder+"/"+name, "/")
		info, err := c.s.FS().Stat(c.at(rel))
		if err := fn(rel, err == nil && info.IsDir()); err != nil {
			return err
		}
	}
	return nil
}

// listing finds files of a folder that the catalog does not list. It goes into a folder only if the
// catalog lists files in it.
func (c *checker) listing(folder string) error {
	return c.each(folder, func(rel string, isDir bool) error {
		if _, listed := c.s.Meta().File(rel); listed {
			return nil
		}
		if isDir && slices.ContainsFunc(c.s.Meta().Files, func(m kv.FileMeta) bool {
			return strings.HasPrefix(m.Path, rel+"/")
		}) {
			return c.listing(rel)
		}
		c.stranger(rel, "the catalog does not list this file")
		return nil
	})
}
