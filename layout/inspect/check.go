// Package inspect examines the files of a store. Check verifies all of them: the catalog, every
// checksum, and what the bytes mean. DumpBlock prints one block of a file, field by field.
package inspect

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"gdb/blockdev"
	"gdb/internal/codec"
	"gdb/kv"
	"gdb/kv/ids"
	"gdb/layout"
	"gdb/layout/edgefile"

	"github.com/cockroachdb/errors/oserror"
)

// CheckOptions configure Check.
type CheckOptions struct {
	// Full also checks order, degrees, counts and id ranges, and that the store has every listed
	// file and no others.
	Full bool
	// File limits the check to one file, by its path relative to the store, or to "catalog"; ""
	// checks all files.
	File string
	// Progress is called with the bytes that were verified so far and the bytes in all; it may be
	// nil.
	Progress func(done, total int64)
}

// CheckReport is the result of a check.
type CheckReport struct {
	Files    int
	Bytes    int64
	Findings []kv.Finding // empty if no damage was found
	// Strangers is how many of the findings are files that do not belong into the store. If all
	// findings are strangers, the store is not damaged.
	Strangers int
	// Unchecked lists the folders that hold files and were not checked: see uncheckedFolders.
	Unchecked []string
	// Left lists what a commit or compaction that was killed has left, and the next one removes.
	Left []string
}

// findingsMost is how many damaged blocks of one file are listed. Further ones are only counted.
const findingsMost = 1000

// Check verifies a store: the catalog, every checksum of every file, and with Full what the bytes
// mean. It goes on after damage. It also goes on after a file that it could not read, and then
// returns an error together with the report of the other files. Of a store that was appended to it
// checks the base and the levels of all snapshots. It takes the memory of read buffers
// of 8 MiB, of the checksums of one file of rows or the index of one topology file at a time, and
// of ids.Verify.
func Check(ctx context.Context, dev blockdev.Device, s *layout.Store,
	opt CheckOptions) (*CheckReport, error) {
	c := checker{ctx: ctx, dev: dev, s: s, opt: opt, report: &CheckReport{}}
	if s.Meta().Manifest > 0 {
		return checkLive(c)
	}
	if err := c.selectFiles(); err != nil {
		return nil, err
	}
	if opt.File == "" || opt.File == layout.CatalogName {
		if err := c.catalog(); err != nil {
			return nil, err
		}
	}
	failed := c.eachFile()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return c.report, errors.Join(failed, c.unchecked())
}

// eachFile checks the files that were chosen, and goes on after those that cannot be read.
func (c *checker) eachFile() (failed error) {
	for _, m := range c.files {
		if err := c.file(m); err != nil {
			failed = errors.Join(failed, fmt.Errorf("layout: check %s: %w", m.Path, err))
		}
		if c.ctx.Err() != nil {
			break
		}
	}
	return failed
}

type checker struct {
	ctx         context.Context
	dev         blockdev.Device
	s           *layout.Store
	opt         CheckOptions
	report      *CheckReport
	files       []kv.FileMeta
	done, total int64
	idsDone     bool // the id files were checked
	// apart says that the files are a base whose catalog describes the levels on it too, so that
	// its counts of loops, types and labels are not those of the files.
	apart bool

	// The fields below are about the file that is being checked.
	path    string
	sum     uint32
	found   int   // findings
	skipped int   // findings beyond findingsMost
	last    int64 // block of the last finding
}

// selectFiles chooses the files to check.
func (c *checker) selectFiles() error {
	for _, m := range c.s.Meta().Files {
		if c.opt.File == "" || c.opt.File == m.Path {
			c.files = append(c.files, m)
			c.total += m.Size
		}
	}
	if c.opt.File != "" && c.opt.File != layout.CatalogName && len(c.files) == 0 {
		var names []string
		for _, m := range c.s.Meta().Files {
			names = append(names, m.Path)
		}
		return fmt.Errorf("layout: check %s: the store has no such file; it has %s and %s",
			c.opt.File, layout.CatalogName, strings.Join(names, ", "))
	}
	return nil
}

// find adds a finding about the current file.
func (c *checker) find(block, off int64, format string, args ...any) {
	if c.found++; c.found > findingsMost {
		c.skipped++
		c.last = block
		return
	}
	c.report.Findings = append(c.report.Findings, kv.Finding{Path: c.path, Block: block,
		Offset: off, What: fmt.Sprintf(format, args...)})
}

// note turns an error about damage into a finding, and returns any other.
func (c *checker) note(err error) error {
	var bad *layout.CorruptionError
	var read *blockdev.ReadError
	switch {
	case err == nil || c.ctx.Err() != nil:
		return err
	case errors.As(err, &bad):
		c.find(bad.Block, bad.Offset, "%s", bad.What)
	case errors.As(err, &read):
		c.find(-1, read.Off, "%d bytes cannot be read: %v", read.Len, read.Err)
	case errors.Is(err, kv.ErrFormat), oserror.IsNotExist(err):
		c.find(-1, -1, "%v", err)
	default:
		return err
	}
	return nil
}

// begin starts to collect the findings of a file.
func (c *checker) begin(path string) {
	c.path, c.sum, c.found, c.skipped = path, 0, 0, 0
}

// end finishes the findings of a file.
func (c *checker) end() {
	if c.skipped > 0 {
		c.report.Findings = append(c.report.Findings, kv.Finding{Path: c.path, Block: -1,
			Offset: -1, What: fmt.Sprintf("%d further damages, the last in block %d", c.skipped,
				c.last)})
	}
}

// advance adds verified bytes to the progress and to the checksum of the file.
func (c *checker) advance(b []byte) {
	c.sum = codec.ChecksumUpdate(c.sum, b)
	c.report.Bytes += int64(len(b))
	c.done += int64(len(b))
	if c.opt.Progress != nil {
		c.opt.Progress(c.done, c.total)
	}
}

// file checks one data file.
func (c *checker) file(m kv.FileMeta) error {
	c.begin(m.Path)
	defer c.end()
	c.report.Files++
	want := c.done + m.Size
	f, err := c.s.OpenFile(c.dev, m.Path)
	if err == nil {
		// The blocks come first, so that a finding names one of them if it can.
		err = c.content(m, f)
		err = errors.Join(err, f.Close())
		if err == nil && c.found == 0 && c.sum != m.Checksum {
			c.find(-1, -1, "checksum of the whole file is %08x, want %08x", c.sum, m.Checksum)
		}
	}
	c.done = want // damaged parts may not have been read
	return c.note(err)
}

// content checks the blocks of a file, by its kind.
func (c *checker) content(m kv.FileMeta, f *layout.File) error {
	switch m.Kind {
	case layout.KindTopologyIn:
		return c.lists(f, layout.In)
	case layout.KindTopologyOut:
		return c.lists(f, layout.Out)
	case layout.KindIndexIn:
		return c.index(f, layout.In)
	case layout.KindIndexOut:
		return c.index(f, layout.Out)
	case layout.KindRows, layout.KindSums:
		return c.rowsOrSums(m, f)
	case layout.KindColumn:
		return c.column(f)
	case ids.ForwardKind, ids.ReverseKind:
		return c.ids(m, f)
	}
	if edgefile.SplitOf(m.Kind) != "" {
		return c.edges(f, m.Kind)
	}
	c.find(-1, -1, "kind %q is unknown", m.Kind)
	return nil
}

// header checks the first block and adds it to the checksum of the file. fields is nil if they are
// damaged. blocks is false if the file is not of the expected kind, so that its blocks need not be
// checked.
func (c *checker) header(f *layout.File, kind string) (fields []byte, blocks bool, err error) {
	b := blockdev.AlignedBuffer(layout.PageBytes)
	if err := f.Read(c.ctx, 0, b); err != nil {
		return nil, false, err
	}
	c.advance(b)
	h, err := codec.DecodeHeader(b, kind, c.s.Meta().UUID)
	if err == nil {
		return h.Fields, true, nil
	}
	c.find(0, 0, "header: %v", err)
	return nil, errors.Is(err, codec.ErrChecksum), nil
}

// ids checks an id file. Package kv/ids knows its blocks, and checks both id files at once.
func (c *checker) ids(m kv.FileMeta, f *layout.File) error {
	if !c.idsDone {
		c.idsDone = true
		findings, err := ids.Verify(c.ctx, c.dev, c.s.FS(), c.s.Dir(), c.s.Meta(), c.opt.Full)
		if err := c.note(err); err != nil {
			return err
		}
		for _, found := range findings {
			// A file of a wrong length has its own finding, before or after the other file is
			// opened.
			i, listed := c.s.Meta().File(found.Path)
			if (c.opt.File == "" || c.opt.File == found.Path) && listed && c.hasLength(i) {
				c.report.Findings = append(c.report.Findings, found)
			}
		}
	}
	for _, found := range c.report.Findings {
		if found.Path == m.Path {
			c.found++ // the checksum of the whole file would only repeat it
		}
	}
	return c.whole(f)
}

// whole reads a whole file for its checksum.
func (c *checker) whole(f *layout.File) error {
	return f.Stream(c.ctx, 0, f.Size(), blockdev.Align, func(_ int64, b []byte) error {
		c.advance(b)
		return nil
	})
}

// blocks calls fn with the blocks of a file after its header, up to offset end, each with its
// number and offset, and counts their bytes as verified.
func (c *checker) blocks(f *layout.File, end int64, unit int,
	fn func(n, off int64, b []byte) error) error {
	return f.Stream(c.ctx, codec.HeaderBytes, end, unit, func(off int64, data []byte) error {
		c.advance(data)
		for ; len(data) > 0; off, data = off+int64(unit), data[unit:] {
			n := (off-codec.HeaderBytes)/int64(unit) + 1
			if err := fn(n, off, data[:unit:unit]); err != nil {
				return err
			}
		}
		return nil
	})
}

// hasLength reports whether a file exists and is as long as the catalog says.
func (c *checker) hasLength(m kv.FileMeta) bool {
	info, err := c.s.FS().Stat(c.s.Path(m.Path))
	return err == nil && info.Size() == m.Size
}

// histogram counts degrees in the way of kv.GraphStats.
type histogram struct {
	counts [33]uint64
	most   uint64
}

// differs says where the counts differ from want; "" if they do not.
func (h *histogram) differs(want []uint64, most uint64) string {
	for i, n := range h.counts {
		w := uint64(0)
		if i < len(want) {
			w = want[i]
		}
		if n != w {
			return fmt.Sprintf("%d nodes with degrees of bucket %d, the catalog has %d", n, i, w)
		}
	}
	if h.most != most {
		return fmt.Sprintf("largest degree is %d, the catalog has %d", h.most, most)
	}
	return ""
}
