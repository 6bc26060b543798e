package catalog

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"gdb/internal/codec"
	"gdb/internal/files"
	"gdb/kv"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// The seal is the file that makes a catalog: it lists every file of the database with size and
// checksum. Pebble by itself takes a torn or flipped tail of its logs for their end; with the seal
// each bit of each file is accounted for.
//
// It is also the commit pointer. A transaction writes new files only, never into a sealed one, and
// the rename of the new seal over the old one is the moment at which it has happened. What is not
// listed is left from a transaction that did not end, and is neither read nor kept.
//
//	0        4        8         12     28           36      40
//	+--------+--------+---------+------+------------+-------+--------------------------------+
//	| crc32c | "GDBS" | version | uuid | generation | count | count x (name, size, checksum) |
//	+--------+--------+---------+------+------------+-------+--------------------------------+
//
// name is a uint32 length and the bytes, size a uint64, checksum a uint32: the CRC32C of the file.
// The checksum at the start covers all bytes after itself.
type seal struct {
	uuid       kv.UUID
	generation uint64 // counts transactions; the first is 1
	files      []sealedFile
}

// sealedFile is the seal's record of one file of the database, which lies in the catalog's
// directory.
type sealedFile struct {
	name string
	size uint64
	sum  uint32
}

const (
	sealName    = "SEAL"
	sealTemp    = "SEAL.tmp"
	sealMagic   = "GDBS"
	sealVersion = 1
	sealFileMin = 4 + 8 + 4 // the least bytes of a listed file
	sealBytes   = 1 << 20   // a seal that is larger is no seal
)

func (s *seal) encode() []byte {
	e := codec.Enc{B: make([]byte, 4, 64)}
	e.Bytes([]byte(sealMagic))
	e.U32(sealVersion)
	e.Bytes(s.uuid[:])
	e.U64(s.generation)
	e.U32(uint32(len(s.files)))
	for _, f := range s.files {
		e.String(f.name)
		e.U64(f.size)
		e.U32(f.sum)
	}
	sum := codec.Enc{}
	sum.U32(codec.Checksum(e.B[4:]))
	copy(e.B, sum.B)
	return e.B
}

// errSealVersion says that a seal is intact but of another version.
var errSealVersion = errors.New("seal of another version")

func decodeSeal(b []byte) (*seal, error) {
	d := codec.NewDec(b)
	sum, magic, version := d.U32(), string(d.Bytes(4)), d.U32()
	s := &seal{}
	copy(s.uuid[:], d.Bytes(16))
	s.generation = d.U64()
	n := d.U32()
	if d.Err() != nil {
		return nil, fmt.Errorf("%d bytes are no seal", len(b))
	}
	if got := codec.Checksum(b[4:]); got != sum {
		return nil, fmt.Errorf("it has checksum %08x, its bytes give %08x", sum, got)
	}
	if magic != sealMagic {
		return nil, fmt.Errorf("it begins with %q, want %q", magic, sealMagic)
	}
	if version != sealVersion {
		return nil, fmt.Errorf("%w: %d, this gdb reads %d", errSealVersion, version, sealVersion)
	}
	for i := uint32(0); i < n && d.Remaining() >= sealFileMin; i++ {
		s.files = append(s.files, sealedFile{d.String(), d.U64(), d.U32()})
	}
	if d.Err() != nil || d.Remaining() != 0 || len(s.files) != int(n) {
		return nil, fmt.Errorf("it does not hold the %d files it counts", n)
	}
	return s, s.check()
}

// check refuses names that do not belong in the catalog's directory.
func (s *seal) check() error {
	for i, f := range s.files {
		if f.name == "" || strings.ContainsAny(f.name, "/\\\x00") || !isDatabaseFile(f.name) {
			return fmt.Errorf("it lists a file %q", f.name)
		}
		if i > 0 && f.name <= s.files[i-1].name {
			return fmt.Errorf("its files are out of order at %q", f.name)
		}
	}
	return nil
}

// isDatabaseFile reports whether a file is one of Pebble's, and not the seal or the lock. The lock
// must never be opened: closing it again would release the lock that this process holds.
func isDatabaseFile(name string) bool {
	return name != sealName && name != sealTemp && name != lockName && name != "." && name != ".."
}

// find returns the record of a file.
func (s *seal) find(name string) (sealedFile, bool) {
	i, ok := slices.BinarySearchFunc(s.files, name, func(f sealedFile, name string) int {
		return strings.Compare(f.name, name)
	})
	if !ok {
		return sealedFile{}, false
	}
	return s.files[i], true
}

// readSeal loads the seal of the catalog, or ErrNoStore if there is none.
func (c *Catalog) readSeal() (*seal, error) {
	path := c.fs.PathJoin(c.dir, sealName)
	f, err := c.fs.Open(path)
	if oserror.IsNotExist(err) {
		return nil, fmt.Errorf("kv: %s: %w: there is no %s; ingest it first, or give another path",
			c.dir, kv.ErrNoStore, sealName)
	}
	if err != nil {
		return nil, fmt.Errorf("kv: open %s: %w", path, err)
	}
	b, err := io.ReadAll(io.LimitReader(f, sealBytes+1))
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("kv: read %s: %w", path, err)
	}
	s, err := decodeSeal(b)
	if errors.Is(err, errSealVersion) {
		return nil, fmt.Errorf("kv: %s: %w: %w", path, kv.ErrFormat, err)
	}
	if err != nil {
		return nil, kv.DamagedFile(c.rel(sealName), "%v", err)
	}
	return s, nil
}

// writeSeal commits: when it returns without error, s is durable. If the last step, the sync of
// the directory, fails, then either seal may be found later.
func (c *Catalog) writeSeal(s *seal) error {
	if err := files.WriteAtomic(c.fs, c.fs.PathJoin(c.dir, sealName), s.encode()); err != nil {
		return fmt.Errorf("kv: seal %s: %w", c.dir, err)
	}
	return nil
}

// digest compares a file with its record: its size, and its bytes too if whole is set. It returns a
// DamageError if they differ.
func (c *Catalog) digest(f sealedFile, whole bool) error {
	path, rel := c.fs.PathJoin(c.dir, f.name), c.rel(f.name)
	file, err := c.fs.Open(path)
	if oserror.IsNotExist(err) {
		return kv.DamagedFile(rel, "the file is missing")
	}
	if err != nil {
		return fmt.Errorf("kv: open %s: %w", path, err)
	}
	size, sum, err := digestFile(file, f, whole)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("kv: read %s: %w", path, err)
	}
	if size != f.size {
		return kv.DamagedFile(rel, "it has %d bytes, the seal says %d", size, f.size)
	}
	if sum != f.sum {
		return kv.DamagedFile(rel, "its %d bytes give checksum %08x, the seal says %08x", size, sum,
			f.sum)
	}
	return nil
}

func digestFile(file vfs.File, f sealedFile, whole bool) (size uint64, sum uint32, err error) {
	info, err := file.Stat()
	if err != nil {
		return 0, 0, err
	}
	if size := uint64(info.Size()); size != f.size || !whole {
		return size, f.sum, nil
	}
	buf := make([]byte, min(f.size, 64<<10)+1)
	for {
		n, err := file.Read(buf)
		sum, size = codec.ChecksumUpdate(sum, buf[:n]), size+uint64(n)
		if err == io.EOF {
			return size, sum, nil
		}
		if err != nil {
			return size, sum, err
		}
	}
}

// IsOwn reports whether a file in the directory of a catalog can belong to the catalog: a sealed
// file, or a file that a killed transaction left and the next one removes.
func IsOwn(name string) bool {
	switch name {
	case sealName, sealTemp, lockName:
		return true
	}
	for _, prefix := range []string{"MANIFEST-", "OPTIONS-", "marker."} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	number, kind, _ := strings.Cut(strings.TrimPrefix(name, "temporary."), ".")
	_, err := strconv.ParseUint(number, 10, 64)
	return err == nil && slices.Contains([]string{"sst", "log", "blob", "dbtmp"}, kind)
}
