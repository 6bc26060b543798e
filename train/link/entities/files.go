package entities

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"gdb/blockdev"
	"gdb/internal/bug"
	"gdb/internal/codec"
	"gdb/internal/files"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/partition"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// FileSpec describes what the files hold.
type FileSpec struct {
	UUID    [16]byte
	Map     partition.Map
	Columns int
	// State is the number of arrays that the optimizer keeps.
	State int
	// Init writes the initial vector of a node. Several goroutines call it at the same time.
	Init func(row []float32, node uint64)
}

// arrays returns the number of arrays of a partition.
func (s *FileSpec) arrays() int { return 1 + s.State }

// FrameRows returns how many rows an array has room for in memory: as many as the largest partition
// has, rounded up so that an array is a whole number of pages. The rounding unit is such that rows
// of partitions in consecutive frames are rows of one matrix.
func (s *FileSpec) FrameRows() int {
	unit := uint64(pageBytes / 4)
	for unit > 1 && unit/2*uint64(s.Columns)*4%pageBytes == 0 {
		unit /= 2
	}
	rows := (s.Map.MaxSize() + unit - 1) / unit * unit
	return int(rows)
}

// FrameBytes returns the memory of a partition with all its arrays.
func (s *FileSpec) FrameBytes() int64 {
	return int64(s.arrays()) * int64(s.FrameRows()) * int64(s.Columns) * 4
}

// PartBytes returns what a partition takes on disk.
func (s *FileSpec) PartBytes(part int) (n int64) {
	for _, f := range s.files() {
		n += s.fileBytes(part, &f)
	}
	return n
}

// file is one of the files of a partition. It holds arrays arrays, from array first on.
type file struct {
	kind          string
	first, arrays int
}

// files lists the files of a partition.
func (s *FileSpec) files() []file {
	rows := file{rowsFile, 0, 1}
	if s.State == 0 {
		return []file{rows}
	}
	return []file{rows, {stateFile, 1, s.State}}
}

// fileBytes returns the size of a file.
func (s *FileSpec) fileBytes(part int, f *file) int64 {
	return pageBytes + int64(f.arrays)*pieceBytes(s.Map.Size(part)*uint64(s.Columns))
}

// bytesOf returns the size of a partition's file of a kind; 0 if there is no such file.
func (s *FileSpec) bytesOf(part int, kind string) int64 {
	for _, f := range s.files() {
		if f.kind == kind && part < s.Map.Parts() {
			return s.fileBytes(part, &f)
		}
	}
	return 0
}

// Bytes returns what all partitions take on disk, each counted once.
func (s *FileSpec) Bytes() (n int64) {
	for part := range s.Map.Parts() {
		n += s.PartBytes(part)
	}
	return n
}

// DiskLimit returns how many bytes the files may take: all partitions twice, as they are now and as
// they were in the last checkpoint. The vectors of the best evaluation count toward it: see
// Files.BytesWith.
func (s *FileSpec) DiskLimit() int64 { return 2 * s.Bytes() }

// DiskBytes returns the most that all files take if a checkpoint is made before they would need
// more than DiskLimit. At that time the last checkpoint has all partitions and the best evaluation
// the vectors of all; and up to inMemory partitions are in memory, which the next checkpoint writes
// before the files of the last one are removed.
func (s *FileSpec) DiskBytes(inMemory int) int64 {
	most, rows := s.Bytes(), s.files()[0]
	var parts []int64
	for part := range s.Map.Parts() {
		most += s.fileBytes(part, &rows)
		parts = append(parts, s.PartBytes(part))
	}
	slices.Sort(parts)
	for _, bytes := range parts[len(parts)-min(inMemory, len(parts)):] {
		most += bytes
	}
	return max(s.DiskLimit(), most)
}

// Files holds the partitions. Different ones may be read and written at the same time. One read and
// one write reach the disk at a time; the checksums of others are computed meanwhile.
type Files struct {
	fs   vfs.FS
	path string
	dev  blockdev.Device
	spec FileSpec
	// One file is read at a time, and one is written.
	reading, writing sync.Mutex
	writes           atomic.Int32 // writes under way
	mu               struct {
		sync.Mutex
		kept []uint32 // generation of each partition in the last checkpoint
		now  []uint32 // generation of each now: that of kept, or next
		best []uint32 // generation of each in the best evaluation; nil if there was none
		next uint32   // generation of what is written now
		// unsynced holds the partitions that were written since the last Prepare. They are
		// synced only then, because most are written several times in between and syncing takes
		// longer than writing.
		unsynced map[int]bool
		// spare lists files that no generation needs any more, by size. The next files of the same
		// size replace them and take over their space.
		spare map[int64][]string
	}
}

// CreateFiles starts with the vectors of FileSpec.Init in a directory, and removes older files from
// it.
func CreateFiles(fs vfs.FS, path string, dev blockdev.Device, spec FileSpec) (*Files, error) {
	return start(fs, path, dev, spec, make([]uint32, spec.Map.Parts()), nil)
}

// OpenFiles goes on from the records of a checkpoint, as Prepare returned them. Files that were
// written after it are removed.
func OpenFiles(fs vfs.FS, path string, dev blockdev.Device, spec FileSpec,
	record, best []byte) (*Files, error) {
	kept, err := decode(&spec, record)
	if err != nil {
		return nil, err
	}
	var bestOf []uint32
	if best != nil {
		if bestOf, err = decode(&spec, best); err != nil {
			return nil, err
		}
	}
	return start(fs, path, dev, spec, kept, bestOf)
}

// ViewFiles opens the partitions to which a record refers, for reading. It removes nothing.
func ViewFiles(fs vfs.FS, path string, dev blockdev.Device, spec FileSpec,
	record []byte) (*Files, error) {
	kept, err := decode(&spec, record)
	if err != nil {
		return nil, err
	}
	if err := CheckFiles(fs, path, spec, nil, record); err != nil {
		return nil, err
	}
	d := &Files{fs: fs, path: path, dev: dev, spec: spec}
	d.mu.kept, d.mu.now = kept, kept
	return d, nil
}

// decode decodes a record. Damage is reported as damage of the checkpoint.
func decode(s *FileSpec, record []byte) ([]uint32, error) {
	generations, err := decodeRecord(record, s.UUID, s.Map.Parts())
	if err != nil {
		return nil, fmt.Errorf("train: the record of partitions of a checkpoint: %w: %w",
			layout.ErrCorrupt, err)
	}
	return generations, nil
}

func start(fs vfs.FS, path string, dev blockdev.Device, spec FileSpec, kept, best []uint32) (*Files,
	error) {
	d := &Files{fs: fs, path: path, dev: dev, spec: spec}
	d.mu.kept, d.mu.now, d.mu.best = kept, slices.Clone(kept), best
	d.mu.unsynced = map[int]bool{}
	d.mu.next = max(slices.Max(kept), slices.Max(append([]uint32{0}, best...))) + 1
	if err := fs.MkdirAll(path, 0o755); err != nil {
		return nil, fmt.Errorf("train: make %s: %w", path, err)
	}
	return d, d.sweep(0)
}

// FileSpec returns the description of what the files hold.
func (d *Files) Spec() FileSpec { return d.spec }

// sweep removes the files that belong neither to the last checkpoint, nor to the best evaluation,
// nor to the partitions as they are now. It keeps up to spare bytes of them to be reused.
func (d *Files) sweep(spare int64) error {
	names, err := d.fs.List(d.path)
	if err != nil {
		return fmt.Errorf("train: list %s: %w", d.path, err)
	}
	d.mu.spare = map[int64][]string{}
	for _, file := range names {
		part, generation, kind, ok := parseName(file)
		if !ok || part < len(d.mu.now) && (generation == d.mu.kept[part] ||
			generation == d.mu.now[part] || d.mu.best != nil && kind == rowsFile &&
			generation == d.mu.best[part]) {
			continue
		}
		path := d.fs.PathJoin(d.path, file)
		if bytes := d.spec.bytesOf(part, kind); 0 < bytes && bytes <= spare {
			spare -= bytes
			d.mu.spare[bytes] = append(d.mu.spare[bytes], path)
		} else if err := d.fs.Remove(path); err != nil {
			return fmt.Errorf("train: remove %s: %w", path, err)
		}
	}
	return nil
}

// Close removes the files that were kept to be reused.
func (d *Files) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.freeSpares(math.MaxInt64)
}

// freeSpares removes spare files until at least bytes bytes are free, or no spare file remains.
func (d *Files) freeSpares(bytes int64) error {
	for each, paths := range d.mu.spare {
		for ; len(paths) > 0 && bytes > 0; bytes -= each {
			if err := d.fs.Remove(paths[0]); err != nil {
				return fmt.Errorf("train: remove %s: %w", paths[0], err)
			}
			paths = paths[1:]
		}
		d.mu.spare[each] = paths
	}
	return nil
}

// create opens a file that will be written whole: a spare file of its size, or a new one. For a new
// one other spare files are removed, so that all files take no more space than without spare ones.
func (d *Files) create(path string, bytes int64) (vfs.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	spare := d.mu.spare[bytes]
	if len(spare) == 0 {
		if err := d.freeSpares(bytes); err != nil {
			return nil, err
		}
		return d.fs.Create(path, vfs.WriteCategoryUnspecified)
	}
	d.mu.spare[bytes] = spare[1:]
	return d.fs.ReuseForWrite(spare[0], path, vfs.WriteCategoryUnspecified)
}

// generation returns the generation that a partition has now.
func (d *Files) generation(part int) uint32 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.now[part]
}

// Read fills arrays with those of a partition: first the vectors, then the optimizer's. Each array
// must begin at a multiple of 4096 bytes and have FrameRows rows; rows after the partition's stay
// as they are or become zeros. With fewer arrays only the first ones are read. Read returns how
// many bytes were read; 0 if the partition still has its initial vectors.
func (d *Files) Read(ctx context.Context, part int, arrays [][]float32) (read int64, err error) {
	generation := d.generation(part)
	if generation == 0 {
		d.begin(part, arrays)
		return 0, nil
	}
	for _, f := range d.spec.files() {
		if len(arrays) <= f.first {
			break
		}
		n, err := d.readFile(ctx, part, generation, &f,
			arrays[f.first:min(f.first+f.arrays, len(arrays))])
		if read += n; err != nil {
			return 0, err
		}
	}
	return read, nil
}

// readFile reads the first arrays of a file.
func (d *Files) readFile(ctx context.Context, part int, generation uint32, which *file,
	arrays [][]float32) (read int64, err error) {
	path := d.fs.PathJoin(d.path, name(part, generation, which.kind))
	f, err := d.dev.OpenFile(d.fs, path)
	if oserror.IsNotExist(err) {
		return 0, damage(path, "the file is missing")
	}
	if err != nil {
		return 0, fmt.Errorf("train: read partition %d: %w", part, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if want := d.spec.fileBytes(part, which); f.Size() != want {
		return 0, damage(path, "it has %d bytes, want %d", f.Size(), want)
	}
	h := d.header(part, generation, which)
	head, reqs := blockdev.AlignedBuffer(pageBytes), []blockdev.Request(nil)
	n := int(d.spec.Map.Size(part)) * d.spec.Columns
	piece, off := pieceBytes(uint64(n)), int64(pageBytes)
	reqs = append(reqs, blockdev.Request{File: f, Buf: head})
	for _, a := range arrays {
		b := mem.BytesOf(a)[:piece]
		for at := int64(0); at < piece; at += layout.ReadChunk {
			reqs = append(reqs, blockdev.Request{File: f, Off: off + at,
				Buf: b[at:min(at+layout.ReadChunk, piece)]})
		}
		off += piece
	}
	if err := d.readAll(ctx, reqs); err != nil {
		return 0, fmt.Errorf("train: read partition %d: %w", part, err)
	}
	sums, err := decodeHeader(head, d.spec.UUID, &h)
	if err != nil {
		return 0, damage(path, "header: %v", err)
	}
	for i, a := range arrays {
		if got := d.sum(which.first+i, a[:n]); got != sums[i] {
			return 0, damage(path, "array %d: checksum %08x, want %08x", which.first+i, got,
				sums[i])
		}
	}
	return off, nil
}

const (
	// readsAlone is how many reads of a file are in flight at a time.
	readsAlone = 16
	// readsBeside is how many reads are in flight while something is written. With more of them the
	// scheduler that Linux gives to disks of one queue (mq-deadline) hardly lets a write through:
	// of 1.2 GB/s, writes got .05 beside four reads of a MiB, and .5 to 1.2 beside two or one,
	// where reads were as fast (docs/link.md).
	readsBeside = 2
)

// readAll makes the reads of a file. One file is read at a time, while the checksums of
// others are computed.
func (d *Files) readAll(ctx context.Context, reqs []blockdev.Request) error {
	d.reading.Lock()
	defer d.reading.Unlock()
	for len(reqs) > 0 {
		n := readsAlone
		if d.writes.Load() > 0 {
			n = readsBeside
		}
		n = min(n, len(reqs))
		if err := d.dev.ReadBatch(ctx, reqs[:n]); err != nil {
			return err
		}
		reqs = reqs[n:]
	}
	return nil
}

// begin fills arrays with the initial state of a partition: drawn vectors and zeros.
func (d *Files) begin(part int, arrays [][]float32) {
	c, rows := d.spec.Columns, d.spec.Map.Size(part)
	each := rows/uint64(runtime.GOMAXPROCS(0)) + 1 // to draw takes longer than to read
	var drawn sync.WaitGroup
	for first := uint64(0); first < rows; first += each {
		drawn.Go(func() {
			defer bug.Catch()
			for row := first; row < min(rows, first+each); row++ {
				node := d.spec.Map.Node(part, row)
				d.spec.Init(arrays[0][row*uint64(c):][:c], uint64(node))
			}
		})
	}
	drawn.Wait()
	for _, a := range arrays[1:] {
		clear(a[:d.spec.Map.Size(part)*uint64(c)])
	}
}

// header returns the header of a file, with room for its checksums.
func (d *Files) header(part int, generation uint32, which *file) header {
	m := &d.spec.Map
	return header{part: uint32(part), generation: generation, parts: uint32(m.Parts()),
		graph: m.Spec().Nodes, nodes: m.Size(part), columns: uint32(d.spec.Columns),
		first: uint32(which.first), sums: make([]uint32, which.arrays)}
}

// sum returns the checksum of array i.
func (d *Files) sum(i int, values []float32) uint32 {
	return codec.BlockSum(fileKind, d.spec.UUID, uint64(i+1), mem.BytesOf(values))
}

func damage(path, format string, args ...any) error {
	return fmt.Errorf("train: %w", &layout.CorruptionError{Path: path, Block: -1,
		What: fmt.Sprintf(format, args...) + "; the run cannot go on"})
}

// Write writes the arrays of a partition to files beside those of the last checkpoint. It zeroes
// the rows after the partition's in its last page. The files are durable once Prepare returns.
// After an error, what was written of the partition since the last checkpoint is lost; the run goes
// on from that checkpoint.
func (d *Files) Write(part int, arrays [][]float32) error {
	d.mu.Lock()
	generation := d.mu.next
	again := d.mu.now[part] == generation
	d.mu.Unlock()
	for _, f := range d.spec.files() {
		err := d.writeFile(part, generation, &f, arrays[f.first:f.first+f.arrays], again)
		if err != nil {
			return fmt.Errorf("train: write partition %d: %w", part, err)
		}
	}
	d.mu.Lock()
	d.mu.now[part], d.mu.unsynced[part] = generation, true
	d.mu.Unlock()
	return nil
}

// writeFile writes the arrays of a file. It overwrites the file if that was written since the last
// checkpoint, or a spare file, because a file system takes longer to find new space than to write.
func (d *Files) writeFile(part int, generation uint32, which *file, arrays [][]float32,
	again bool) error {
	h, n := d.header(part, generation, which), int(d.spec.Map.Size(part))*d.spec.Columns
	pages := [][]byte{blockdev.AlignedBuffer(pageBytes)}
	for i, a := range arrays {
		h.sums[i] = d.sum(which.first+i, a[:n])
		whole := int(pieceBytes(uint64(n)) / 4)
		clear(a[n:whole])
		pages = append(pages, mem.BytesOf(a[:whole]))
	}
	copy(pages[0], h.encode(d.spec.UUID))
	path := d.fs.PathJoin(d.path, name(part, generation, which.kind))
	d.writing.Lock()
	defer d.writing.Unlock()
	d.writes.Add(1)
	defer d.writes.Add(-1)
	var f vfs.File
	var err error
	if again {
		f, err = d.fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	} else {
		f, err = d.create(path, d.spec.fileBytes(part, which))
	}
	if err != nil {
		return fmt.Errorf("create %s: %w", path, err)
	}
	if err := errors.Join(blockdev.WritePages(f, pages...), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// BytesWith returns what the files will take if the changed partitions have been written since the
// last checkpoint, whether they already were or not.
func (d *Files) BytesWith(changed *roaring.Bitmap) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.bytesWith(changed)
}

func (d *Files) bytesWith(changed *roaring.Bitmap) (n int64) {
	rows := d.spec.files()[0]
	for part, kept := range d.mu.kept {
		now := d.mu.now[part]
		if kept != 0 {
			n += d.spec.PartBytes(part)
		}
		if now != kept || changed.Contains(uint32(part)) {
			n += d.spec.PartBytes(part)
		}
		if d.mu.best == nil {
			continue
		}
		if best := d.mu.best[part]; best != 0 && best != kept && best != now {
			n += d.spec.fileBytes(part, &rows)
		}
	}
	return n
}

// KeepBest makes the partitions as they are now the best evaluation, whose files stay on disk. A
// checkpoint must follow before anything else is written.
func (d *Files) KeepBest() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.best = slices.Clone(d.mu.now)
}

// Best returns a view of the partitions of the best evaluation, or as they are now if
// there was none.
func (d *Files) Best() *Files {
	d.mu.Lock()
	defer d.mu.Unlock()
	v := &Files{fs: d.fs, path: d.path, dev: d.dev, spec: d.spec}
	if v.mu.now = d.mu.best; v.mu.now == nil {
		v.mu.now = slices.Clone(d.mu.now)
	}
	v.mu.kept = v.mu.now
	return v
}

// Prepare makes everything that was written durable. It returns the record for the checkpoint
// being made, and the record of the best evaluation, nil if there was none. Nothing may be written
// until Committed.
func (d *Files) Prepare() (record, best []byte, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for part := range d.mu.unsynced {
		for _, f := range d.spec.files() {
			file := name(part, d.mu.now[part], f.kind)
			if err := d.sync(d.fs.PathJoin(d.path, file)); err != nil {
				return nil, nil, err
			}
		}
	}
	clear(d.mu.unsynced)
	if err := files.SyncDir(d.fs, d.path); err != nil {
		return nil, nil, fmt.Errorf("train: %w", err)
	}
	if d.mu.best != nil {
		best = encodeRecord(d.spec.UUID, d.mu.best)
	}
	return encodeRecord(d.spec.UUID, d.mu.now), best, nil
}

// sync makes a file durable.
func (d *Files) sync(path string) error {
	f, err := d.fs.Open(path)
	if err != nil {
		return fmt.Errorf("train: sync %s: %w", path, err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("train: sync %s: %w", path, err)
	}
	return nil
}

// Committed says that the checkpoint with the records of Prepare is now the last one. The files
// that only the previous one needed are removed, or kept to be reused.
func (d *Files) Committed() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.kept, d.mu.next = slices.Clone(d.mu.now), d.mu.next+1
	return d.sweep(d.spec.DiskLimit() - d.bytesWith(roaring.New()))
}
