package entities

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/layout/partition"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

func mustSpec(t testing.TB, nodes uint64, parts, columns, state int) FileSpec {
	t.Helper()
	m, err := partition.New(partition.Spec{Nodes: nodes, Parts: parts, Random: true, Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	return FileSpec{UUID: [16]byte{7}, Map: m, Columns: columns, State: state, Init: initRow}
}

// initRow is what nodes begin with.
func initRow(row []float32, node uint64) {
	for i := range row {
		row[i] = float32(node) + float32(i)/8
	}
}

// frame has room for a partition.
func frame(t testing.TB, s *FileSpec) (arrays [][]float32) {
	t.Helper()
	a, err := mem.NewArena(nil, "frame", s.FrameBytes())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Free(); err != nil {
			t.Error(err)
		}
	})
	all := mem.View[float32](a.Bytes())
	for i := range s.arrays() {
		n := s.FrameRows() * s.Columns
		arrays = append(arrays, all[i*n:(i+1)*n])
	}
	return arrays
}

// fill fills the rows of a partition with what a version of it is.
func fill(s *FileSpec, arrays [][]float32, part, version int) {
	r := rand.New(rand.NewPCG(uint64(part), uint64(version)))
	for _, a := range arrays {
		for i := range int(s.Map.Size(part)) * s.Columns {
			a[i] = r.Float32()
		}
	}
}

// equal reports whether the rows of a partition equal those of a version; version 0 is the
// initial state.
func equal(t testing.TB, s *FileSpec, got [][]float32, part, version int) bool {
	t.Helper()
	want := frame(t, s)
	if fill(s, want, part, version); version == 0 {
		for row := range s.Map.Size(part) {
			initRow(want[0][row*uint64(s.Columns):][:s.Columns], uint64(s.Map.Node(part, row)))
		}
		for _, a := range want[1:] {
			clear(a)
		}
	}
	for i := range got {
		n := int(s.Map.Size(part)) * s.Columns
		if !slices.Equal(got[i][:n], want[i][:n]) {
			return false
		}
	}
	return true
}

func mustRead(t testing.TB, d *Files, part int) [][]float32 {
	t.Helper()
	f := frame(t, &d.spec)
	if _, err := d.Read(t.Context(), part, f); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestFrames: an array of a frame is whole pages and whole rows, with little to spare.
func TestFrames(t *testing.T) {
	for _, columns := range []int{1, 3, 5, 16, 100, 128, 1000, 1024, 3000} {
		s := mustSpec(t, 5000, 3, columns, 1)
		rows := s.FrameRows()
		if rows*columns*4%4096 != 0 || uint64(rows) < s.Map.MaxSize() ||
			uint64(rows) >= s.Map.MaxSize()+1024 {
			t.Errorf("%d columns: frames of %d rows for partitions of %d", columns, rows,
				s.Map.MaxSize())
		}
	}
}

// TestVersions writes partitions between checkpoints, and goes on from each: what a checkpoint has
// is what was there when it was made, and each partition is on disk twice at most.
func TestVersions(t *testing.T) {
	fs, dev := vfs.NewMem(), layouttest.Device(t)
	s := mustSpec(t, 1000, 4, 5, 2)
	d, err := CreateFiles(fs, "rows", dev, s)
	if err != nil {
		t.Fatal(err)
	}
	versions, f := make([]int, 4), frame(t, &s)
	var record []byte
	r := rand.New(rand.NewPCG(1, 1))
	for round := 1; round < 12; round++ {
		saved := slices.Clone(versions)
		for range r.IntN(6) {
			part := r.IntN(4)
			versions[part] = round*10 + r.IntN(10)
			fill(&s, f, part, versions[part])
			if err := d.Write(part, f); err != nil {
				t.Fatal(err)
			}
		}
		for part, v := range versions {
			if !equal(t, &s, mustRead(t, d, part), part, v) {
				t.Fatalf("round %d: partition %d is not of version %d", round, part, v)
			}
		}
		if names, err := fs.List("rows"); err != nil || len(names) > 16 {
			t.Fatalf("%v, %v", names, err)
		}
		if record != nil && round%3 == 0 { // the process dies
			if d, err = OpenFiles(fs, "rows", dev, s, record, nil); err != nil {
				t.Fatal(err)
			}
			versions = saved
			continue
		}
		if record, _, err = d.Prepare(); err != nil {
			t.Fatal(err)
		}
		if err := d.Committed(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDamage: bytes that are not those that were written are never rows.
func TestDamage(t *testing.T) {
	fs, dev := vfs.NewMem(), layouttest.Device(t)
	s := mustSpec(t, 1000, 2, 7, 1)
	d, err := CreateFiles(fs, "rows", dev, s)
	if err != nil {
		t.Fatal(err)
	}
	f := frame(t, &s)
	for part := range 2 {
		fill(&s, f, part, 1)
		if err := d.Write(part, f); err != nil {
			t.Fatal(err)
		}
	}
	damaged := func(what string) {
		t.Helper()
		if _, err := d.Read(t.Context(), 0, f); !errors.Is(err, layout.ErrCorrupt) {
			t.Errorf("%s: %v", what, err)
		}
	}
	used := int64(4096 + 500*7*4)
	for _, kind := range []string{rowsFile, stateFile} {
		path := "rows/" + name(0, 1, kind)
		whole := layouttest.ReadFile(t, fs, path)
		for off := int64(5); off < used; off += 997 {
			layouttest.Flip(t, fs, path, off, 16)
			damaged("a flipped bit")
			layouttest.Flip(t, fs, path, off, 16)
		}
		layouttest.WriteFile(t, fs, path, whole[:len(whole)-4096])
		damaged("a file that is cut off")
		layouttest.WriteFile(t, fs, path, append(slices.Clone(whole), make([]byte, 4096)...))
		damaged("a file that goes on after its end")
		layouttest.WriteFile(t, fs, path, layouttest.ReadFile(t, fs, "rows/"+name(1, 1, kind)))
		damaged("another partition")
		if err := fs.Remove(path); err != nil {
			t.Fatal(err)
		}
		damaged("no file")
		layouttest.WriteFile(t, fs, path, whole)
	}
	state, rows := "rows/"+name(0, 1, stateFile), "rows/"+name(0, 1, rowsFile)
	layouttest.WriteFile(t, fs, rows, layouttest.ReadFile(t, fs, state))
	damaged("the other file")
	for _, record := range [][]byte{nil, make([]byte, 5000), encodeRecord(s.UUID, []uint32{1})} {
		_, err := OpenFiles(fs, "rows", dev, s, record, nil)
		if !errors.Is(err, layout.ErrCorrupt) {
			t.Errorf("a record of %d bytes: %v", len(record), err)
		}
	}
}

// TestBest: the vectors of the best evaluation stay, without what the optimizer had, and the disk
// holds no more than DiskBytes with all partitions in memory.
func TestBest(t *testing.T) {
	fs, dev := vfs.NewMem(), layouttest.Device(t)
	s := mustSpec(t, 1000, 4, 5, 2)
	d, err := CreateFiles(fs, "rows", dev, s)
	if err != nil {
		t.Fatal(err)
	}
	f := frame(t, &s)
	most := int64(0)
	for version := 1; version < 5; version++ {
		for part := range 4 {
			fill(&s, f, part, version)
			if err := d.Write(part, f); err != nil {
				t.Fatal(err)
			}
		}
		most = max(most, dirBytes(t, fs))
		if version == 1 {
			d.KeepBest()
		}
		if _, _, err := d.Prepare(); err != nil {
			t.Fatal(err)
		}
		if err := d.Committed(); err != nil {
			t.Fatal(err)
		}
	}
	if most != s.DiskBytes(4) {
		t.Errorf("the disk held %d bytes, want %d at most", most, s.DiskBytes(4))
	}
	best := d.Best()
	for part := range 4 {
		rows := frame(t, &s)[:1]
		if _, err := best.Read(t.Context(), part, rows); err != nil {
			t.Fatal(err)
		}
		if !equal(t, &s, rows, part, 1) || !equal(t, &s, mustRead(t, d, part), part, 4) {
			t.Errorf("partition %d is not as in the best evaluation, or not as it is now", part)
		}
	}
}

// dirBytes is what the files take.
func dirBytes(t *testing.T, fs vfs.FS) (n int64) {
	t.Helper()
	names, err := fs.List("rows")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		info, err := fs.Stat("rows/" + name)
		if err != nil {
			t.Fatal(err)
		}
		n += info.Size()
	}
	return n
}

// checkpointed is a directory with a checkpoint, all durable.
func checkpointed(t *testing.T, fs *vfs.MemFS, dev blockdev.Device, s FileSpec) (record []byte) {
	t.Helper()
	d, err := CreateFiles(fs, "rows", dev, s)
	f := frame(t, &s)
	for part := range s.Map.Parts() - 1 {
		fill(&s, f, part, 1)
		if err == nil {
			err = d.Write(part, f)
		}
	}
	if err == nil {
		record, _, err = d.Prepare()
	}
	if err == nil {
		err = d.Committed()
	}
	root, err2 := fs.OpenDir("")
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(root.Sync(), root.Close()); err != nil {
		t.Fatal(err)
	}
	return record
}

// TestFaults writes all partitions, makes a checkpoint and begins another, and at each change of
// the file system loses power, or finds the disk full. What goes on from the checkpoint that was
// made last has its rows, of all partitions.
func TestFaults(t *testing.T) {
	dev := layouttest.Device(t)
	s := mustSpec(t, 300, 3, 4, 1)
	for fail := 0; ; fail++ {
		fs := vfs.NewCrashableMem()
		record, version := checkpointed(t, fs, dev, s), 1
		ops := 0
		var clone *vfs.MemFS
		var then []byte // the record when it failed
		broken := errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
				return nil
			}
			if ops++; ops == fail+1 {
				clone = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50,
					RNG: rand.New(rand.NewPCG(uint64(fail), 3))})
				then = record
				return syscall.ENOSPC
			}
			return nil
		}))
		err := func() error {
			d, err := OpenFiles(broken, "rows", dev, s, record, nil)
			f := frame(t, &s)
			for v := 2; v < 4 && err == nil; v++ {
				for part := 0; part < 3 && err == nil; part++ {
					fill(&s, f, part, v)
					err = d.Write(part, f)
				}
				var made []byte
				if err == nil {
					made, _, err = d.Prepare()
				}
				if err == nil { // the checkpoint is durable
					record, version = made, v
					err = d.Committed()
				}
			}
			return err
		}()
		if err != nil && !errors.Is(err, syscall.ENOSPC) || err != nil && clone == nil {
			t.Fatalf("failure %d: %v", fail, err)
		}
		if err == nil && clone != nil {
			t.Errorf("failure %d: the change that failed was taken for made", fail)
		}
		if clone == nil {
			if fail < 20 {
				t.Errorf("only %d changes failed", fail)
			}
			break
		}
		checkRows(t, fs, dev, s, record, version)
		for v := 1; v < 4; v++ { // the version of the record at the time
			if slices.Equal(then, record) && v == version {
				checkRows(t, clone, dev, s, then, v)
			}
		}
	}
}

// TestCommittedTells: a folder that cannot be listed after a checkpoint is an error.
func TestCommittedTells(t *testing.T) {
	fs, dev, s := vfs.NewMem(), layouttest.Device(t), mustSpec(t, 300, 3, 4, 1)
	broken := false
	d, err := CreateFiles(errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if broken && op.Kind == errorfs.OpList {
			return syscall.EIO
		}
		return nil
	})), "rows", dev, s)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.Prepare(); err != nil {
		t.Fatal(err)
	}
	if broken = true; !errors.Is(d.Committed(), syscall.EIO) {
		t.Error("the error is lost")
	}
}

// TestCheckFiles: each file that a checkpoint names must be there in its size. The best rows need
// no state of the optimizer, and a partition that is as it began has no files.
func TestCheckFiles(t *testing.T) {
	fs, dev, s := vfs.NewMem(), layouttest.Device(t), mustSpec(t, 300, 3, 4, 1)
	record := checkpointed(t, fs, dev, s) // of partitions 0 and 1
	good := func(what string, record, best []byte) {
		t.Helper()
		if err := CheckFiles(fs, "rows", s, record, best); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	bad := func(what string, record, best []byte, want string) {
		t.Helper()
		err := CheckFiles(fs, "rows", s, record, best)
		if !errors.Is(err, layout.ErrCorrupt) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", what, err, want)
		}
	}
	good("no checkpoint", nil, nil)
	good("a checkpoint", record, record)
	flipped := slices.Clone(record)
	flipped[len(flipped)-1] ^= 1
	bad("a damaged record", flipped, nil, "the record of partitions")
	bad("a damaged record of the best", record, flipped, "the record of partitions")
	for part := range 2 {
		state, rows := name(part, 1, stateFile), name(part, 1, rowsFile)
		for _, file := range []string{state, rows} {
			path := "rows/" + file
			whole := layouttest.ReadFile(t, fs, path)
			layouttest.WriteFile(t, fs, path, whole[:len(whole)-1])
			bad(file+" is cut off", record, nil, file)
			if err := fs.Remove(path); err != nil {
				t.Fatal(err)
			}
			bad(file+" is gone", record, nil, "missing")
			if file == rows {
				bad(file+" of the best is gone", nil, record, "missing")
			} else {
				good(file+" is gone, which the best does not need", nil, record)
			}
			layouttest.WriteFile(t, fs, path, whole)
		}
	}
	broken := errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpStat {
			return syscall.EIO
		}
		return nil
	}))
	err := CheckFiles(broken, "rows", s, record, nil)
	if !errors.Is(err, syscall.EIO) || errors.Is(err, layout.ErrCorrupt) {
		t.Errorf("a disk that cannot be asked: %v", err)
	}
}

// checkRows goes on from a record and reads all partitions of a version.
func checkRows(t *testing.T, fs vfs.FS, dev blockdev.Device, s FileSpec, record []byte,
	version int) {
	t.Helper()
	d, err := OpenFiles(fs, "rows", dev, s, record, nil)
	if err != nil {
		t.Fatal(err)
	}
	for part := range s.Map.Parts() {
		want := version
		if version == 1 && part == s.Map.Parts()-1 {
			want = 0 // it was not written
		}
		if !equal(t, &s, mustRead(t, d, part), part, want) {
			t.Fatalf("partition %d is not of version %d", part, want)
		}
	}
}

func FuzzRecord(f *testing.F) {
	uuid := [16]byte{1}
	f.Add(encodeRecord(uuid, []uint32{1, 0, 7}), 3)
	f.Add([]byte{1}, 0)
	f.Fuzz(func(t *testing.T, b []byte, parts int) {
		parts = max(0, parts) % 5000
		got, err := decodeRecord(b, uuid, parts)
		if err == nil && !slices.Equal(encodeRecord(uuid, got), b) {
			t.Fatal("another record")
		}
	})
}

func FuzzHeader(f *testing.F) {
	uuid := [16]byte{1}
	h := header{part: 1, generation: 2, parts: 3, graph: 100, nodes: 33, columns: 4,
		sums: []uint32{5, 6}}
	f.Add(h.encode(uuid))
	f.Fuzz(func(t *testing.T, b []byte) {
		sums, err := decodeHeader(b, uuid, &h)
		if err == nil && len(sums) != 2 {
			t.Fatal(sums)
		}
	})
}

// TestBytesWith: what the files take is what BytesWith says, whatever was written, kept as the best
// and put into checkpoints; with spare ones it is no more than DiskLimit.
func TestBytesWith(t *testing.T) {
	fs, dev := vfs.NewMem(), layouttest.Device(t)
	s := mustSpec(t, 1000, 5, 5, 1)
	d, err := CreateFiles(fs, "rows", dev, s)
	if err != nil {
		t.Fatal(err)
	}
	f, r, changed := frame(t, &s), rand.New(rand.NewPCG(3, 1)), roaring.New()
	for range 60 {
		more := roaring.New()
		for range r.IntN(4) {
			more.Add(uint32(r.IntN(5)))
		}
		changed.Or(more)
		want := d.BytesWith(changed)
		for it := more.Iterator(); it.HasNext(); {
			if err := d.Write(int(it.Next()), f); err != nil {
				t.Fatal(err)
			}
		}
		spare := int64(0)
		for bytes, files := range d.mu.spare {
			spare += bytes * int64(len(files))
		}
		got := dirBytes(t, fs)
		if got != want+spare || spare > 0 && got > s.DiskLimit() {
			t.Fatalf("the files have %d bytes, want %d and %d of spare ones, at most %d", got, want,
				spare, s.DiskLimit())
		}
		if r.IntN(2) == 0 {
			continue
		}
		if r.IntN(2) == 0 {
			d.KeepBest()
		}
		_, _, err := d.Prepare()
		if err = errors.Join(err, d.Committed()); err != nil {
			t.Fatal(err)
		}
		changed.Clear()
	}
	if err := d.Close(); err != nil || dirBytes(t, fs) != d.BytesWith(changed) {
		t.Errorf("closed, the files have %d bytes, want %d: %v", dirBytes(t, fs),
			d.BytesWith(changed), err)
	}
}

// TestHeaderOfAnother: a header that differs in one field from what is wanted is refused.
func TestHeaderOfAnother(t *testing.T) {
	uuid := [16]byte{1}
	h := header{part: 1, generation: 2, parts: 3, graph: 100, nodes: 33, columns: 4, first: 6,
		sums: []uint32{5, 6}}
	b := h.encode(uuid)
	if sums, err := decodeHeader(b, uuid, &h); err != nil || !slices.Equal(sums, h.sums) {
		t.Errorf("sums %v, want %v: %v", sums, h.sums, err)
	}
	for name, change := range map[string]func(*header){
		"partition":  func(h *header) { h.part++ },
		"generation": func(h *header) { h.generation++ },
		"partitions": func(h *header) { h.parts++ },
		"graph":      func(h *header) { h.graph++ },
		"nodes":      func(h *header) { h.nodes++ },
		"columns":    func(h *header) { h.columns++ },
		"first":      func(h *header) { h.first++ },
		"sums":       func(h *header) { h.sums = h.sums[:1] },
	} {
		want := h
		change(&want)
		if _, err := decodeHeader(b, uuid, &want); err == nil {
			t.Errorf("a header with other %s is taken", name)
		}
	}
}
