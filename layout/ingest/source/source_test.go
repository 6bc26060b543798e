package source_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"testing"

	"gdb/internal/tables"
	"gdb/layout/ingest/input"
	"gdb/layout/ingest/source"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/klauspost/compress/gzip"
)

// files are the files of a test, by path.
type files map[string]any

// arr is an array file: elements of a Go type, in the order of the file.
type arr struct {
	descr string
	shape []uint64
	data  any
}

func ints(shape []uint64, v ...int64) arr { return arr{"<i8", shape, v} }

func shape(n ...uint64) []uint64 { return n }

// fortran marks an array's header.
type fortran struct{ arr }

func (a arr) bytes(t testing.TB) []byte {
	t.Helper()
	fs := vfs.NewMem()
	w, err := tables.CreateArray(fs, "a", a.descr, a.shape...)
	if err != nil {
		t.Fatal(err)
	}
	order := binary.ByteOrder(binary.LittleEndian)
	if a.descr[0] == '>' {
		order = binary.BigEndian
	}
	var b bytes.Buffer
	if err := binary.Write(&b, order, a.data); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := fs.Open("a")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	stat, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	out := make([]byte, stat.Size())
	if _, err := f.ReadAt(out, 0); err != nil {
		t.Fatal(err)
	}
	return out
}

func gz(t testing.TB, s string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(s)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// fs makes the files: text as it is or compressed if the name says so, arrays, and archives.
func (fl files) fs(t testing.TB) vfs.FS {
	t.Helper()
	fs := vfs.NewMem()
	for name, v := range fl {
		var data []byte
		switch v := v.(type) {
		case string:
			data = []byte(v)
			if strings.HasSuffix(name, ".gz") {
				data = gz(t, v)
			}
		case []byte:
			data = v
		case arr:
			data = v.bytes(t)
		case fortran:
			data = bytes.Replace(v.arr.bytes(t), []byte("'fortran_order': False"),
				[]byte("'fortran_order': True "), 1)
		case files:
			var b bytes.Buffer
			z := zip.NewWriter(&b)
			for m, a := range v {
				w, err := z.CreateHeader(&zip.FileHeader{Name: m, Method: zip.Deflate})
				if err == nil {
					_, err = w.Write(a.(arr).bytes(t))
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if err := z.Close(); err != nil {
				t.Fatal(err)
			}
			data = b.Bytes()
		}
		if err := fs.MkdirAll(path.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
		if err == nil {
			_, err = f.Write(data)
		}
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	return fs
}

func idOf(c *source.IDChunk, first uint64, i int) string {
	switch {
	case c == nil:
		return fmt.Sprint(first + uint64(i))
	case c.Text != nil:
		return string(c.Text[i])
	}
	return fmt.Sprint(c.Ints[i])
}

// dump streams all of a source into lines. It checks that every row has a position.
func dump(src source.Source) (out string, err error) {
	ctx := context.Background()
	var b strings.Builder
	err = src.Nodes(ctx, func(c *source.IDChunk) error {
		for i := range c.Len() {
			fmt.Fprintf(&b, "node %s\n", idOf(c, 0, i))
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	err = src.Edges(ctx, func(c *source.EdgeChunk) error {
		for i := range c.Len() {
			b.WriteString("edge " + edgeString(c, i) + "\n")
		}
		return nil
	})
	for _, f := range src.Info().Features {
		if err == nil {
			err = src.Features(ctx, f.Name, func(c *source.RowChunk) error {
				for i := range len(c.Rows) / f.Dim {
					fmt.Fprintf(&b, "%s %s %v\n", f.Name, idOf(c.IDs, c.First, i),
						c.Rows[i*f.Dim:(i+1)*f.Dim])
				}
				return nil
			})
		}
	}
	if err == nil {
		err = src.Labels(ctx, func(c *source.LabelChunk) error {
			for i := range max(len(c.Class), len(c.Text), len(c.Target)) {
				fmt.Fprintf(&b, "label %s %s\n", idOf(c.IDs, c.First, i), labelString(c, i))
			}
			return nil
		})
	}
	if err == nil {
		err = src.Splits(ctx, func(c *source.SplitChunk) error {
			for i := range c.IDs.Len() {
				fmt.Fprintf(&b, "%s %s\n", c.Name, idOf(&c.IDs, 0, i))
			}
			return nil
		})
	}
	return strings.ReplaceAll(b.String(), " \n", "\n"), err
}

func edgeString(c *source.EdgeChunk, i int) string {
	var s string
	if c.SrcText != nil {
		s = fmt.Sprintf("%s %s", c.SrcText[i], c.DstText[i])
	} else {
		s = fmt.Sprintf("%d %d", c.SrcInt[i], c.DstInt[i])
	}
	if c.TypeInt != nil {
		s += fmt.Sprintf(" type %d", c.TypeInt[i])
	}
	if c.TypeText != nil {
		s += fmt.Sprintf(" type %s", c.TypeText[i])
	}
	if c.Weight != nil {
		s += fmt.Sprintf(" weight %v", c.Weight[i])
	}
	if c.Time != nil {
		s += fmt.Sprintf(" time %d", c.Time[i])
	}
	if c.Split != "" {
		s += " " + c.Split
	}
	return s
}

func labelString(c *source.LabelChunk, i int) string {
	switch {
	case c.Target != nil:
		return fmt.Sprint(c.Target[i])
	case c.Text != nil:
		return string(c.Text[i])
	case c.Unknown != nil && c.Unknown[i]:
		return fmt.Sprint(c.Class[i], " unknown")
	}
	return fmt.Sprint(c.Class[i])
}

// open opens the sources, "d" if there are none.
func open(t testing.TB, fl files, opt source.Options) (source.Source, error) {
	t.Helper()
	if opt.Sources == nil && opt.Edges == "" {
		opt.Sources = []string{"d"}
	}
	return source.Open(context.Background(), fl.fs(t), &opt)
}

// lines writes the wanted dump: lines without indentation.
func lines(s string) string {
	var out strings.Builder
	for l := range strings.Lines(s) {
		if l = strings.TrimSpace(l); l != "" {
			out.WriteString(l + "\n")
		}
	}
	return out.String()
}

// sourceTest is a source, what it streams, and what Info says.
type sourceTest struct {
	name  string
	files files
	opt   source.Options
	want  string
	info  string // format, nodes, edges, flags
	note  string // part of a note
}

func infoString(i *source.Info) string {
	s := fmt.Sprintf("%s %d %d", i.Format, i.Nodes, i.Edges)
	for _, f := range []struct {
		name string
		set  bool
	}{{"text", i.TextIDs}, {"rows", i.RowIDs}, {"typed", i.Typed}, {"weighted", i.Weighted},
		{"timed", i.Timed}, {"inverse", i.AddInverse}} {
		if f.set {
			s += " " + f.name
		}
	}
	for _, f := range i.Features {
		s += fmt.Sprintf(" %s:%d:%s", f.Name, f.Dim, f.DType)
	}
	if i.Labels != nil {
		s += " " + i.Labels.Kind
	}
	return s
}

func runSources(t *testing.T, tests []sourceTest) {
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			src, err := open(t, c.files, c.opt)
			if err != nil {
				t.Fatal(err)
			}
			defer src.Close()
			for range 2 { // every stream can be read again
				got, err := dump(src)
				if err != nil {
					t.Fatal(err)
				}
				if want := lines(c.want); got != want {
					t.Fatalf("got\n%swant\n%s", got, want)
				}
			}
			if got := infoString(src.Info()); got != c.info {
				t.Errorf("info %q, want %q", got, c.info)
			}
			notes := strings.Join(src.Info().Notes, "\n")
			if !strings.Contains(notes, c.note) {
				t.Errorf("notes %q, want %q", notes, c.note)
			}
			if len(src.Info().Paths) == 0 || src.Info().Bytes == 0 {
				t.Errorf("paths %v, %d bytes", src.Info().Paths, src.Info().Bytes)
			}
		})
	}
}

// badTest is a source that is refused, when it is opened or when it is read.
type badTest struct {
	name  string
	files files
	opt   source.Options
	where string // as the error says it
	what  string // part of what and do
}

func runBad(t *testing.T, tests []badTest) {
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			src, err := open(t, c.files, c.opt)
			if err == nil {
				_, err = dump(src)
				if cerr := src.Close(); cerr != nil {
					t.Error(cerr)
				}
			}
			var bad *input.Error
			if !errors.As(err, &bad) {
				t.Fatalf("error %v, want an input.Error", err)
			}
			where, open := strings.CutSuffix(c.where, "…")
			if bad.Where != where && !(open && strings.HasPrefix(bad.Where, where)) ||
				!strings.Contains(bad.What+"; "+bad.Do, c.what) ||
				strings.Contains(bad.Error(), "\n") {
				t.Errorf("where %q, what %q, do %q; want %q, %q", bad.Where, bad.What, bad.Do,
					c.where,
					c.what)
			}
		})
	}
}

var nan32 = float32(math.NaN())

func TestArrays(t *testing.T) {
	edges := ints(shape(3, 2), 0, 1, 1, 2, 3, 0)
	want := "edge 0 1\nedge 1 2\nedge 3 0\n"
	runSources(t, []sourceTest{
		{"pairs", files{"d/edges.npy": edges}, source.Options{}, want, "npy 0 3", ""},
		{"columns", files{"d/edge_index.npy": ints(shape(2, 3), 0, 1, 3, 1, 2, 0)},
			source.Options{},
			want, "npy 0 3", ""},
		{"fortran pairs", files{"d/edges.npy": fortran{ints(shape(3, 2), 0, 1, 3, 1, 2, 0)}},
			source.Options{}, want, "npy 0 3", ""},
		{"fortran columns", files{"d/edges.npy": fortran{ints(shape(2, 3), 0, 1, 1, 2, 3, 0)}},
			source.Options{}, want, "npy 0 3", ""},
		{"big-endian", files{"d/edges.npy": arr{">u4", shape(3, 2), []uint32{0, 1, 1, 2, 3, 0}}},
			source.Options{}, want, "npy 0 3", ""},
		{"bytes", files{"d/edges.npy": arr{"|u1", shape(3, 2), []uint8{0, 1, 1, 2, 3, 0}}},
			source.Options{}, want, "npy 0 3", ""},
		{"src and dst", files{"d/src.npy": ints(shape(3), 0, 1, 3), "d/dst.npy": arr{"<i4",
			shape(3),
			[]int32{1, 2, 0}}}, source.Options{}, want, "npy 0 3", ""},
		{"typed", files{"d/edges_typed.npy": ints(shape(2, 3), 0, 1, 5, 1, 2, 6)}, source.Options{},
			"edge 0 1 type 5\nedge 1 2 type 6", "npy 0 2 typed", ""},
		{"typed columns", files{"d/edges_typed.npy": ints(shape(3, 4), 0, 1, 2, 3, 4, 5, 6, 7, 8, 9,
			8, 9)}, source.Options{},
			"edge 0 4 type 8\nedge 1 5 type 9\nedge 2 6 type 8\nedge 3 7 type 9", "npy 0 4 typed",
			""},
		{"payload", files{"d/edges.npy": edges, "d/edge_type.npy": arr{"<i2", shape(3),
			[]int16{7, 0, 7}}, "d/weights.npy": arr{"<f8", shape(3), []float64{0.5, 1, 2}},
			"d/edge_time.npy": ints(shape(3), -1, 0, 1)}, source.Options{},
			`edge 0 1 type 7 weight 0.5 time -1
			edge 1 2 type 0 weight 1 time 0
			edge 3 0 type 7 weight 2 time 1`, "npy 0 3 typed weighted timed", ""},
		{"explicit", files{"d/edges.npy": ints(shape(1, 2), 8, 9), "d/other.npy": edges},
			source.Options{Sources: []string{"d"}, Edges: "other.npy"}, want, "npy 0 3",
			"not used: edges.npy"},
		{"files", files{"d/edges.npy": edges, "d/features.npy": arr{"<f4", shape(4, 1),
			[]float32{1, 2, 3, 4}}}, source.Options{Sources: []string{"d/edges.npy",
			"d/features.npy"}},
			want + "features 0 [1]\nfeatures 1 [2]\nfeatures 2 [3]\nfeatures 3 [4]",
			"npy 4 3 rows features:1:f32", ""},
		{"archive", files{"d/g.npz": files{"edge_index.npy": ints(shape(2, 3), 0, 1, 3, 1, 2, 0),
			"x.npy": arr{"<f2", shape(4, 1), []uint16{0x3c00, 0, 0, 0x3e00}},
			"y.npy": ints(shape(4, 1), 0, 1, -1, 1), "train_mask.npy": arr{"|b1", shape(4),
				[]bool{true, false, false, true}}}}, source.Options{},
			want + `features 0 [1]
			features 1 [0]
			features 2 [0]
			features 3 [1.5]
			label 0 0
			label 1 1
			label 2 -1
			label 3 1
			train 0
			train 3`, "npy 4 3 rows features:1:f16 class", ""},
		{"node types", files{"d/edges.npy": edges, "d/node_type.npy": ints(shape(9), 0, 0, 0, 0,
			0, 0,
			0, 0, 0)}, source.Options{}, want, "npy 9 3 rows", "not used: node_type.npy"},
		{"number of nodes", files{"d/edges.npy": edges, "d/num_nodes.npy": ints(nil, 7)},
			source.Options{}, want, "npy 7 3 rows", ""},
	})
}

func TestArrayRows(t *testing.T) {
	with := func(more files) files {
		more["d/edges.npy"] = ints(shape(1, 2), 0, 1)
		return more
	}
	csr := files{"d/features_indptr.npy": ints(shape(4), 0, 2, 2, 3),
		"d/features_indices.npy": arr{"<i4", shape(3), []int32{2, 0, 1}},
		"d/features_values.npy":  arr{"<f8", shape(3), []float64{1, 2, 3}},
		"d/features_shape.npy":   ints(shape(2), 3, 3)}
	runSources(t, []sourceTest{
		{"csr", with(csr), source.Options{}, `edge 0 1
			features 0 [2 0 1]
			features 1 [0 0 0]
			features 2 [0 3 0]`, "npy 3 1 rows features:3:f64", ""},
		{"one of several features", with(files{"d/features.npy": arr{"<f4", shape(2, 1),
			[]float32{1, 2}}, "d/feat256.npy": arr{"|u1", shape(2, 2), []uint8{1, 2, 3, 4}}}),
			source.Options{Features: "feat256.npy"}, `edge 0 1
			feat256 0 [1 2]
			feat256 1 [3 4]`, "npy 2 1 rows feat256:2:u8", "not used: features.npy"},
		{"NaN allowed", with(files{"d/features.npy": arr{"<f4", shape(2, 1), []float32{1, nan32}}}),
			source.Options{AllowNaN: true}, "edge 0 1\nfeatures 0 [1]\nfeatures 1 [NaN]",
			"npy 2 1 rows features:1:f32", ""},
		{"fortran vector", with(files{"d/features.npy": fortran{arr{"<f4", shape(2, 1),
			[]float32{1, 2}}}}), source.Options{}, "edge 0 1\nfeatures 0 [1]\nfeatures 1 [2]",
			"npy 2 1 rows features:1:f32", ""},
		{"float classes", with(files{"d/labels.npy": arr{"<f4", shape(4), []float32{1, nan32, 0,
			7}}}),
			source.Options{}, "edge 0 1\nlabel 0 1\nlabel 1 -1\nlabel 2 0\nlabel 3 7",
			"npy 4 1 rows class", ""},
		{"targets", with(files{"d/label.npy": arr{"<f8", shape(3), []float64{1, math.NaN(),
			0.25}}}),
			source.Options{}, "edge 0 1\nlabel 0 1\nlabel 1 NaN\nlabel 2 0.25",
			"npy 3 1 rows target",
			"numbers to predict"},
		{"pairs", with(files{"d/labels_coo.npy": ints(shape(3, 2), 0, 4, 0, 5, 1, 4)}),
			source.Options{}, "edge 0 1\nlabel 0 4\nlabel 0 5\nlabel 1 4", "npy 0 1 multi", ""},
		{"multi-hot", with(files{"d/labels.npy": arr{"<f4", shape(5, 3), []float32{1, 0, 1, nan32,
			1, -1, 0, 0, 0, nan32, nan32, nan32, 0, 0, -1}}}), source.Options{},
			`edge 0 1
			label 0 0
			label 0 2
			label 1 0 unknown
			label 1 1
			label 1 2 unknown
			label 2 -2
			label 4 2 unknown`, "npy 5 1 rows multi", ""},
		{"splits", with(files{"d/splits.npy": arr{"|u1", shape(2, 3), []uint8{1, 2, 3, 0, 1, 1}},
			"d/train_idx.npy": ints(shape(1), 0)}), source.Options{}, `edge 0 1
			train@0 0
			val@0 1
			test@0 2
			train@1 1
			train@1 2`, "npy 3 1 rows", "train_idx.npy and the like"},
		{"one split", with(files{"d/splits.npy": arr{"|u1", shape(3), []uint8{1, 2, 3}}}),
			source.Options{}, "edge 0 1\ntrain 0\nval 1\ntest 2", "npy 3 1 rows", ""},
		{"lists and masks", with(files{"d/train_idx.npy": arr{"<u4", shape(2), []uint32{2, 0}},
			"d/valid_mask.npy": arr{"|u1", shape(3), []uint8{0, 1, 0}},
			"d/test_idx.npy":   arr{"|b1", shape(3), []bool{false, false, true}},
			"d/lcc_mask.npy":   arr{"|u1", shape(3), []uint8{0, 1, 0}}}), source.Options{},
			"edge 0 1\ntrain 2\ntrain 0\nval 1\ntest 2", "npy 3 1 rows", "not used: lcc_mask.npy"},
		{"masks in columns", with(files{"d/train_mask.npy": arr{"|b1", shape(2, 2), []bool{true,
			false,
			true, true}}}), source.Options{}, "edge 0 1\ntrain@0 0\ntrain@0 1\ntrain@1 1",
			"npy 2 1 rows", ""},
		{"given splits", with(files{"d/train_idx.npy": ints(shape(1), 0),
			"d/train20.npy": ints(shape(1),
				1), "x/val.csv": "0\n1\n", "d/label.npy": ints(shape(2), 0, 1)}),
			source.Options{Splits: map[string]string{"train": "train20.npy", "val": "x/val.csv"}},
			"edge 0 1\nlabel 0 0\nlabel 1 1\ntrain 1\nval 0\nval 1", "npy 2 1 rows class",
			"not used: train_idx.npy"},
	})
}

func TestBadArrays(t *testing.T) {
	edges := ints(shape(3, 2), 0, 1, 1, 2, 2, 0)
	three := arr{"<f4", shape(3, 2), []float32{1, 2, 3, 4, 5, 6}}
	with := func(name string, v any) files { return files{"d/edges.npy": edges, "d/" + name: v} }
	none := source.Options{}
	sparse := func(ptr, idx arr) files {
		return files{"d/edges.npy": edges, "d/features_indptr.npy": ptr,
			"d/features_indices.npy": idx,
			"d/features_values.npy":  arr{"<f4", idx.shape, make([]float32, idx.shape[0])},
			"d/features_shape.npy":   ints(shape(2), 3, 4)}
	}
	runBad(t, []badTest{
		{"negative id", files{"d/edges.npy": ints(shape(3, 2), 0, 1, 1, -3, 2, 0)}, none,
			"d/edges.npy row 1", "destination -3 is negative"},
		{"negative in columns", files{"d/edges.npy": ints(shape(2, 3), 0, -1, 3, 1, 2, 0)}, none,
			"d/edges.npy column 1", "source -1 is negative"},
		{"too large", files{"d/edges.npy": ints(shape(3, 2), 0, 1, 1, 2, 3, 0),
			"d/features.npy": three},
			none, "d/edges.npy row 2",
			"source 3 is out of range; there are 3 nodes, by d/features.npy"},
		{"in dst", files{"d/src.npy": ints(shape(2), 0, 1), "d/dst.npy": ints(shape(2), 0, -1)},
			none,
			"d/dst.npy row 1", "destination -1 is negative"},
		{"negative type", files{"d/edges_typed.npy": ints(shape(2, 3), 0, 1, 0, 1, 0, -1)}, none,
			"d/edges_typed.npy row 1", "type -1 is negative"},
		{"float edges", files{"d/edges.npy": arr{"<f4", shape(1, 2), []float32{1, 2}}}, none,
			"d/edges.npy", "the dtype is f32, want integers"},
		{"ambiguous", files{"d/edges.npy": ints(shape(2, 2), 0, 1, 1, 0)}, none, "d/edges.npy",
			"src.npy and dst.npy"},
		{"ambiguous types", files{"d/edges_typed.npy": ints(shape(3, 3), 0, 1, 1, 0, 0, 0, 0, 0,
			0)},
			none, "d/edges_typed.npy", "src.npy and dst.npy"},
		{"typed in edges", files{"d/edges.npy": ints(shape(4, 3), 0, 1, 1, 0, 0, 0, 0, 0, 0, 1, 1,
			1)},
			none, "d/edges.npy", "edges_typed.npy"},
		{"no edges", files{"d/edges.npy": ints(shape(0, 2))}, none, "d/edges.npy", "no edges"},
		{"nothing there", files{"d/labels.npy": ints(shape(2), 0, 1)}, none, "d",
			"no edges were found"},
		{"two tables", files{"d/likes.csv": "a,b\n", "d/people.csv": "a\n"}, none, "d",
			"no edges were found; it has the files d/likes.csv, d/people.csv"},
		{"nothing at all", files{"d/README.md": "x"}, none, "d", "no edges were found"},
		{"src alone", files{"d/src.npy": ints(shape(2), 0, 1)}, none, "d", "no edges were found"},
		{"two edges", files{"d/edges.npy": edges, "d/edges_typed.npy": ints(shape(1, 3), 0, 1, 0)},
			none, "d",
			"2 arrays could be the edges: edges.npy, edges_typed.npy; choose one with --edges"},
		{"two features", files{"d/edges.npy": edges, "d/features.npy": three,
			"d/feat256.npy": three},
			none, "d", "feat256.npy, features.npy; choose one with --features"},
		{"two labels", files{"d/edges.npy": edges, "d/label.npy": three, "d/labels.npy": three},
			none,
			"d", "--labels"},
		{"missing flag", with("features.npy", three), source.Options{Features: "featurs.npy"},
			"--features featurs.npy", "did you mean features.npy?"},
		{"empty", with("labels.npy", []byte{}), none, "d/labels.npy", "the file is empty"},
		{"truncated", with("features.npy", three.bytes(t)[:150]), none, "d/features.npy",
			"truncated"},
		{"trailing", with("features.npy", append(three.bytes(t), 0)), none, "d/features.npy",
			"trailing bytes"},
		{"raw", with("features.npy", make([]byte, 100)), none, "d/features.npy", "numpy.save"},
		{"truncated archive", files{"d/g.npz": []byte("PK\x03\x04")}, none, "d/g.npz", "truncated"},
		{"fortran features", with("features.npy", fortran{three}), none, "d/features.npy",
			"ascontiguousarray"},
		{"fortran splits", with("splits.npy", fortran{ints(shape(2, 3), 0, 0, 0, 0, 0, 0)}), none,
			"d/splits.npy", "Fortran"},
		{"NaN", with("features.npy", arr{"<f4", shape(3, 2), []float32{1, 2, 3, 4, 5, nan32}}),
			none,
			"d/features.npy row 2", "feature 1 is NaN; mend it, or allow it with --allow-nan"},
		{"infinity after rounding", with("features.npy", arr{"<f8", shape(3, 1), []float64{1, 1e300,
			1}}), none, "d/features.npy row 1", "+Inf"},
		{"weight", with("weights.npy", arr{"<f4", shape(3), []float32{1, nan32, 2}}), none,
			"d/weights.npy row 1", "not a finite number"},
		{"weights too short", with("weights.npy", arr{"<f4", shape(2), []float32{1, 2}}), none,
			"d/weights.npy", "one value for each edge"},
		{"float times", with("edge_time.npy", arr{"<f4", shape(3), []float32{1, 2, 3}}), none,
			"d/edge_time.npy", "want integers"},
		{"rows disagree", files{"d/edges.npy": edges, "d/features.npy": three, "d/labels.npy": ints(
			shape(4), 0, 0, 0, 0)}, none, "d/labels.npy", "4 nodes here, but 3 in d/features.npy"},
		{"class", with("labels.npy", ints(shape(3), 0, -2, 1)), none, "d/labels.npy row 1",
			"label -2 is not a class"},
		{"multi-hot", with("labels.npy", ints(shape(3, 2), 0, 1, 0, 2, 0, 0)), none,
			"d/labels.npy row 1", "column 1 is 2"},
		{"label without a node", files{"d/edges.npy": edges, "d/features.npy": three,
			"d/labels_coo.npy": ints(shape(2, 2), 0, 1, 3, 1)}, none, "d/labels_coo.npy row 1",
			"label of node 3 is out of range"},
		{"role", with("splits.npy", arr{"|u1", shape(2, 3), []uint8{0, 1, 2, 3, 4, 0}}), none,
			"d/splits.npy row 1 column 1", "4 is not a role"},
		{"member", files{"d/edges.npy": edges, "d/features.npy": three, "d/train_idx.npy": ints(
			shape(2), 0, 3)}, none, "d/train_idx.npy row 1", "node 3 is out of range"},
		{"negative member", with("train_idx.npy", ints(shape(2), 0, -3)), none,
			"d/train_idx.npy row 1", "node -3 is negative"},
		{"mask among lists", files{"d/edges.npy": edges, "d/features.npy": three,
			"d/train_idx.npy": arr{"|u1", shape(3), []uint8{1, 0, 1}}}, none,
			"d/train_idx.npy", "it is a mask"},
		{"unsigned time", with("times.npy", arr{"<u8", shape(3), []uint64{1, 1 << 63, 2}}), none,
			"d/times.npy row 1", "time 9223372036854775808 is too large"},
		{"float member", with("train_idx.npy", three), none, "d/train_idx.npy", "list of node ids"},
		{"csr column", sparse(ints(shape(4), 0, 1, 1, 2), ints(shape(2), 0, 4)), none,
			"d/features_indptr.npy row 2", "column 4 is out of range"},
		{"csr order", sparse(ints(shape(4), 0, 2, 1, 2), ints(shape(2), 0, 1)), none,
			"d/features_indptr.npy row 1", "entries 2 to 1"},
		{"csr end", sparse(ints(shape(4), 0, 1, 1, 1), ints(shape(2), 0, 1)), none,
			"d/features_indptr.npy row 3", "there are 2 indices"},
		{"csr begin", sparse(ints(shape(4), 1, 1, 1, 2), ints(shape(2), 0, 1)), none,
			"d/features_indptr.npy row 0", "not 0"},
		{"csr short", sparse(ints(shape(3), 0, 1, 2), ints(shape(2), 0, 1)), none,
			"d/features_indptr.npy", "one more than rows"},
		{"objects", with("labels.npy", bytes.Replace(three.bytes(t), []byte("'<f4'"),
			[]byte("'|O' "),
			1)), none, "d/labels.npy", "pickled"},
	})
}

// TestLongArrays crosses the bounds of chunks in every layout.
func TestLongArrays(t *testing.T) {
	const n = 200_001
	pairs, columns := make([]int64, 2*n), make([]int64, 2*n)
	for i := range n {
		a, b := int64(i%977), int64(i*7%991)
		pairs[2*i], pairs[2*i+1], columns[i], columns[n+i] = a, b, a, b
	}
	roles := make([]uint8, 3*n)
	for i := range roles {
		roles[i] = uint8(i / 1000 % 4)
	}
	for name, edges := range map[string]any{"pairs": ints(shape(n, 2), pairs...),
		"columns": ints(shape(2, n), columns...),
		"archive": files{"edges.npy": ints(shape(2, n), columns...)}} {
		fl := files{"d/splits.npy": arr{"|u1", shape(3, n), roles}, "d/edges.npy": edges}
		if name == "archive" {
			delete(fl, "d/edges.npy")
			fl["d/e.npz"] = edges
		}
		src, err := open(t, fl, source.Options{})
		if err != nil {
			t.Fatal(err)
		}
		i := 0
		err = src.Edges(context.Background(), func(c *source.EdgeChunk) error {
			for k := range c.Len() {
				if int64(c.SrcInt[k]) != columns[i] || int64(c.DstInt[k]) != columns[n+i] {
					return fmt.Errorf("edge %d is %d %d", i, c.SrcInt[k], c.DstInt[k])
				}
				i++
			}
			return nil
		})
		if err != nil || i != n {
			t.Errorf("%s: %d edges, error %v", name, i, err)
		}
		got := make([]uint8, 3*n)
		err = src.Splits(context.Background(), func(c *source.SplitChunk) error {
			role, column, _ := strings.Cut(c.Name, "@")
			k := int(column[0] - '0')
			for _, id := range c.IDs.Ints {
				got[uint64(k*n)+id] = uint8(1 + slices.Index([]string{"train", "val", "test"},
					role))
			}
			return nil
		})
		if err != nil || !slices.Equal(got, roles) {
			t.Errorf("%s: splits differ, error %v", name, err)
		}
		if err := src.Close(); err != nil {
			t.Error(err)
		}
	}
}
