package inspect

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"gdb/internal/codec"
	"gdb/layout"
	"gdb/layout/edgefile"
	"gdb/layout/listfile"
	"gdb/layout/rowfile"
)

// dumpValues is how many values of a list or row are printed.
const dumpValues = 12

// values prints the first values of a list or row, and how many there are if they are more.
func values[T any](list []T) string {
	var b strings.Builder
	for _, v := range list[:min(len(list), dumpValues)] {
		fmt.Fprintf(&b, " %v", v)
	}
	if len(list) > dumpValues {
		fmt.Fprintf(&b, " … (%d in all)", len(list))
	}
	return b.String()
}

// direction returns that of the lists in the file.
func (d *dumper) direction() layout.Direction {
	if d.kind == layout.TopologyKind(layout.Out) {
		return layout.Out
	}
	return layout.In
}

// lists prints a block of a topology file after its checksum.
func (d *dumper) lists() error {
	want := listfile.FieldsOf(d.s.Meta(), d.direction())
	shape, err := want.Shape()
	if err != nil {
		return fmt.Errorf("layout: dump %s: %w", d.f.Path, err)
	}
	c := codec.NewDec(d.b[4:])
	d.Field(4, "magic %q", c.Bytes(4))
	d.Field(8, "block %d", c.U64())
	coding := c.U8()
	d.Field(1, "codec %d", coding)
	k, err := listfile.ParseBlock(&shape, d.b)
	var l listfile.Lists
	if err == nil {
		err = shape.Decode(&k, &l)
	}
	if err != nil {
		d.Note("cannot be decoded: %v", err)
		d.Hex(d.Remaining())
		return nil
	}
	if k.Raw() {
		d.rawLists(&shape, &k, &l)
	} else {
		d.codedLists(&shape, &k, &l)
	}
	d.Zeros(d.Remaining())
	return nil
}

// codedLists prints a block of codec 1 after the codec.
func (d *dumper) codedLists(shape *listfile.Shape, k *listfile.Block, l *listfile.Lists) {
	c := codec.NewDec(d.b[d.Off():])
	d.Field(1, "flags %d", c.U8())
	d.Field(1, "bits of a first id %d", c.U8())
	d.Zeros(1)
	c.U8()
	for _, name := range []string{"first node", "lists", "entries", "position of the first entry",
		"least first id", "bits of the ends", "bits of the counts"} {
		d.Field(4, "%s %d", name, c.U32())
	}
	for _, r := range k.Regions(shape) {
		values := d.regionValues(r.Name, k, l)
		if r.Name == listfile.RegionLists {
			d.noteLists(k, l)
		}
		d.Field(r.To-r.From, "%s%s", r.Name, values)
	}
}

// regionValues prints the contents of a region of a coded block, if it is one sequence of values.
func (d *dumper) regionValues(name string, k *listfile.Block, l *listfile.Lists) string {
	switch name {
	case listfile.RegionEnds:
		ends := make([]uint32, k.Slots)
		for i := range k.Slots {
			_, ends[i] = k.Bits(i)
		}
		return ", bits:" + values(ends)
	case listfile.RegionCounts:
		return ", entries:" + values(l.Off[1:k.Slots+1])
	case "types":
		return ":" + values(l.Types[:k.Entries])
	case "weights":
		return ":" + values(l.Weights[:k.Entries])
	case "times":
		return ":" + values(l.Times[:k.Entries])
	}
	return ""
}

// noteLists prints where the lists of a coded block stand, which begin and end at any bit.
func (d *dumper) noteLists(k *listfile.Block, l *listfile.Lists) {
	for i := range k.Slots {
		list := l.Nbrs[l.Off[i]:l.Off[i+1]]
		if len(list) == 0 {
			continue
		}
		from, to := k.Bits(i)
		d.Note("node %d, bits %d to %d:%s", uint64(k.First)+uint64(i), from, to, values(list))
	}
}

// rawLists prints a block of codec 0 after the codec.
func (d *dumper) rawLists(shape *listfile.Shape, k *listfile.Block, l *listfile.Lists) {
	c := codec.NewDec(d.b[d.Off():])
	flags := c.U8()
	d.Field(1, "flags %d", flags)
	d.Zeros(2)
	c.U16()
	d.Field(4, "first node %d", c.U32())
	if flags != 0 {
		d.Field(4, "a hub: position of the first entry %d", k.Start)
	} else {
		d.Field(4, "lists %d", k.Slots)
	}
	d.Field(4, "entries %d", k.Entries)
	if flags == 0 {
		d.slots(k, l)
	}
	entries(d, "ids", listfile.IDBytes, l, k.First, l.Nbrs)
	if shape.Types {
		entries(d, "types", listfile.TypeBytes, l, k.First, l.Types)
	}
	if shape.Weights {
		entries(d, "weights", listfile.WeightBytes, l, k.First, l.Weights)
	}
	if shape.Times {
		entries(d, "times", listfile.TimeBytes, l, k.First, l.Times)
	}
}

// slots prints the directory. A run of empty lists takes one line.
func (d *dumper) slots(k *listfile.Block, l *listfile.Lists) {
	width, ids := k.RawDirectory()
	for i := uint64(0); i < uint64(k.Slots); {
		run := uint64(0)
		for i+run < uint64(k.Slots) && l.Off[i+run] == l.Off[i+run+1] {
			run++
		}
		node := uint64(k.First) + i
		if run > 1 {
			d.Field(int(run)*width, "nodes %d to %d: empty", node, node+run-1)
			i += run
			continue
		}
		d.Field(width, "node %d: %d entries to %d", node, l.Off[i+1]-l.Off[i], l.Off[i+1])
		i++
	}
	d.Zeros(ids - d.Off())
}

// entries prints the values that run parallel to the ids, one line for each list. The first list is
// of node first.
func entries[T any](d *dumper, what string, width int, l *listfile.Lists, first layout.NodeID,
	parallel []T) {
	for s, to := range l.Off[1:] {
		if list := parallel[l.Off[s]:to]; len(list) > 0 {
			d.Field(len(list)*width, "%s of node %d:%s", what, uint64(first)+uint64(s),
				values(list))
		}
	}
}

// rows prints a page of rows, after whether its checksums are right.
func (d *dumper) rows(n int64) error {
	shape, err := rowsShapeOf(d.s, d.f.Path)
	if err != nil {
		return fmt.Errorf("layout: dump %s: %w", d.f.Path, err)
	}
	unit := int64(shape.SumBytes)
	first, seed := (n-1)*int64(shape.PageBytes)/unit, layout.SumSeed(layout.KindRows,
		d.s.Meta().UUID)
	for i := int64(0); i*unit < int64(len(d.b)); i++ {
		got := rowfile.UnitSum(seed, d.b[i*unit:(i+1)*unit])
		want, err := d.storedSum(&shape, first+i)
		state := fmt.Sprintf("%08x ok", want)
		switch {
		case d.ctx.Err() != nil:
			return d.ctx.Err()
		case err != nil:
			state = fmt.Sprintf("%08x, UNKNOWN whether it is right: %v", got, err)
		case got != want:
			state = fmt.Sprintf("%08x BAD: the bytes give %08x", want, got)
		}
		d.Note("unit %d, bytes %d to %d: crc32c %s", first+i, i*unit, (i+1)*unit, state)
	}
	row, rows, of := shape.Page(n)
	for range rows {
		b := d.b[d.Off():][:of.RowBytes]
		d.Field(of.RowBytes, "row %d:%s", row, rowValues(shape.DType, of.Dim, b))
		row++
	}
	d.Zeros(d.Remaining())
	return nil
}

// rowValues prints the elements of a row.
func rowValues(dtype string, dim int, b []byte) string {
	if decode := rowfile.Decoder(dtype); decode != nil {
		row := make([]float32, dim)
		decode(row, b)
		return values(row)
	}
	if dtype == rowfile.I32 {
		row := make([]int32, dim)
		for i := range row {
			row[i] = int32(binary.LittleEndian.Uint32(b[4*i:]))
		}
		return values(row)
	}
	if dtype == rowfile.Sparse {
		var entries []string
		r := sparseRow(b)
		if err := r.Check(dim); err != nil {
			return fmt.Sprint(" is no sparse row: ", err)
		}
		for i := range r.Len() {
			entries = append(entries, fmt.Sprintf("%d:%g", r.Column(i), r.Value(i)))
		}
		return values(entries)
	}
	row := make([]string, dim)
	for i := range row {
		row[i] = fmt.Sprintf("%08b", b[i])
	}
	return values(row)
}

// edges prints a block of edges after its checksum.
func (d *dumper) edges(n int64) {
	c := codec.NewDec(d.b[4:])
	d.Field(4, "edges %d", c.U32())
	d.Field(8, "block %d", c.U64())
	spec, e := edgefile.SpecOf(d.s.Meta(), d.kind), edgefile.Edges{}
	if err := spec.DecodeBlock(d.b, uint64(n), &e); err != nil {
		d.Note("cannot be decoded: %v", err)
		d.Hex(d.Remaining())
		return
	}
	d.Field(4*e.Len(), "sources:%s", values(e.Src))
	d.Field(4*e.Len(), "destinations:%s", values(e.Dst))
	if e.Rel != nil {
		d.Field(2*e.Len(), "types:%s", values(e.Rel))
	}
	d.Zeros(d.Remaining())
}

// storedSum reads the checksum of a unit of rows from the companion file.
func (d *dumper) storedSum(shape *rowfile.Shape, unit int64) (sum uint32, err error) {
	f, err := d.s.OpenFile(d.dev, layout.SumsPath(shape.Path))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	page, err := f.ReadPage(d.ctx, layout.KindSums, d.s.Meta().UUID, unit/rowfile.SumsPerPage+1)
	if err != nil {
		return 0, err
	}
	return rowfile.SumAt(page, int(unit%rowfile.SumsPerPage)), nil
}
