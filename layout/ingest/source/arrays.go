package source

import (
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"gdb/internal/mem"
	"gdb/internal/message"
	"gdb/internal/tables"
	"gdb/layout/ingest/input"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// arraySet is what a set of array files and archives holds, by stem.
type arraySet struct {
	*parts
	list []*namedArray
}

// namedArray is an array that was found. Files are opened when they get a role.
type namedArray struct {
	stem, name string
	archive    string // the file of a member, whose name is not one
	array      *tables.Array
	used       bool
}

// The names that roles go by.
var (
	edgeStems    = []string{"edges", "edge_index", "edge", "edges_typed"}
	labelStems   = []string{"labels", "label", "node_label", "node_labels", "y", "labels_coo"}
	weightStems  = []string{"weights", "edge_weight", "edge_weights"}
	timeStems    = []string{"times", "edge_time", "edge_times"}
	typeStems    = []string{"edge_type", "edge_types"}
	countStems   = []string{"num_nodes", "num_nodes_list"}
	nodeStems    = []string{"node_type", "node_types"} // one row for each node
	featureStems = regexp.MustCompile(
		`^(x|(node_)?(feat|feats|feature|features)([-_.]?[0-9a-z]+)*)$`)
	sparseParts = []string{"_indptr", "_indices", "_values", "_shape"}
)

// openArrays opens a directory of arrays, or array files.
func openArrays(ctx context.Context, fs vfs.FS, opt *Options, dir string,
	files []string) (Source, error) {
	s := &arraySet{parts: newParts(fs, opt, "npy", dir)}
	err := inOrder(func() error { return checkFlags(opt, ofArrays) },
		func() error { return s.describeNodes(ctx, files) }, s.describeSplits, s.describeEdges)
	if err != nil {
		return nil, errors.Join(input.AsError(err), s.Close())
	}
	s.noteUnused()
	return s.parts, nil
}

// describeNodes collects the arrays of files, and finds the features and labels of nodes.
func (s *arraySet) describeNodes(ctx context.Context, files []string) error {
	return inOrder(func() error { return s.collect(files) }, s.describeCounts, s.describeFeatures,
		func() error { return s.describeLabels(ctx) })
}

// collect lists the arrays of files: array files, and members of archives.
func (s *arraySet) collect(files []string) error {
	slices.Sort(files)
	for _, f := range files {
		switch path.Ext(f) {
		case ".npy":
			base := s.fs.PathBase(f)
			s.list = append(s.list, &namedArray{stem: strings.TrimSuffix(base, ".npy"), name: f})
		case ".npz":
			if err := s.collectArchive(f); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *arraySet) collectArchive(file string) error {
	z, err := tables.OpenArchive(s.fs, file)
	if err != nil {
		return input.Missing(file, err)
	}
	s.closers = append(s.closers, z)
	for _, a := range z.Arrays {
		s.list = append(s.list, &namedArray{stem: a.Stem, name: a.Name, archive: file, array: a})
	}
	return nil
}

// open gives an array a role.
func (s *arraySet) open(n *namedArray) (*tables.Array, error) {
	if n.array == nil {
		a, err := tables.OpenArray(s.fs, n.name)
		if err != nil {
			return nil, input.Missing(n.name, err)
		}
		n.array = a
	}
	if !n.used {
		n.used = true
		file := n.name
		if n.archive != "" {
			file = n.archive
		}
		s.use(file, n.array.StoredBytes)
	}
	return n.array, nil
}

// find returns the arrays that match.
func (s *arraySet) find(match func(stem string) bool) (found []*namedArray) {
	for _, n := range s.list {
		if match(n.stem) {
			found = append(found, n)
		}
	}
	return found
}

// one opens the array with one of these stems, or returns nil. Two are an error that names flag.
func (s *arraySet) one(what, flag string, stems ...string) (*tables.Array, error) {
	found := s.find(func(stem string) bool { return slices.Contains(stems, stem) })
	switch len(found) {
	case 0:
		return nil, nil
	case 1:
		return s.open(found[0])
	}
	return nil, s.several(what, flag, found)
}

func (s *arraySet) several(what, flag string, found []*namedArray) error {
	names := make([]string, len(found))
	for i, n := range found {
		names[i] = s.fs.PathBase(n.name)
	}
	do := "remove all but one"
	if flag != "" {
		do = fmt.Sprintf("choose one with %s %s", flag, names[0])
	}
	where := s.dir
	if where == "" {
		where = found[0].name
	}
	return input.Wrong(where, do, "%d arrays could be the %s: %s", len(found), what,
		strings.Join(names, ", "))
}

// given opens the array that a flag names: a file or member found already, or any file.
func (s *arraySet) given(flag, value string) (*tables.Array, error) {
	for _, n := range s.list {
		if value == n.name || value == s.fs.PathBase(n.name) || value == n.stem ||
			strings.HasSuffix(n.name, ":"+value) {
			return s.open(n)
		}
	}
	p := s.locate(value)
	if _, err := s.fs.Stat(p); oserror.IsNotExist(err) {
		e := &input.Error{Where: flag + " " + value, What: "there is no such file"}
		var names []string
		for _, n := range s.list {
			names = append(names, s.fs.PathBase(n.name))
		}
		if w := message.Nearest(s.fs.PathBase(value), names); w != "" {
			e.Do = "did you mean " + w + "?"
		}
		return nil, e
	}
	if textName.MatchString(s.fs.PathBase(p)) {
		return nil, input.Wrong(flag+" "+value,
			"save it as .npy, or give all of them as text with ids",
			"it is text, but other files are arrays")
	}
	n := &namedArray{stem: strings.TrimSuffix(s.fs.PathBase(p), ".npy"), name: p}
	s.list = append(s.list, n)
	return s.open(n)
}

// noteUnused names the arrays that have no role.
func (s *arraySet) noteUnused() {
	var names []string
	for _, n := range s.list {
		if !n.used {
			names = append(names, s.fs.PathBase(n.name))
		}
	}
	if len(names) > 0 {
		s.note("not used: %s", strings.Join(names, ", "))
	}
}

// describeCounts reads num_nodes, and takes the length of arrays that have a row for each node.
func (s *arraySet) describeCounts() error {
	a, err := s.one("number of nodes", "", countStems...)
	if err != nil {
		return err
	}
	if a != nil {
		n, err := readInts(a, 1)
		if err != nil {
			return err
		}
		if err := s.setNodes(a.Name, n[0]); err != nil {
			return err
		}
	}
	for _, n := range s.find(func(stem string) bool { return slices.Contains(nodeStems, stem) }) {
		a := n.array
		if a == nil {
			if a, err = tables.OpenArray(s.fs, n.name); err != nil {
				return input.Missing(n.name, err)
			}
		}
		if len(a.Shape) != 1 {
			continue
		}
		if err := s.setNodes(a.Name, a.Shape[0]); err != nil {
			return err
		}
	}
	return nil
}

func wrongShape(a *tables.Array, want string) error {
	return input.Wrong(a.Name, "want "+want, "the shape is %s", a.ShapeString())
}

func wrongType(a *tables.Array, want string) error {
	return input.Wrong(a.Name, "convert the array with numpy.astype", "the dtype is %s, want %s",
		a.DType, want)
}

func fortran(a *tables.Array) error {
	return input.Wrong(a.Name, "save numpy.ascontiguousarray of it",
		"the array is in Fortran order")
}

// arrayStreams are arrays that are read beside each other; one that is not wanted is nil.
type arrayStreams []*tables.Stream

// close closes the streams that are open.
func (s arrayStreams) close() error {
	var errs []error
	for _, stream := range s {
		if stream != nil {
			errs = append(errs, stream.Close())
		}
	}
	return errors.Join(errs...)
}

// eachElements calls fn with runs of whole rows of cols elements, at most chunk rows each. The
// bytes are little-endian and valid during the call.
func eachElements(ctx context.Context, a *tables.Array, cols int64, chunk int,
	fn func(first int64, rows int, b []byte) error) (err error) {
	s, err := a.Stream(0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for first := int64(0); s.Left() > 0; {
		n := int(min(int64(chunk), s.Left()/cols))
		b, err := s.Next(ctx, n*int(cols))
		if err != nil {
			return err
		}
		if err := fn(first, n, b); err != nil {
			return err
		}
		first += int64(n)
	}
	return nil
}

// eachInts calls fn with runs of rows of integers. negative is the index of the first that is below
// 0, or -1.
func eachInts(ctx context.Context, a *tables.Array, cols int64, chunk int,
	fn func(first int64, ints []uint64, negative int) error) error {
	var ints []uint64
	return eachElements(ctx, a, cols, chunk, func(first int64, rows int, b []byte) error {
		ints = mem.Sized(ints, rows*int(cols))
		return fn(first, ints, a.DType.IDs(ints, b, 0, 1))
	})
}

// readInts reads a whole small array of want integers.
func readInts(a *tables.Array, want int) ([]int64, error) {
	if !a.DType.Integer() {
		return nil, wrongType(a, "integers")
	}
	if a.Elements() != int64(want) {
		return nil, wrongShape(a, fmt.Sprintf("%d values", want))
	}
	out := make([]int64, want)
	err := eachInts(context.Background(), a, 1, want, func(_ int64, ints []uint64, bad int) error {
		if bad >= 0 {
			return input.Wrong(a.Name, "", "%d is negative", int64(ints[bad]))
		}
		for i, v := range ints {
			out[i] = int64(v)
		}
		return nil
	})
	return out, err
}
