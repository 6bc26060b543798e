package columns

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/columnfile"

	"github.com/RoaringBitmap/roaring/v2"
)

const (
	// wordsMost is how many words get a value each; with more of them all are hashed.
	wordsMost = 64
	// hashBuckets are the values of hashed words and of texts.
	hashBuckets = 64
	// textWords is how many words the values of a column have on average that are texts.
	textWords = 2.5
)

// Fit chooses how the columns of all types are encoded. Of the type that the labels are of, it
// measures the rows of train; other types have no splits, and are measured whole. Columns with a
// role (a label, a split, a key) and those named as keys are left out. It reads each column once,
// in memory that does not grow with the rows.
func Fit(ctx context.Context, s *layout.Store, dev blockdev.Device, train *roaring.Bitmap,
	budget *mem.Budget) (*Encoders, error) {
	m := s.Meta()
	e := &Encoders{}
	for i := range m.NodeTypes {
		t := &m.NodeTypes[i]
		f := &fitting{store: s, dev: dev, budget: budget, of: t}
		if m.Labels != nil && m.Labels.OfType == t.Name {
			f.rows = train
		}
		fitted, err := f.fit(ctx)
		if err != nil {
			return nil, fmt.Errorf("columns of %s: %w", t.Name, err)
		}
		e.Types = append(e.Types, *fitted)
	}
	return e, nil
}

// fitting measures the columns of a type.
type fitting struct {
	store  *layout.Store
	dev    blockdev.Device
	budget *mem.Budget
	of     *kv.NodeTypeMeta
	rows   *roaring.Bitmap // the nodes that are measured; nil for all
}

// keyName matches names of columns that are keys.
var keyName = regexp.MustCompile(`(?i)(^|_)(id|key|uuid|guid)$|[a-z]I[dD]$`)

func (f *fitting) fit(ctx context.Context) (*Type, error) {
	t, found := &Type{Name: f.of.Name, Vectors: vectorsOf(f.of)}, map[string]*Column{}
	for _, group := range f.groups() {
		columns, err := f.measure(ctx, group)
		if err != nil {
			return nil, err
		}
		for i, c := range columns {
			found[group[i].Name] = c
		}
	}
	for _, meta := range f.of.Columns {
		why := f.leftOut(meta)
		if why == "" {
			if c := found[meta.Name]; c != nil {
				t.Columns = append(t.Columns, *c)
				continue
			}
			why = "one value"
		}
		t.Left = append(t.Left, fmt.Sprintf("%s (%s)", meta.Name, why))
	}
	return t, nil
}

// leftOut says why a column is not encoded; "" if it is.
func (f *fitting) leftOut(c kv.TableColumn) string {
	why := f.of.Roles[c.Name]
	switch {
	case why == "" && c.Type != columnfile.Float64 && c.Type != columnfile.Bool &&
		keyName.MatchString(c.Name):
		return "a key by its name"
	case why == "" && c.Type == columnfile.Sparse:
		return "sparse"
	}
	return why
}

// groups returns the columns that are measured together: those whose values are in features, so
// that each of their rows is read once, and each other by itself.
func (f *fitting) groups() (all [][]kv.TableColumn) {
	all = [][]kv.TableColumn{nil}
	for _, c := range f.of.Columns {
		switch {
		case f.leftOut(c) != "":
		case c.Shared.Path != "":
			all[0] = append(all[0], c)
		default:
			all = append(all, []kv.TableColumn{c})
		}
	}
	return all
}

// vectorsOf lists the vectors among the stored features of a type: others are made of columns.
func vectorsOf(t *kv.NodeTypeMeta) (all []Vector) {
	at := 0
	for _, f := range t.Features {
		if f.Dim > 0 {
			all = append(all, Vector{Name: f.Name, First: at, Dim: f.Dim})
		}
		at += max(f.Dim, 1)
	}
	return all
}

// measure measures columns, together: nil of one of which all rows have one value.
func (f *fitting) measure(ctx context.Context, metas []kv.TableColumn) (of []*Column, err error) {
	features := columnfile.NewFeatures(f.store, f.dev, f.budget)
	var readers []*columnfile.Reader
	defer func() {
		for _, r := range readers {
			err = errors.Join(err, r.Close())
		}
		err = errors.Join(err, features.Close())
	}()
	var all []*measure
	for _, meta := range metas {
		r, err := features.Open(ctx, meta)
		if err != nil {
			return nil, err
		}
		readers = append(readers, r)
		all = append(all, &measure{gaps: meta.Nulls > 0, words: map[string]int{}})
	}
	each := uint64(columnfile.RowsTogether)
	if len(metas) == 1 {
		each = f.of.Nodes
	}
	for first := uint64(0); first < f.of.Nodes; first += each {
		for k, r := range readers {
			if err := f.scan(ctx, r, first, min(each, f.of.Nodes-first), all[k]); err != nil {
				return nil, err
			}
		}
	}
	for k, m := range all {
		of = append(of, m.column(metas[k]))
	}
	return of, nil
}

// scan measures some rows of a column.
func (f *fitting) scan(ctx context.Context, r *columnfile.Reader, first, n uint64,
	of *measure) error {
	return r.Scan(ctx, first, n, nil, func(at uint64, v *columnfile.Values) error {
		for i := range v.Rows {
			if f.rows != nil && !f.rows.Contains(uint32(f.of.First+at)+uint32(i)) || v.Null(i) {
				continue
			}
			of.add(r.Meta().Type, v, i)
		}
		return ctx.Err()
	})
}

// measure is what is measured of the values of a column.
type measure struct {
	gaps     bool
	rows     float64
	mean, m2 float64 // Welford: the squares of the differences to the mean
	words    map[string]int
	many     bool    // there are more words than wordsMost
	parts    float64 // words in the values
	within   bool    // a time is not midnight
}

// add takes a value into account.
func (m *measure) add(typ string, v *columnfile.Values, i int) {
	m.rows++
	if typ == columnfile.String {
		m.addWord(v.Strings.At(i))
		return
	}
	x := valueOf(typ, v, i)
	if math.IsNaN(x) || math.IsInf(x, 0) {
		m.rows, m.gaps = m.rows-1, true
		return
	}
	m.within = m.within || typ == columnfile.Timestamp && v.Ints[i]%microsOfDay != 0
	d := x - m.mean
	m.mean += d / m.rows
	m.m2 += d * (x - m.mean)
}

func (m *measure) addWord(b []byte) {
	m.parts += float64(len(strings.Fields(string(b))))
	if m.many {
		return
	}
	m.words[string(b)]++
	m.many = len(m.words) > wordsMost
}

// column chooses how the column is encoded.
func (m *measure) column(meta kv.TableColumn) *Column {
	c := &Column{Name: meta.Name, Gaps: m.gaps}
	if meta.Type == columnfile.String {
		return m.text(c)
	}
	c.Mean, c.Deviation = m.mean, math.Sqrt(m.m2/max(m.rows, 1))
	// A column whose values are equal may differ from their mean by rounding.
	if c.Deviation <= 1e-12*math.Abs(c.Mean) {
		if c.Deviation = 1; !m.gaps {
			return nil
		}
	}
	switch {
	case meta.Type == columnfile.Bool:
		c.Kind, c.Mean, c.Deviation = Truth, 0, 1
	case meta.Type == columnfile.Timestamp && m.within:
		c.Kind = Time
	case meta.Type == columnfile.Timestamp, meta.Type == columnfile.Date:
		c.Kind = Day
	default:
		c.Kind = Number
	}
	return c
}

// text chooses how strings are encoded.
func (m *measure) text(c *Column) *Column {
	switch {
	case m.rows == 0, len(m.words) == 1 && !m.gaps:
		return nil
	case m.many && m.parts > textWords*m.rows:
		c.Kind, c.Buckets = Text, hashBuckets
		return c
	case m.many:
		c.Kind, c.Buckets = Hashed, hashBuckets
		return c
	}
	c.Kind = Words
	for w := range m.words {
		c.Words = append(c.Words, w)
	}
	slices.SortFunc(c.Words, func(a, b string) int {
		return cmp.Or(cmp.Compare(m.words[b], m.words[a]), cmp.Compare(a, b))
	})
	return c
}
