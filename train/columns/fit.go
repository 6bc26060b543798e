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
	t := &Type{Name: f.of.Name, Vectors: vectorsOf(f.of)}
	for _, meta := range f.of.Columns {
		why := f.of.Roles[meta.Name]
		switch {
		case why == "" && meta.Type != columnfile.Float64 && meta.Type != columnfile.Bool &&
			keyName.MatchString(meta.Name):
			why = "a key by its name"
		case why == "" && meta.Type == columnfile.Sparse:
			why = "sparse"
		}
		if why == "" {
			c, err := f.column(ctx, meta)
			if err != nil {
				return nil, err
			}
			if c != nil {
				t.Columns = append(t.Columns, *c)
				continue
			}
			why = "one value"
		}
		t.Left = append(t.Left, fmt.Sprintf("%s (%s)", meta.Name, why))
	}
	return t, nil
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

// column measures a column; nil if all rows have one value.
func (f *fitting) column(ctx context.Context, meta kv.TableColumn) (c *Column, err error) {
	r, err := columnfile.Open(ctx, f.store, f.dev, meta, f.budget)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	of := &measure{gaps: meta.Nulls > 0, words: map[string]int{}}
	err = r.Scan(ctx, 0, meta.Rows, nil, func(at uint64, v *columnfile.Values) error {
		for i := range v.Rows {
			if f.rows != nil && !f.rows.Contains(uint32(f.of.First+at)+uint32(i)) || v.Null(i) {
				continue
			}
			of.add(meta.Type, v, i)
		}
		return ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	return of.column(meta), nil
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
