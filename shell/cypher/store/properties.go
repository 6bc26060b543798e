package store

import (
	"context"
	"errors"
	"slices"
	"sync"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/columnfile"
	"gdb/layout/edgetable"
	"gdb/shell/cypher/temporal"
	"gdb/shell/cypher/value"
	"gdb/shell/exec"
)

// properties reads columns. Those are read a block at a time, and blocks are kept.
type properties struct {
	s       *store
	mu      sync.Mutex         // of columns and tables
	columns map[string]*column // by path
	tables  map[int]*edgetable.Table
	list    inList
	labels  *exec.Labels
	row     []float32       // of features
	warned  map[string]bool // properties that no node has
}

func newProperties(s *store) properties {
	return properties{s: s, columns: map[string]*column{}, tables: map[int]*edgetable.Table{},
		list:   inList{held: mem.NewAccount(s.g.Budget, "a list of neighbors")},
		warned: map[string]bool{}}
}

// Close closes all columns.
func (p *properties) Close() error {
	var errs []error
	for _, c := range p.columns {
		c.held.Release()
		errs = append(errs, c.Reader.Close())
	}
	p.list.held.Release()
	for _, t := range p.tables {
		errs = append(errs, t.Close())
	}
	return errors.Join(errs...)
}

// column is an open column with the blocks that were read last.
type column struct {
	*columnfile.Reader
	blocks map[uint64]*columnfile.Values
	held   mem.Account
}

const (
	// blocksMost is how many blocks of a column are kept.
	blocksMost = 256
	// sharedRows is how many rows are read together of a column whose values are in features.
	sharedRows = 256
)

// at returns the value of a row.
func (c *column) at(ctx context.Context, row uint64) (any, error) {
	per := uint64(c.BlockRows)
	if c.Shared.Path != "" { // whole rows of features are read for a value
		per = min(per, sharedRows)
	}
	n := row / per
	v := c.blocks[n]
	if v == nil {
		if len(c.blocks) == blocksMost {
			clear(c.blocks)
			c.held.Release()
		}
		v = &columnfile.Values{}
		err := c.Scan(ctx, n*per, min(per, c.Rows-n*per), nil,
			func(_ uint64, got *columnfile.Values) error {
				v.Append(got, 0, got.Rows)
				return nil
			})
		if err != nil {
			return nil, err
		}
		size := 64 + 8*int64(len(v.Ints)+len(v.Floats)+len(v.Valid)) + 4*int64(len(v.Strings.Off)) +
			int64(len(v.Strings.Bytes))
		if err := c.held.Add(size); err != nil {
			return nil, err
		}
		c.blocks[n] = v
	}
	return cell(c.Type, v, int(row-n*per)), nil
}

// cell returns row i of values of a type.
func cell(typ string, v *columnfile.Values, i int) any {
	if v.Null(i) {
		return nil
	}
	switch typ {
	case columnfile.Int64:
		return v.Ints[i]
	case columnfile.Float64:
		return v.Floats[i]
	case columnfile.Bool:
		return v.Ints[i] != 0
	case columnfile.String:
		return string(v.Strings.At(i))
	case columnfile.Date:
		return temporal.FromEpochDay(v.Ints[i])
	case columnfile.Timestamp:
		return temporal.FromEpochMicros(v.Ints[i])
	}
	return nil
}

// open opens a column, once. Any goroutine may call it.
func (p *properties) open(ctx context.Context, m kv.TableColumn) (*column, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.columns[m.Path]; c != nil {
		return c, nil
	}
	g := p.s.g
	r, err := columnfile.Open(ctx, g.Store, g.Dev, m, g.Budget)
	if err != nil {
		return nil, err
	}
	c := &column{Reader: r, blocks: map[uint64]*columnfile.Values{},
		held: mem.NewAccount(g.Budget, "column "+m.Name)}
	p.columns[m.Path] = c
	return c, nil
}

// NodeProp returns a property of a node: a column of its type's table; the external id as id; the
// label to be learned as label.
func (s *store) NodeProp(n int64, key string) (any, error) {
	if s.meta.Typed() {
		t := &s.meta.NodeTypes[s.meta.TypeOf(layout.NodeID(n))]
		if t.IsID(key) {
			return s.id(n)
		}
		for _, m := range t.Columns {
			if m.Name != key || m.Type == columnfile.Sparse {
				continue
			}
			c, err := s.props.open(s.ctx, m)
			if err != nil {
				return nil, err
			}
			return c.at(s.ctx, uint64(n)-t.First)
		}
	}
	switch {
	case key == "id":
		return s.id(n)
	case key == "label" && s.meta.Labels != nil:
		return s.label(layout.NodeID(n))
	case !s.meta.Typed() && len(s.meta.Features) > 0:
		of := s.meta.Features[0]
		if k, ok := s.meta.FeatureColumns(of).Index(key); ok {
			return s.feature(layout.NodeID(n), of, k)
		}
	}
	if !s.props.warned[key] && !s.isProperty(key) {
		s.props.warned[key] = true
		s.warnName("property", key, s.propertyNames())
	}
	return nil, nil
}

// feature returns a column of the features, which it reads a whole row for.
func (s *store) feature(n layout.NodeID, of kv.RowsMeta, k int) (any, error) {
	rows, err := s.g.Rows(s.ctx, of)
	if err != nil {
		return nil, err
	}
	if len(s.props.row) == 0 {
		s.props.row = make([]float32, of.Dim)
	}
	err = rows.Gather(s.ctx, []layout.NodeID{n}, nil, s.props.row)
	return float64(s.props.row[k]), err
}

// propertyNames returns the names of columns and what else is a property, without features.
func (s *store) propertyNames() []string {
	names := []string{"id"}
	if s.meta.Labels != nil {
		names = append(names, "label")
	}
	for _, t := range s.meta.NodeTypes {
		if t.KeyName != "" {
			names = append(names, t.KeyName)
		}
		for _, c := range t.Columns {
			names = append(names, c.Name)
		}
	}
	return names
}

// isProperty reports whether nodes of any type have a property, so that others lack it.
func (s *store) isProperty(key string) bool { return slices.Contains(s.propertyNames(), key) }

// label returns the label that training learns.
func (s *store) label(n layout.NodeID) (v any, err error) {
	if s.props.labels == nil {
		s.props.labels = exec.NewLabels(s.x.Operator("labels", "", -1, -1))
		s.root.Inputs = append(s.root.Inputs, s.props.labels.Operator)
	}
	l := s.props.labels
	err = l.Each(s.ctx, []layout.NodeID{n}, func(_ int, row []byte) error {
		v, err = l.Text(n, row)
		if f, ok := v.(float32); ok {
			v = float64(f)
		}
		return err
	})
	return v, err
}

// NodeProps returns all properties of a node.
func (s *store) NodeProps(n int64) (value.Map, error) {
	keys := []string{"id"}
	if s.meta.Labels != nil {
		keys = append(keys, "label")
	}
	if s.meta.Typed() {
		for _, m := range s.meta.NodeTypes[s.meta.TypeOf(layout.NodeID(n))].Columns {
			keys = append(keys, m.Name)
		}
	}
	out := value.Map{}
	for _, key := range keys {
		v, err := s.NodeProp(n, key)
		if err != nil {
			return nil, err
		}
		if v != nil {
			out[key] = v
		}
	}
	return out, nil
}
