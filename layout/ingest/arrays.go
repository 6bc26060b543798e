package ingest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"gdb/layout/ingest/npy"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// chunkRows is how many edges, ids or labels a chunk holds at most.
const chunkRows = 1 << 16

// arrays is the source of a directory of array files; ids are row numbers.
type arrays struct {
	fs   vfs.FS
	opt  *Options
	dir  string
	info Info

	edges          string // (E,2), (2,E) or (E,3)
	src, dst       string
	weights, times string
	features       map[string]string // name to file, or to the prefix of CSR files
	labels, coo    string
	splits         string
	members        map[string]string // split to file of ids or a mask
}

// Info tells what was found.
func (s *arrays) Info() *Info { return &s.info }

// Close does nothing: every method closes what it opens.
func (s *arrays) Close() error { return nil }

// Nodes streams nothing: arrays have no node table.
func (s *arrays) Nodes(context.Context, func(*IDChunk) error) error { return nil }

func openArrays(fs vfs.FS, opt *Options, dir string) (*arrays, error) {
	s := &arrays{fs: fs, opt: opt, dir: dir, features: map[string]string{},
		members: map[string]string{}, info: Info{Format: "npy", RowIDs: true}}
	names, err := fs.List(dir)
	if err != nil {
		return nil, fmt.Errorf("ingest: list %s: %w", dir, err)
	}
	slices.Sort(names)
	if err := s.assign(names); err != nil {
		return nil, err
	}
	for _, fill := range []func() error{s.describeFeatures, s.describeLabels, s.describeSplits,
		s.describeEdges} {
		if err := fill(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// path joins a name with the directory; flags may give a path of their own.
func (s *arrays) path(name string) string {
	p := s.fs.PathJoin(s.dir, name)
	if _, err := s.fs.Stat(p); err != nil {
		if _, err := s.fs.Stat(name); err == nil {
			return name
		}
	}
	return p
}

// assign gives each file its role by its name; what has none is noted.
func (s *arrays) assign(names []string) error {
	var featureFiles []string
	for _, name := range names {
		stem, ok := strings.CutSuffix(name, ".npy")
		if !ok {
			continue
		}
		p := s.fs.PathJoin(s.dir, name)
		split, kind, _ := strings.Cut(stem, "_")
		switch {
		case stem == "edges" || stem == "edge_index" || stem == "edges_typed":
			if s.edges != "" && s.opt.Edges == "" {
				return twoCandidates("edges", s.edges, p, "--edges")
			}
			s.edges = p
		case stem == "src":
			s.src = p
		case stem == "dst":
			s.dst = p
		case stem == "weights" || stem == "edge_weight":
			s.weights = p
		case stem == "times" || stem == "edge_time":
			s.times = p
		case stem == "labels" || stem == "label" || stem == "y":
			s.labels = p
		case stem == "labels_coo":
			s.coo = p
		case stem == "splits":
			s.splits = p
		case (kind == "idx" || kind == "mask") && splitName(split) != "":
			s.members[splitName(split)] = p
		case stem == "features_indptr":
			s.features["features"] = s.fs.PathJoin(s.dir, "features")
		case strings.HasPrefix(stem, "features_"):
		case strings.HasPrefix(stem, "feat") || stem == "x":
			featureFiles = append(featureFiles, p)
		default:
			s.info.Notes = append(s.info.Notes, "not used: "+p)
		}
	}
	return s.choose(featureFiles)
}

func twoCandidates(what, a, b, flag string) error {
	return fmt.Errorf("%w: two files could be the %s: %s and %s; choose one with %s", ErrUsage,
		what, a, b, flag)
}

// choose applies the flags, and decides between several feature files.
func (s *arrays) choose(featureFiles []string) error {
	for _, f := range []struct {
		flag string
		file *string
	}{{s.opt.Edges, &s.edges}, {s.opt.Labels, &s.labels}} {
		if f.flag != "" {
			*f.file = s.path(f.flag)
		}
	}
	if s.opt.Edges != "" {
		s.src, s.dst = "", ""
	}
	switch {
	case s.opt.Features != "":
		s.features = map[string]string{"features": s.path(s.opt.Features)}
	case len(featureFiles) > 1:
		return twoCandidates("features", featureFiles[0], featureFiles[1], "--features")
	case len(featureFiles) == 1 && len(s.features) > 0:
		return twoCandidates("features", featureFiles[0], s.features["features"]+"_indptr.npy",
			"--features")
	case len(featureFiles) == 1:
		s.features["features"] = featureFiles[0]
	}
	for name, file := range s.opt.Splits {
		s.members[name] = s.path(file)
	}
	if s.splits != "" && len(s.opt.Splits) == 0 && len(s.members) > 0 {
		s.info.Notes = append(s.info.Notes, "splits are taken from "+s.splits+
			", not from the *_idx and *_mask arrays beside it")
		s.members = map[string]string{}
	}
	if len(s.opt.Splits) > 0 {
		s.splits = ""
	}
	return nil
}

func splitName(s string) string {
	switch s {
	case "train", "val", "test":
		return s
	case "valid":
		return "val"
	}
	return ""
}

// header opens an array only to look at it, and counts it among the files that will be read.
func (s *arrays) header(path string) (npy.Header, error) {
	a, err := openArray(s.fs, path, 0)
	if err != nil {
		return npy.Header{}, err
	}
	s.info.Paths = append(s.info.Paths, path)
	s.info.Bytes += a.Header.Bytes + int64(a.Count())*int64(a.ItemBytes())
	return a.Header, a.Close()
}

// setNodes takes a number of nodes from one array; all that tell one must agree.
func (s *arrays) setNodes(path string, n uint64) error {
	if s.info.Nodes != 0 && s.info.Nodes != n {
		return &BadInputError{Where: path, What: fmt.Sprintf("%d rows, but other arrays have %d", n,
			s.info.Nodes), Do: "features, labels and masks have one row for each node"}
	}
	s.info.Nodes = n
	return nil
}

func (s *arrays) describeFeatures() error {
	for name, p := range s.features {
		if _, err := s.fs.Stat(p + "_indptr.npy"); err == nil {
			if err := s.describeSparse(name, p); err != nil {
				return err
			}
			continue
		}
		h, err := s.header(p)
		if err != nil {
			return err
		}
		if len(h.Shape) == 0 || len(h.Shape) > 2 || h.Count() == 0 {
			return &BadInputError{Where: p, What: fmt.Sprintf("shape %v", h.Shape),
				Do: "features are (nodes, values)"}
		}
		if h.Fortran && len(h.Shape) == 2 {
			return &BadInputError{Where: p, What: "the array is in Fortran order",
				Do: "save numpy.ascontiguousarray(features)"}
		}
		s.info.Features = append(s.info.Features, FeatureInfo{Name: name, Dim: int(h.Cols()),
			DType: h.Descr, Rows: h.Rows()})
		if err := s.setNodes(p, h.Rows()); err != nil {
			return err
		}
	}
	return nil
}

func (s *arrays) describeSparse(name, prefix string) error {
	for _, part := range []string{"_indptr", "_indices", "_values", "_shape"} {
		if _, err := s.header(prefix + part + ".npy"); err != nil {
			return err
		}
	}
	a, err := openArray(s.fs, prefix+"_shape.npy", 0)
	if err != nil {
		return err
	}
	shape := make([]int64, 2)
	if a.Count() != 2 {
		err = &BadInputError{Where: a.path, What: "it has not two values", Do: "nodes, values"}
	} else {
		err = a.ints(shape)
	}
	if err = errors.Join(err, a.Close()); err != nil {
		return err
	}
	if shape[0] < 1 || shape[1] < 1 || shape[1] > math.MaxInt32 {
		return &BadInputError{Where: a.path, What: fmt.Sprintf("shape %v", shape)}
	}
	s.info.Features = append(s.info.Features, FeatureInfo{Name: name, Dim: int(shape[1]),
		DType: "csr", Sparse: true, Rows: uint64(shape[0])})
	return s.setNodes(a.path, uint64(shape[0]))
}

func (s *arrays) describeLabels() error {
	if s.coo != "" && s.opt.Labels == "" {
		h, err := s.header(s.coo)
		if err != nil {
			return err
		}
		if len(h.Shape) != 2 || h.Shape[1] != 2 {
			return &BadInputError{Where: s.coo, What: fmt.Sprintf("shape %v", h.Shape),
				Do: "pairs of node and label: (pairs, 2)"}
		}
		s.labels, s.info.Labels = "", &LabelInfo{Kind: "multi"}
		return nil
	}
	if s.labels == "" {
		return nil
	}
	h, err := s.header(s.labels)
	if err != nil {
		return err
	}
	s.info.Labels = &LabelInfo{Kind: "class"}
	if h.Cols() > 1 {
		s.info.Labels.Kind = "multi"
	} else if h.Kind() == 'f' {
		integral, err := s.labelsAreIntegral()
		if err != nil {
			return err
		}
		if !integral {
			s.info.Labels.Kind = "target"
		}
	}
	return s.setNodes(s.labels, h.Rows())
}

// labelsAreIntegral looks at the first float labels: whole numbers and NaN are classes.
func (s *arrays) labelsAreIntegral() (bool, error) {
	a, err := openArray(s.fs, s.labels, 0)
	if err != nil {
		return false, err
	}
	vals := make([]float32, min(a.Count(), chunkRows))
	err = a.floats(vals)
	return !slices.ContainsFunc(vals, func(v float32) bool {
		return v == v && v != float32(math.Trunc(float64(v)))
	}), errors.Join(err, a.Close())
}

func (s *arrays) describeSplits() error {
	if s.splits != "" {
		h, err := s.header(s.splits)
		if err != nil {
			return err
		}
		if len(h.Shape) == 1 {
			s.info.Splits = []string{"train", "val", "test"}
			return s.setNodes(s.splits, h.Shape[0])
		}
		if len(h.Shape) != 2 {
			return &BadInputError{Where: s.splits, What: fmt.Sprintf("shape %v", h.Shape),
				Do: "splits are (splits, nodes)"}
		}
		for k := range h.Shape[0] {
			for _, n := range []string{"train", "val", "test"} {
				s.info.Splits = append(s.info.Splits, fmt.Sprintf("%s@%d", n, k))
			}
		}
		return s.setNodes(s.splits, h.Shape[1])
	}
	for name, p := range s.members {
		h, err := s.header(p)
		if err != nil {
			return err
		}
		s.info.Splits = append(s.info.Splits, name)
		if h.Kind() == 'b' {
			if err := s.setNodes(p, h.Count()); err != nil {
				return err
			}
		}
	}
	slices.Sort(s.info.Splits)
	return nil
}

func (s *arrays) describeEdges() error {
	if s.edges == "" && (s.src == "" || s.dst == "") {
		return &BadInputError{Where: s.dir, What: "no edges",
			Do: "edges.npy, edges_typed.npy, or src.npy with dst.npy; or name them with --edges"}
	}
	if s.edges == "" {
		for _, p := range []string{s.src, s.dst} {
			h, err := s.header(p)
			if err != nil {
				return err
			}
			if s.info.Edges != 0 && s.info.Edges != h.Count() {
				return &BadInputError{Where: p, What: fmt.Sprintf("%d values, src.npy has %d",
					h.Count(), s.info.Edges)}
			}
			s.info.Edges = h.Count()
		}
	} else {
		l, err := s.edgeLayout()
		if err != nil {
			return err
		}
		s.info.Edges, s.info.Typed = l.edges, l.cols == 3
	}
	s.info.Weighted, s.info.Timed = s.weights != "", s.times != ""
	for _, p := range []string{s.weights, s.times} {
		if p == "" {
			continue
		}
		h, err := s.header(p)
		if err == nil && h.Count() != s.info.Edges {
			err = &BadInputError{Where: p, What: fmt.Sprintf("%d values for %d edges", h.Count(),
				s.info.Edges)}
		}
		if err != nil {
			return err
		}
	}
	if s.info.Edges == 0 {
		return &BadInputError{Where: s.dir, What: "the edges are empty"}
	}
	return nil
}
