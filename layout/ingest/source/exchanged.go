package source

import (
	"slices"
	"strings"

	"gdb/layout/ingest/input"
	"gdb/layout/ingest/table"
)

// swapped is an error if the names of columns say that files of edges and nodes were exchanged.
func (s *textGraph) swapped(n *nodeTable) error {
	ends := n.Named(srcNames) >= 0 && n.Named(dstNames) >= 0
	for _, t := range s.edges {
		if ends && t.Named(idNames) >= 0 && (t.Named(srcNames) < 0 || t.Named(dstNames) < 0) {
			return input.Wrong(n.Path, "exchange --edges and --nodes", "its columns are those of "+
				"edges (%s), and those of %s of nodes (%s)", table.Few(n.Names), t.Path,
				table.Few(t.Names))
		}
	}
	return nil
}

// nodesExchanged is err, about a column that the file of nodes lacks; or, if a file of edges has it
// and not the ends of edges, that the two look exchanged.
func (s *textGraph) nodesExchanged(err error) error {
	if s.nodeTable == nil {
		return err
	}
	names := []string{s.opt.IDCol, s.opt.LabelCol, s.opt.SplitCol}
	for _, part := range slices.Concat(table.ListOf(s.opt.FeatureCols),
		table.ListOf(s.opt.Categorical)) {
		lo, hi, _ := strings.Cut(part, ":")
		names = append(names, lo, hi)
	}
	for _, t := range s.edges {
		if t.Named(srcNames) < 0 || t.Named(dstNames) < 0 {
			err = s.nodeTable.Exchanged(err, t.Table, names)
		}
	}
	return err
}

// edgesExchanged is err, about a column that a file of edges lacks; or, if the file of nodes has
// it, that the two look exchanged.
func (s *textGraph) edgesExchanged(t *table.Table, err error) error {
	if s.nodesFile == "" {
		return err
	}
	nodes, openErr := s.openNodesOnce(s.nodesFile)
	if openErr != nil {
		return err // the first of two errors
	}
	return t.Exchanged(err, nodes, []string{s.opt.SrcCol, s.opt.DstCol, s.opt.RelCol,
		s.opt.WeightCol, s.opt.TimeCol})
}
