package columnar

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"gdb/internal/mem"
	"gdb/layout/ingest/input"
)

// arrowFile reads Arrow: files, of which Feather is one, and streams.
type arrowFile struct {
	name    string
	file    *ipcFile
	columns []column
	bound   int64 // bytes that a batch and the dictionaries may take; 0 is any
	// dicts are the values of the dictionaries of columns that are read, by column, and dictAt is
	// the next one to be read.
	dicts  map[int]*dictionary
	dictAt int
}

// dictionary is the values that a column refers to.
type dictionary struct {
	cells
	bytes int64
}

func openArrow(name string, d *disk, bound int64) (*arrowFile, error) {
	f, err := openIPC(d, d.size)
	if err != nil {
		return nil, err
	}
	t := &arrowFile{name: name, file: f, bound: bound}
	for i, field := range f.Fields {
		t.columns = append(t.columns, arrowColumn(i, field))
	}
	return t, nil
}

// arrowColumn finds what the values of a column are.
func arrowColumn(i int, f *ipcField) column {
	c := column{name: f.Name, leaf: i}
	if isArrowList(f) {
		c.list, f = true, f.Children[0]
		if isArrowList(f) {
			c.form, c.what = others, "lists of lists"
			return c
		}
	}
	switch f.Type {
	case ipcInt:
		if c.form = integers; !f.Signed {
			c.form = unsigned
		}
	case ipcDuration, ipcTime:
		c.form = integers
	case ipcFloat:
		if c.form = float32s; f.Bits == 64 {
			c.form = float64s
		}
	case ipcBool:
		c.form = truths
	case ipcDate, ipcTimestamp:
		c.form, c.unit = times, f.Unit
	case ipcText, ipcBinary, ipcLargeText, ipcLargeBinary, ipcTextView, ipcBinaryView, ipcNull:
		c.form = texts
	default:
		c.form, c.what = others, f.Type.String()
	}
	switch number := c.form <= float64s || c.form == times; {
	case number && ipcWidth(f.Bits) == 0:
		c.form, c.what = others, fmt.Sprintf("%s of %d bits", f.Type, f.Bits)
	case f.Dict != nil && (f.Type == ipcNull || ipcWidth(f.Dict.Bits) == 0):
		c.form, c.what = others, fmt.Sprintf("dictionary of %s", f.Type)
	}
	return c
}

// isArrowList reports whether a column has lists, of one kind of elements.
func isArrowList(f *ipcField) bool {
	return (f.Type == ipcList || f.Type == ipcLargeList || f.Type == ipcFixedList) &&
		f.Dict == nil && len(f.Children) == 1 && f.Children[0].Type != ipcNull
}

func (t *arrowFile) rows() int64 { return t.file.Rows }

// pandas returns nothing: notes beside the schema of Arrow are not read.
func (t *arrowFile) pandas() string { return "" }

// checkMemory finds nothing yet: batches are held to the bound when they are opened.
func (t *arrowFile) checkMemory([]int) error { return nil }

// openGroup begins a batch.
func (t *arrowFile) openGroup(i int, cursors []*cursor) (rows int64, err error) {
	if i == len(t.file.Batches) {
		return 0, io.EOF
	}
	if i == 0 {
		t.dicts, t.dictAt = map[int]*dictionary{}, 0
	}
	if err := t.openBatch(i, cursors); err != nil {
		return 0, inBatch(i, err)
	}
	return t.file.Batches[i].Rows, nil
}

// inBatch returns an error that names the record batch in which something is wrong.
func inBatch(i int, err error) error {
	var e *input.Error
	if errors.As(err, &e) {
		return err
	}
	return fmt.Errorf("record batch %d: %w", i, err)
}

func (t *arrowFile) openBatch(i int, cursors []*cursor) error {
	for ; t.dictAt < len(t.file.Dicts) && t.file.Dicts[t.dictAt].Before <= i; t.dictAt++ {
		if err := t.readDictionary(t.file.Dicts[t.dictAt], cursors); err != nil {
			return err
		}
	}
	place := t.file.Batches[i]
	columns, err := t.file.columns(place, t.file.Fields, false)
	if err != nil {
		return err
	}
	bytes := int64(0)
	for _, d := range t.dicts {
		bytes += d.bytes
	}
	for _, c := range cursors {
		n, err := unpackedBytes(columns[c.leaf])
		if err != nil {
			return err
		}
		bytes += n
		values := &arrowValues{batch: i, of: columns[c.leaf], dict: t.dicts[c.leaf]}
		if err := c.setGroup(values); err != nil {
			return err
		}
	}
	return t.checkBytes(i, bytes, place.Rows)
}

// checkBytes returns an error if what is read of a batch takes more memory than it may.
func (t *arrowFile) checkBytes(i int, bytes, rows int64) error {
	if t.bound <= 0 || bytes <= t.bound {
		return nil
	}
	return &pageError{input.Wrong(t.name, "give more --memory, or write smaller batches: "+
		"df.to_feather(FILE, chunksize=65536)", "record batch %d, of %d rows, and its "+
		"dictionaries take %s, and %s may be used", i, rows, mem.FormatSize(bytes),
		mem.FormatSize(t.bound))}
}

// unpackedBytes returns the memory that a column takes while its batch is read.
func unpackedBytes(c *ipcColumn) (sum int64, err error) {
	for _, b := range c.Buffers {
		n, err := b.Unpacked()
		if err != nil {
			return 0, err
		}
		if sum += n; sum < 0 {
			return 0, errors.New("its buffers have more bytes than there are")
		}
	}
	for _, child := range c.Children {
		n, err := unpackedBytes(child)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// valueBytes is the memory of a value of a dictionary, besides its text.
const valueBytes = 48

// readDictionary reads the values that columns which are read refer to.
func (t *arrowFile) readDictionary(p ipcPlace, cursors []*cursor) error {
	for _, c := range cursors {
		field := t.file.Fields[c.leaf]
		if c.list {
			field = field.Children[0]
		}
		if field.Dict == nil || field.Dict.ID != p.ID || c.form == others {
			continue
		}
		columns, err := t.file.columns(p, []*ipcField{field}, true)
		if err != nil {
			return err
		}
		values := columns[0]
		packed, err := unpackedBytes(values)
		if err != nil {
			return err
		}
		into := &cursor{column: c.column}
		if p.Rows > math.MaxInt32 {
			return fmt.Errorf("a dictionary has %d values", p.Rows)
		}
		bytes := packed + p.Rows*valueBytes
		if err := t.checkBytes(0, bytes, p.Rows); err != nil {
			return err
		}
		if err := (&arrowValues{of: values}).plain(into, values, 0, p.Rows); err != nil {
			return err
		}
		d := t.dicts[c.leaf]
		if d == nil || !p.Adds {
			d = &dictionary{}
			t.dicts[c.leaf] = d
		}
		d.bits, d.nulls = append(d.bits, into.bits...), append(d.nulls, into.nulls...)
		d.texts = append(d.texts, into.texts...)
		d.bytes += p.Rows*valueBytes + int64(len(into.arena))
	}
	return nil
}

// arrowValues reads a column of a batch, from its first row on.
type arrowValues struct {
	batch int
	of    *ipcColumn
	dict  *dictionary
	row   int64
	ends  []int64 // of lists, scratch
}

func (a *arrowValues) close() error { return nil }

// fit halves the rows until their texts are small enough. Those of a dictionary are not copied.
func (a *arrowValues) fit(c *cursor, n, limit int) (int, error) {
	for ; n > 1; n /= 2 {
		bytes, err := a.textBytes(c, int64(n))
		if err != nil {
			return 1, inBatch(a.batch, fmt.Errorf("column %q: %w", c.name, err))
		}
		if bytes <= int64(limit) {
			break
		}
	}
	return n, nil
}

// textBytes returns the bytes of the texts in the next n rows.
func (a *arrowValues) textBytes(c *cursor, n int64) (int64, error) {
	of, row := a.of, a.row
	if c.list {
		inside := of.Children[0]
		if of.Type == ipcFixedList {
			row, n = row*int64(of.Size), n*int64(of.Size)
		} else {
			first, last, err := a.span(of, row, n, of.Type == ipcLargeList)
			if err != nil {
				return 0, err
			}
			row, n = first, last-first
		}
		of = inside
	}
	if of.Dict != nil || row < 0 || n < 0 || row+n > of.Rows {
		return 0, nil // or an error, when they are taken
	}
	switch of.Type {
	case ipcText, ipcBinary, ipcLargeText, ipcLargeBinary:
		first, last, err := a.span(of, row, n, of.Type == ipcLargeText || of.Type == ipcLargeBinary)
		return last - first, err
	case ipcTextView, ipcBinaryView:
		b, err := of.Buffers[1].Read(row*viewBytes, n*viewBytes)
		sum := int64(0)
		for ; len(b) >= viewBytes; b = b[viewBytes:] {
			sum += int64(binary.LittleEndian.Uint32(b))
		}
		return sum, err
	}
	return 0, nil
}

// viewBytes is the size of a view: a short text, or the place of a text that stands elsewhere.
const viewBytes = 16

// span returns where the first of n texts or lists begins and the last one ends.
func (a *arrowValues) span(of *ipcColumn, row, n int64, large bool) (first, last int64, err error) {
	if of.Rows == 0 {
		return 0, 0, nil
	}
	begin, err := a.offsets(of, row, 0, large)
	if err == nil {
		first = begin[0]
		begin, err = a.offsets(of, row+n, 0, large)
	}
	if err != nil {
		return 0, 0, err
	}
	return first, begin[0], nil
}

func (a *arrowValues) take(c *cursor, n int) (err error) {
	switch {
	case c.form == others: // a look at the first rows shows the type
		for i := range n {
			c.addText([]byte("<" + c.what + ">"))
			c.ends = append(c.ends, i+1)
		}
	case c.list:
		err = a.lists(c, int64(n))
	default:
		err = a.values(c, a.of, a.row, int64(n))
	}
	a.row += int64(n)
	if err != nil {
		return inBatch(a.batch, fmt.Errorf("column %q: %w", c.name, err))
	}
	return nil
}

// lists reads n rows of lists: their ends, and the elements of all.
func (a *arrowValues) lists(c *cursor, n int64) error {
	inside := a.of.Children[0]
	first, total := a.row*int64(a.of.Size), int64(0)
	if a.of.Type == ipcFixedList {
		if a.of.Size < 0 || a.row+n > a.of.Rows || (a.row+n)*int64(a.of.Size) > inside.Rows {
			return errShortLists
		}
		for i := range n {
			c.ends = append(c.ends, int(i+1)*a.of.Size)
		}
		total = n * int64(a.of.Size)
	} else {
		ends, err := a.offsets(a.of, a.row, n, a.of.Type == ipcLargeList)
		if err != nil {
			return err
		}
		first = ends[0]
		for _, end := range ends[1:] {
			c.ends = append(c.ends, int(end-first))
		}
		if total = ends[n] - first; first+total > inside.Rows {
			return errShortLists
		}
	}
	if err := a.values(c, inside, first, total); err != nil {
		return err
	}
	return a.dropNullLists(c, n)
}

// errShortLists says that lists have fewer elements than they say.
var errShortLists = errors.New("its lists have more elements than there are")

// dropNullLists removes what stands in the place of lists that are not there: some writers leave
// elements behind them.
func (a *arrowValues) dropNullLists(c *cursor, n int64) error {
	valid, err := validity(a.of, a.row, n)
	if err != nil || valid == nil {
		return err
	}
	kept, begin := 0, 0
	for i := range c.ends {
		end := c.ends[i]
		if isSet(valid, a.row, int64(i)) {
			kept += c.move(kept, begin, end)
		}
		c.ends[i], begin = kept, end
	}
	c.truncate(kept)
	return nil
}

// offsets returns the n+1 places where n texts or lists begin and the last one ends, in order.
func (a *arrowValues) offsets(of *ipcColumn, row, n int64, large bool) ([]int64, error) {
	width := int64(4)
	if large {
		width = 8
	}
	if of.Rows == 0 {
		return append(a.ends[:0], 0), nil
	}
	b, err := of.Buffers[1].Read(row*width, (n+1)*width)
	if err != nil {
		return nil, err
	}
	a.ends = a.ends[:0]
	for i := range n + 1 {
		end := int64(binary.LittleEndian.Uint32(b[i*width:]))
		if large {
			end = int64(binary.LittleEndian.Uint64(b[i*width:]))
		}
		if end < 0 || end > 1<<62 || i > 0 && end < a.ends[i-1] {
			return nil, errors.New("its values lie out of order")
		}
		a.ends = append(a.ends, end)
	}
	return a.ends, nil
}

// validity returns the bits that say which of n rows from row on have a value; nil if all have. The
// first byte begins with the bits of the rows before row in the same byte.
func validity(of *ipcColumn, row, n int64) ([]byte, error) {
	if of.Nulls == 0 || of.Buffers[0].Empty() || n == 0 {
		return nil, nil
	}
	return of.Buffers[0].Read(row/8, (row+n+7)/8-row/8)
}

func isSet(bits []byte, row, i int64) bool {
	at := row%8 + i
	return bits[at/8]>>(at%8)&1 != 0
}

// values reads n rows of values, which may be in a dictionary.
func (a *arrowValues) values(c *cursor, of *ipcColumn, row, n int64) error {
	if of.Dict == nil {
		return a.plain(c, of, row, n)
	}
	width := int64(ipcWidth(of.Dict.Bits))
	b, err := of.Buffers[1].Read(row*width, n*width)
	if err != nil {
		return err
	}
	return eachValue(c, of, row, n, func(i int64) error {
		at := integerAt(b[i*width:], int(width), of.Dict.Signed)
		if a.dict == nil || at < 0 || at >= int64(a.dict.len()) {
			return fmt.Errorf("value %d is not in its dictionary", at)
		}
		if c.isText() {
			c.texts = append(c.texts, a.dict.texts[at])
		} else {
			c.bits, c.nulls = append(c.bits, a.dict.bits[at]), append(c.nulls, a.dict.nulls[at])
		}
		return nil
	})
}

// eachValue lets add append the value of each of n rows that has one; the others are null.
func eachValue(c *cursor, of *ipcColumn, row, n int64, add func(i int64) error) error {
	valid, err := validity(of, row, n)
	if err != nil {
		return err
	}
	for i := range n {
		if valid != nil && !isSet(valid, row, i) {
			c.addNulls(1)
			continue
		}
		if err := add(i); err != nil {
			return err
		}
	}
	return nil
}

// plain reads n rows of values that stand in the column.
func (a *arrowValues) plain(c *cursor, of *ipcColumn, row, n int64) error {
	if row < 0 || row+n > of.Rows {
		return fmt.Errorf("it has %d rows", of.Rows)
	}
	first := c.len()
	var err error
	switch of.Type {
	case ipcNull:
		c.addNulls(int(n))
		return nil
	case ipcText, ipcBinary, ipcLargeText, ipcLargeBinary:
		err = a.texts(c, of, row, n)
	case ipcTextView, ipcBinaryView:
		return a.views(c, of, row, n)
	case ipcBool:
		var b []byte
		if b, err = of.Buffers[1].Read(row/8, (row+n+7)/8-row/8); err == nil {
			for i := range n {
				c.addBits(truth(isSet(b, row, i)))
			}
		}
	default:
		err = numbers(c, of, row, n)
	}
	if err != nil {
		return err
	}
	valid, err := validity(of, row, n)
	if err != nil || valid == nil {
		return err
	}
	for i := range n {
		if !isSet(valid, row, i) {
			c.setNull(first + int(i))
		}
	}
	return nil
}

// numbers reads integers, floats and times.
func numbers(c *cursor, of *ipcColumn, row, n int64) error {
	width := ipcWidth(of.Bits)
	b, err := of.Buffers[1].Read(row*int64(width), n*int64(width))
	if err != nil {
		return err
	}
	for i := range int(n) {
		at := b[i*width:]
		switch {
		case of.Type != ipcFloat:
			c.bits = append(c.bits, integerAt(at, width, of.Signed || of.Type != ipcInt))
		case width == 2:
			c.bits = append(c.bits, floatBits(halfFloat(binary.LittleEndian.Uint16(at))))
		case width == 4:
			c.bits = append(c.bits,
				floatBits(math.Float32frombits(binary.LittleEndian.Uint32(at))))
		default:
			c.bits = append(c.bits, int64(binary.LittleEndian.Uint64(at)))
		}
	}
	c.nulls = append(c.nulls, make([]bool, n)...)
	return nil
}

// truth returns 1 for true.
func truth(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

// integerAt returns the integer in the first width bytes of b.
func integerAt(b []byte, width int, signed bool) int64 {
	u := uint64(0)
	for i := range width {
		u |= uint64(b[i]) << (8 * i)
	}
	if shift := 64 - 8*width; signed {
		return int64(u) << shift >> shift
	}
	return int64(u)
}

// halfFloat returns the value of a float of 16 bits.
func halfFloat(h uint16) float32 {
	sign, exponent, fraction := uint32(h>>15)<<31, uint32(h>>10&31), uint32(h&1023)
	switch exponent {
	case 0:
		v := float32(fraction) / (1 << 24)
		return math.Float32frombits(math.Float32bits(v) | sign)
	case 31:
		return math.Float32frombits(sign | 255<<23 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+112)<<23 | fraction<<13)
}

// texts reads texts that stand one after the other.
func (a *arrowValues) texts(c *cursor, of *ipcColumn, row, n int64) error {
	ends, err := a.offsets(of, row, n, of.Type == ipcLargeText || of.Type == ipcLargeBinary)
	if err != nil || n == 0 {
		return err
	}
	first := ends[0]
	b, err := of.Buffers[2].Read(first, ends[n]-first)
	if err != nil {
		return err
	}
	for i := range n {
		c.addText(b[ends[i]-first : ends[i+1]-first])
	}
	return nil
}

// views reads texts of up to 12 bytes in place, and longer ones from where their view points to.
func (a *arrowValues) views(c *cursor, of *ipcColumn, row, n int64) error {
	const inPlace = 12
	b, err := of.Buffers[1].Read(row*viewBytes, n*viewBytes)
	if err != nil {
		return err
	}
	return eachValue(c, of, row, n, func(i int64) error {
		v := b[i*viewBytes : (i+1)*viewBytes]
		size := int64(binary.LittleEndian.Uint32(v))
		if size <= inPlace {
			c.addText(v[4 : 4+size])
			return nil
		}
		in := 2 + int64(binary.LittleEndian.Uint32(v[8:]))
		if in >= int64(len(of.Buffers)) {
			return errors.New("a text is in a buffer that is not there")
		}
		t, err := of.Buffers[in].Read(int64(binary.LittleEndian.Uint32(v[12:])), size)
		if err != nil {
			return err
		}
		c.addText(t)
		return nil
	})
}
