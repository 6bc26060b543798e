package columnfile

import (
	"encoding/binary"
	"errors"
	"fmt"

	"gdb/internal/codec"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Spec says what a column holds.
type Spec struct {
	UUID kv.UUID
	Name string
	Path string // relative to the store, for the metadata
	Type string
	Dim  int // of sparse vectors; 0 for other types
	// Shared is the feature that has the same values, rounded to float32, of a column of float64:
	// blocks that follow from it are not stored. Its Path is empty for none.
	Shared kv.FeatureAt
}

// How many rows a block has is chosen by the first rows of a column: as many as are stored in
// blockBytes, so that a row that is read alone costs one read of about 4 KiB. A disk takes 9 µs for
// a random read of that, 17 for 16 KiB. Of rows that are compressed a block has zippedBytes, since
// all of a block must be decompressed for a row.
const (
	sampleRows  = rowsMost
	sampleBytes = 1 << 20
	rowsMost    = 8192
	blockBytes  = layout.PageBytes
	zippedBytes = 2 * layout.PageBytes
)

// Writer writes a column in the order of its rows. Besides 2 MiB of a layout.FileWriter it takes
// some blocks of memory, 0.4 MiB for compression, and up to 8 MiB for a dictionary of strings; 8
// bytes for 169 blocks are the only memory that grows with the number of rows.
type Writer struct {
	column
	out    *layout.FileWriter
	code   *encoder
	size   int64
	held   Values // rows that are not in a block yet
	block  bounds
	all    bounds
	page   page
	pages  []uint64 // their places
	end    end
	blocks uint64
}

// NewWriter creates a file. The caller calls Finish or Abort.
func NewWriter(fs vfs.FS, path string, spec Spec) (*Writer, error) {
	c, err := newColumn(kv.TableColumn{Name: spec.Name, Path: spec.Path, Type: spec.Type,
		Dim: spec.Dim, Ones: spec.Type == Sparse, Shared: spec.Shared}, spec.UUID)
	if err != nil {
		return nil, fmt.Errorf("layout: write %s: %w", path, err)
	}
	w := &Writer{column: c}
	if w.code, err = newEncoder(&w.column); err != nil {
		return nil, err
	}
	if w.out, err = layout.CreateFile(fs, path); err != nil {
		return nil, err
	}
	h := codec.Header{Kind: layout.KindColumn, UUID: spec.UUID, Fields: w.fields()}
	if err := w.write(h.Encode()); err != nil {
		return nil, errors.Join(err, w.Abort())
	}
	return w, nil
}

func (w *Writer) write(b []byte) error {
	w.size += int64(len(b))
	return w.out.Write(b)
}

// pad writes zeros up to a sector.
func (w *Writer) pad() error { return w.write(make([]byte, aligned(w.size)-w.size)) }

// Append appends rows. It fails if they are not of the type of the column: numbers that are no bool
// or date, indices that do not ascend below the dimension, values of null rows.
func (w *Writer) Append(v *Values) error {
	if err := v.check(&w.column); err != nil {
		return fmt.Errorf("layout: write %s: after row %d: %w", w.out.Path, w.Rows, err)
	}
	for from := 0; from < v.Rows; {
		to := w.take(v, from)
		if n := w.held.size() + v.sizeOf(from, to); n > rawMost {
			return fmt.Errorf("layout: write %s: %d rows from row %d on take %s together: more "+
				"than the %s of a block", w.out.Path, w.held.Rows+to-from,
				w.Rows-uint64(w.held.Rows), mem.FormatSize(n), mem.FormatSize(rawMost))
		}
		w.held.Append(v, from, to)
		w.Rows += uint64(to - from)
		from = to
		if err := w.flush(false); err != nil {
			return err
		}
	}
	return nil
}

// take returns up to which row the rows from number from on are held next.
func (w *Writer) take(v *Values, from int) (to int) {
	if w.BlockRows > 0 {
		return min(v.Rows, from+w.BlockRows-w.held.Rows)
	}
	to = min(v.Rows, from+sampleRows-w.held.Rows)
	switch w.class {
	case texts:
		return within(v.Strings.Off, from, to, sampleBytes)
	case lists:
		return within(v.Sparse.Off, from, to, sampleBytes/8)
	}
	return to
}

// within returns how far, at least one, rows from number from on go that have up to most in all.
func within(off []uint32, from, to int, most uint32) int {
	for i := from + 1; i < to; i++ {
		if off[i+1]-off[from] > most {
			return i
		}
	}
	return to
}

// flush writes the full blocks of the rows held, or all of them at the end.
func (w *Writer) flush(last bool) error {
	if w.BlockRows == 0 {
		full := w.held.Rows == sampleRows || len(w.held.Strings.Bytes) >= sampleBytes ||
			len(w.held.Sparse.Index) >= sampleBytes/8
		if !full && !last {
			return nil
		}
		if err := w.choose(); err != nil {
			return err
		}
	}
	if w.held.Rows < w.BlockRows && !last {
		return nil
	}
	var part Values
	held := w.held
	for at := 0; at < held.Rows; {
		to := min(at+w.BlockRows, held.Rows)
		if to-at < w.BlockRows && !last {
			part.Reset()
			part.Append(&held, at, to)
			w.held = part
			return nil
		}
		rows := &held
		if at > 0 || to < held.Rows {
			part.Reset()
			part.Append(&held, at, to)
			rows = &part
		}
		if err := w.add(rows); err != nil {
			return err
		}
		at = to
	}
	w.held.Reset()
	return nil
}

// choose chooses the rows of a block by what the first ones take as one, and whether strings have a
// dictionary: if at most half of the first ones differ.
func (w *Writer) choose() error {
	rows := w.held.Rows
	if w.class == texts && 2*w.distinct() <= rows {
		w.code.dict = map[string]uint32{}
	}
	if w.BlockRows = rowsMost; rows == 0 {
		return nil
	}
	block, raw, err := w.code.encode(0, &w.held)
	if err != nil {
		return fmt.Errorf("layout: write %s: %w", w.out.Path, err)
	}
	fit := rows * (blockBytes - blockHead) / max(len(block)-blockHead, 1)
	if block[flagsAt]&flagZstd != 0 {
		fit = min(fit, rows*zippedBytes/raw)
	}
	w.BlockRows = min(max(fit, 1), rowsMost)
	return nil
}

// distinct counts the different strings held.
func (w *Writer) distinct() int {
	seen := map[string]struct{}{}
	for i := range w.held.Rows {
		seen[string(w.held.Strings.At(i))] = struct{}{}
	}
	return len(seen)
}

// add writes a block of rows.
func (w *Writer) add(v *Values) error {
	w.Nulls += uint64(countNulls(v))
	w.Ones = w.Ones && allOnes(v.Sparse.Value)
	w.block.of(v, w.class)
	w.all.add(&w.block, w.class)
	return w.addBlock(v)
}

// addBlock writes a block, whose bounds are known, and the page that it fills.
func (w *Writer) addBlock(v *Values) error {
	w.blocks++
	block, raw, err := w.code.encode(w.blocks, v)
	if err != nil {
		return fmt.Errorf("layout: write %s: before row %d: %w", w.out.Path, w.Rows, err)
	}
	if len(w.page.entries) == 0 {
		w.page.place = uint64(w.size)
	}
	x := entry{bytes: uint32(len(block)), nulls: uint32(countNulls(v))}
	x.least, x.greatest = w.block.keys(w.class)
	w.page.entries = append(w.page.entries, x)
	w.end.largest = max(w.end.largest, x.bytes)
	w.end.raw = max(w.end.raw, uint32(raw))
	if err := w.write(block); err != nil {
		return err
	}
	if len(w.page.entries) < pageEntries {
		return nil
	}
	return w.endPage()
}

// endPage writes the page of the last blocks.
func (w *Writer) endPage() error {
	if len(w.page.entries) == 0 {
		return nil
	}
	if err := w.pad(); err != nil {
		return err
	}
	w.pages = append(w.pages, uint64(w.size))
	b := make([]byte, layout.PageBytes)
	w.page.encode(b)
	w.seal(pageNumber|uint64(len(w.pages)), b)
	w.page.entries = w.page.entries[:0]
	return w.write(b)
}

// Finish writes what is left, syncs the file, and returns the records of the column and the file.
func (w *Writer) Finish() (kv.TableColumn, kv.FileMeta, error) {
	err := w.flush(true)
	if err == nil {
		err = w.addDictionary()
	}
	if err == nil {
		err = w.endPage()
	}
	if err == nil {
		err = w.pad()
	}
	if err == nil {
		err = w.addEnd()
	}
	if err != nil {
		return w.TableColumn, kv.FileMeta{}, errors.Join(err, w.Abort())
	}
	m, err := w.out.Finish(w.Path, layout.KindColumn)
	return w.TableColumn, m, err
}

// addDictionary writes the blocks of the dictionary.
func (w *Writer) addDictionary() error {
	s, n := w.code.strings, len(w.code.dict)
	w.code.dict, w.Dictionary = nil, uint64(n)
	w.block.reset()
	all := Values{Rows: n, Strings: s}
	for at := 0; at < n; at += w.BlockRows {
		var v Values
		v.Append(&all, at, min(n, at+w.BlockRows))
		if err := w.addBlock(&v); err != nil {
			return err
		}
	}
	return nil
}

// addEnd writes the directory and the end.
func (w *Writer) addEnd() error {
	w.end.pages, w.end.directory = uint64(len(w.pages)), uint64(w.size)
	b := make([]byte, directoryBytes(w.end.pages))
	for i, place := range w.pages {
		binary.LittleEndian.PutUint64(b[directoryHead+8*i:], place)
	}
	w.seal(directoryNumber, b)
	if err := w.write(b); err != nil {
		return err
	}
	w.Least, w.Greatest = w.all.text(0, w.Type), w.all.text(1, w.Type)
	return w.write(w.encodeEnd(w.end))
}

// Abort closes the file without finishing it.
func (w *Writer) Abort() error { return w.out.Abort() }
