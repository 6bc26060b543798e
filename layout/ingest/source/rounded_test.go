package source_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"gdb/layout/ingest/source"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/parquet-go/parquet-go"
)

// weighed are edges 0 to 1 with weights of a type, as files of columns.
type weighed[T any] struct {
	Src    int64 `parquet:"src"`
	Dst    int64 `parquet:"dst"`
	Weight T     `parquet:"weight"`
}

func parquetWeights[T any](t *testing.T, weights ...T) []byte {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[weighed[T]](&b)
	for _, x := range weights {
		if _, err := w.Write([]weighed[T]{{0, 1, x}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func arrowWeights(t *testing.T, weights ...uint64) []byte {
	t.Helper()
	id := arrow.PrimitiveTypes.Int64
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{
		{Name: "src", Type: id}, {Name: "dst", Type: id},
		{Name: "weight", Type: arrow.PrimitiveTypes.Uint64}}, nil))
	for _, x := range weights {
		b.Field(0).(*array.Int64Builder).Append(0)
		b.Field(1).(*array.Int64Builder).Append(1)
		b.Field(2).(*array.Uint64Builder).Append(x)
	}
	var out bytes.Buffer
	w, err := ipc.NewFileWriter(&out, ipc.WithSchema(b.Schema()))
	if err == nil {
		err = w.Write(b.NewRecordBatch())
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// weightArrays are three edges with an array of weights.
func weightArrays(descr string, weights any) files {
	return files{"d/edges.npy": ints(shape(3, 2), 0, 1, 0, 1, 0, 1),
		"d/edge_weight.npy": arr{descr, shape(3), weights}}
}

// TestRoundedWeights: each kind of source says which weights float32 holds as another number, with
// the first and what becomes of it; and no weight is infinite in silence.
func TestRoundedWeights(t *testing.T) {
	text := func(rows string) files { return files{"d/edges.csv": "src,dst,weight\n" + rows} }
	ogb := func(weights string) files {
		return files{"d/raw/edge.csv.gz": "0,1\n0,1\n0,1\n", "d/raw/num-node-list.csv.gz": "2\n",
			"d/raw/num-edge-list.csv.gz": "3\n", "d/raw/edge_weight.csv.gz": weights}
	}
	for name, c := range map[string]struct {
		files files
		want  string // how many, and the first; or an error
	}{
		"text": {text("0,1,0.1\n0,1,16777217\n0,1,-16777219\n"),
			"2, d/edges.csv line 3: 16777217 -> 16777216"},
		"text with a point": {text("0,1,16777217.0\n"),
			"1, d/edges.csv line 2: 16777217.0 -> 16777216"},
		"text, rounded by float64": {text("0,1,9007199254740993\n"),
			"1, d/edges.csv line 2: 9007199254740993 -> 9007199254740992"},
		"text of many digits": {text("0,1,100000000000000000001\n"),
			"1, d/edges.csv line 2: 100000000000000000001 -> 100000002004087734272"},
		"text near zero": {text("0,1,1e-60\n0,1,1e-40\n"), "2, d/edges.csv line 2: 1e-60 -> 0"},
		"text as it is": {text("0,1,0.1\n0,1,16777216\n0,1,1e20\n0,1,-007\n0,1,0\n0,1,1e-37\n"),
			"0, "},
		"text too large": {text("0,1,1\n0,1,1e300\n"),
			`d/edges.csv line 3: column "weight" is "1e300", not a finite number of float32`},
		"Parquet, int64": {files{"d/edges.parquet": parquetWeights[int64](t, 1, 16777217)},
			"1, d/edges.parquet row 1: 16777217 -> 16777216"},
		"Parquet, double": {files{"d/edges.parquet": parquetWeights(t, 0.1, 1e20, 16777217, 1e-60)},
			"2, d/edges.parquet row 2: 16777217 -> 16777216"},
		"Parquet, float": {files{"d/edges.parquet": parquetWeights[float32](t, 0.1, 1e30)}, "0, "},
		"Parquet, too large": {files{"d/edges.parquet": parquetWeights(t, 1, 1e300)},
			`d/edges.parquet row 1: column "weight" is "1e+300", not a finite number of float32`},
		"Arrow": {files{"d/edges.feather": arrowWeights(t, 7, 1<<64-1)},
			"1, d/edges.feather row 1: 18446744073709551615 -> 18446744073709551616"},
		"arrays of int64": {weightArrays("<i8", []int64{1, -16777217, 1 << 62}),
			"1, d/edge_weight.npy row 1: -16777217 -> -16777216"},
		"arrays of uint32": {weightArrays("<u4", []uint32{1, 2, 1<<32 - 1}),
			"1, d/edge_weight.npy row 2: 4294967295 -> 4294967296"},
		"arrays, rounded by float64": {weightArrays("<i8", []int64{1, 1<<53 + 1, 1<<63 - 1}),
			"2, d/edge_weight.npy row 1: 9007199254740993 -> 9007199254740992"},
		"arrays of float64": {weightArrays("<f8", []float64{0.1, 16777217, 1e-60}),
			"2, d/edge_weight.npy row 1: 16777217 -> 16777216"},
		"arrays of float32": {weightArrays("<f4", []float32{0.1, 1e30, 1e-40}), "0, "},
		"arrays too large": {weightArrays("<f8", []float64{0.1, 1e300, 1}),
			"d/edge_weight.npy row 1: weight 1e+300 is not a finite number of float32"},
		"text, bad rows are not counted": {files{
			"d/edges.csv": "src,dst,weight,time\n0,1,16777217,x\n0,1,16777219,5\n0,1,y,5\n"},
			"1, d/edges.csv line 3: 16777219 -> 16777220"},
		"OGB": {ogb("0.1\n1e-60\n16777217\n"), "2, d/raw/edge_weight.csv.gz line 2: 1e-60 -> 0"},
		"OGB, too large": {ogb("0.1\n1\n1e300\n"),
			`d/raw/edge_weight.csv.gz line 3: field 1 is "1e300", not a finite number of float32`},
	} {
		t.Run(name, func(t *testing.T) {
			got, skipped := "", int64(0)
			if strings.Contains(name, "bad rows") {
				skipped = 2
			}
			src, err := open(t, c.files, source.Options{SkipBad: skipped})
			if err == nil {
				var all source.RoundedWeights
				err = src.Edges(context.Background(), func(c *source.EdgeChunk) error {
					if all.Count == 0 {
						all.First = c.Rounded.First
					}
					all.Count += c.Rounded.Count
					return nil
				})
				got = fmt.Sprintf("%d, %s", all.Count, all.First)
			}
			if err != nil {
				got = err.Error()
			}
			if got != c.want && (err == nil || !strings.HasPrefix(got, c.want)) {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		})
	}
}
