package ids

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"gdb/internal/codec"
	"gdb/kv"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// TestIDsFlips flips bits at random places of both files: Verify names file, block and offset of
// each, and a lookup never answers wrongly.
func TestIDsFlips(t *testing.T) {
	fs, random, dev := vfs.NewMem(), rand.New(rand.NewPCG(7, 8)), testDevice(t)
	exts := append(names(400), strings.Repeat("long", 500))
	m, err := writeIDs(fs, "store", exts, hashTest)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{ForwardPath, ReversePath} {
		whole := readAll(t, fs, "store/"+path)
		for range flipPlaces {
			at, bit := random.IntN(len(whole)), random.IntN(8)
			b := bytes.Clone(whole)
			b[at] ^= 1 << bit
			writeAll(t, fs, "store/"+path, b)
			found := must(Verify(t.Context(), dev, fs, "store", m, at%2 == 0))(t)
			block := int64(at / BlockBytes)
			if len(found) != 1 || found[0].Path != path || found[0].Block != block ||
				found[0].Offset != block*BlockBytes {
				t.Fatalf("%s byte %d (block %d) bit %d: findings %v", path, at, block, bit, found)
			}
			ids, err := Open(t.Context(), dev, fs, "store", m)
			if err == nil {
				err = lookUp(t, ids, exts, random.IntN(len(exts)))
				if err := ids.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if err != nil && !errors.Is(err, kv.ErrDamaged) {
				t.Fatalf("%s byte %d: %v, want ErrDamaged", path, at, err)
			}
		}
		writeAll(t, fs, "store/"+path, whole)
	}
	if found := must(Verify(t.Context(), dev, fs, "store", m, true))(t); len(found) > 0 {
		t.Errorf("findings in whole files: %v", found)
	}
}

// lookUp asks for one node both ways. An answer is right, or there is an error.
func lookUp(t *testing.T, ids Dictionary, exts []string, i int) error {
	t.Helper()
	id, err := ids.Internal(t.Context(), exts[i])
	if err == nil && id != kv.NodeID(i) {
		t.Fatalf("Internal(%.20q) = %d, want %d", exts[i], id, i)
	}
	got, err2 := ids.External(t.Context(), []kv.NodeID{kv.NodeID(i)}, nil)
	if err2 == nil && got[0] != exts[i] {
		t.Fatalf("External(%d) = %.20q, want %.20q", i, got[0], exts[i])
	}
	return errors.Join(err, err2)
}

// TestVerifyIDsGoesOn damages several blocks and a whole file: each has its finding.
func TestVerifyIDsGoesOn(t *testing.T) {
	fs, dev := vfs.NewMem(), testDevice(t)
	m, err := writeIDs(fs, "store", names(2000), hashTest)
	if err != nil {
		t.Fatal(err)
	}
	m.Files = nil // lengths are compared with these before anything is read
	b := readAll(t, fs, "store/"+ForwardPath)
	blocks := len(b) / BlockBytes
	want := []int64{1, 3, 4, int64(blocks) - 2} // data, and the index
	for _, block := range want {
		b[block*BlockBytes+100] ^= 1
	}
	writeAll(t, fs, "store/"+ForwardPath, b)
	for what, change := range map[string]func(){
		"is missing": func() {
			if err := fs.Remove("store/" + ReversePath); err != nil {
				t.Fatal(err)
			}
		},
		"multiple of 4096": func() { writeAll(t, fs, "store/"+ReversePath, make([]byte, 5000)) },
		"header has":       func() { writeAll(t, fs, "store/"+ReversePath, make([]byte, 8192)) },
	} {
		change()
		found := must(Verify(t.Context(), dev, fs, "store", m, true))(t)
		var got []int64
		for _, f := range found[:max(len(found), 1)-1] {
			got = append(got, f.Block)
		}
		last := found[len(found)-1]
		if fmt.Sprint(got) != fmt.Sprint([]int64{want[3], 1, 3, 4}) || last.Path != ReversePath ||
			!strings.Contains(last.What, what) {
			t.Errorf("%s: findings %v", what, found)
		}
	}
}

// TestVerifyIDsMeaning writes files whose checksums are right and whose contents are not.
func TestVerifyIDsMeaning(t *testing.T) {
	exts, dev := names(1000), testDevice(t)
	zeroHash := func(string) uint64 { return 0 }
	for name, c := range map[string]struct {
		write func(fs vfs.FS) (*kv.Meta, error)
		path  string
		full  bool // is found by a full check only
		what  string
	}{
		"another hash": {func(fs vfs.FS) (*kv.Meta, error) {
			return writeIDs(fs, "store", exts, zeroHash)
		}, ForwardPath, true, "not its own"},
		"node out of range": {func(fs vfs.FS) (*kv.Meta, error) {
			m, err := writeIDs(fs, "store", exts, hashTest)
			if err == nil {
				err = forwardOf(fs, []entry{{hash: hashTest("a"), ext: "a", id: 1}})
				m.Nodes = 1
			}
			return m, err
		}, ForwardPath, false, "node 1 of 1"},
		"swapped": {func(fs vfs.FS) (*kv.Meta, error) {
			m, err := writeIDs(fs, "store", exts, hashTest)
			if err == nil {
				swapped := append([]string{exts[1], exts[0]}, exts[2:]...)
				err = reverseOf(fs, m.UUID, swapped)
			}
			return m, err
		}, ReversePath, true, "nodes 0 to 1 are not"},
		"one changed": {func(fs vfs.FS) (*kv.Meta, error) {
			m, err := writeIDs(fs, "store", exts, hashTest)
			if err == nil {
				err = reverseOf(fs, m.UUID, append(exts[:999:999], "another"))
			}
			return m, err
		}, ReversePath, true, "nodes 999 to 999 are not"},
		"too few": {func(fs vfs.FS) (*kv.Meta, error) {
			m, err := writeIDs(fs, "store", exts, hashTest)
			if err == nil {
				err = reverseOf(fs, m.UUID, exts[:999])
			}
			return m, err
		}, ReversePath, false, "counts 1000 nodes"},
	} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			m := must(c.write(fs))(t)
			m.Files = nil // which do not know of what was written again
			found := must(Verify(t.Context(), dev, fs, "store", m, true))(t)
			if len(found) == 0 || found[0].Path != c.path ||
				!strings.Contains(found[0].What, c.what) {
				t.Errorf("full check: findings %v, want %s: %s", found, c.path, c.what)
			}
			found = must(Verify(t.Context(), dev, fs, "store", m, false))(t)
			if c.full != (len(found) == 0) {
				t.Errorf("check that is not full: findings %v", found)
			}
		})
	}
}

// forwardOf writes the forward file of a store of writeIDs.
func forwardOf(fs vfs.FS, entries []entry) error {
	w, err := NewForwardWriter(fs, "store/"+ForwardPath, kv.UUID{9, 8, 7}, testSeed)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := w.Add(e.hash, []byte(e.ext), e.id); err != nil {
			return errors.Join(err, w.Abort())
		}
	}
	_, err = w.Finish()
	return err
}

// reverseOf writes the reverse file of a store of writeIDs.
func reverseOf(fs vfs.FS, uuid kv.UUID, exts []string) error {
	w, err := NewReverseWriter(fs, "store/"+ReversePath, uuid)
	if err != nil {
		return err
	}
	for _, ext := range exts {
		if err := w.Add([]byte(ext)); err != nil {
			return errors.Join(err, w.Abort())
		}
	}
	_, err = w.Finish()
	return err
}

// TestVerifyIDsOrder writes blocks by hand, past the writer that would refuse them: entries out of
// order in a block and between two, a wrong flag, an index that says otherwise.
func TestVerifyIDsOrder(t *testing.T) {
	block := func(flags uint16, hashes ...uint64) []byte {
		e := codec.Enc{B: make([]byte, 4)}
		e.U16(uint16(len(hashes)))
		e.U16(flags)
		for _, h := range hashes {
			e.U64(h)
		}
		for i := range hashes {
			e.U32(uint32(i))
		}
		for i := range hashes {
			e.U16(uint16(i + 1))
		}
		e.Bytes(bytes.Repeat([]byte("x"), len(hashes)))
		e.Pad(BlockBytes)
		return e.B
	}
	type key struct {
		key uint64
		b   []byte
	}
	for name, c := range map[string]struct {
		blocks []key
		found  int64 // block, -1 for none
	}{
		"good":               {[]key{{1, block(0, 1, 2)}, {3, block(0, 3)}}, -1},
		"good, carried":      {[]key{{1, block(0, 1)}, {2, block(0, 2)}}, -1},
		"descends":           {[]key{{1, block(0, 2, 1)}}, 1},
		"descends between":   {[]key{{5, block(0, 5, 6)}, {5, block(0, 5)}}, 2},
		"same twice":         {[]key{{1, block(0, 1, 1)}}, 1},
		"carried at first":   {[]key{{1, block(flagCarried, 1)}}, 1},
		"carried, not equal": {[]key{{1, block(0, 1)}, {2, block(flagCarried, 2)}}, 2},
		"index":              {[]key{{1, block(0, 1)}, {2, block(0, 3)}}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			fs, n := vfs.NewMem(), uint64(0)
			m := must(writeIDs(fs, "store", nil, hashTest))(t)
			fields := codec.Enc{}
			fields.U64(testSeed)
			w := must(newBlockWriter(fs, "store/"+ForwardPath, ForwardKind, m.UUID, 8, fields.B))(t)
			for _, k := range c.blocks {
				w.entries += uint64(k.b[4])
				w.data(k.b, k.key)
			}
			n = w.entries
			must(w.finish(ForwardPath))(t)
			if err := reverseOf(fs, m.UUID, names(int(n))); err != nil {
				t.Fatal(err)
			}
			m.Nodes, m.Files = n, nil
			found := must(Verify(t.Context(), testDevice(t), fs, "store", m, false))(t)
			if c.found < 0 && len(found) > 0 ||
				c.found >= 0 && (len(found) == 0 || found[0].Block != c.found) {
				t.Errorf("findings %v, want block %d", found, c.found)
			}
		})
	}
}

// TestIDsErrors fails each operation of the file system: an error comes out of writing, opening,
// looking up and verifying, and no answer is wrong.
func TestIDsErrors(t *testing.T) {
	exts, met := names(300), 0
	for i := int32(0); ; i++ {
		mem, inject := vfs.NewMem(), errorfs.OnIndex(i)
		fs := errorfs.Wrap(mem, inject)
		err := func() error {
			m, err := writeIDs(fs, "store", exts, hashTest)
			if err != nil {
				return err
			}
			ids, err := Open(t.Context(), testDevice(t), fs, "store", m)
			if err != nil {
				return err
			}
			err = lookUp(t, ids, exts, 7)
			found, err2 := Verify(t.Context(), testDevice(t), fs, "store", m, true)
			if len(found) > 0 {
				t.Errorf("operation %d: findings %v", i, found)
			}
			return errors.Join(err, err2, ids.Close())
		}()
		if err == nil && inject.Load() >= 0 {
			break // fewer operations than i
		}
		if !errors.Is(err, errorfs.ErrInjected) {
			t.Errorf("operation %d failed, and the error is %v", i, err)
		}
		met++
	}
	if met < 20 {
		t.Errorf("only %d operations could fail", met)
	}
}

// TestForeignNodesOfIDs: an id that leads to the first number that is no node is damage.
func TestForeignNodesOfIDs(t *testing.T) {
	fs, dev := vfs.NewMem(), testDevice(t)
	exts := names(3)
	m, err := writeIDs(fs, "store", exts, hashTest)
	if err != nil {
		t.Fatal(err)
	}
	b := readAll(t, fs, "store/"+ForwardPath)
	block := b[BlockBytes:][:BlockBytes]
	for i := range exts { // behind sum, counts and hashes
		binary.LittleEndian.PutUint32(block[8+8*len(exts)+4*i:], uint32(m.Nodes))
	}
	binary.LittleEndian.PutUint32(block, codec.BlockSum(ForwardKind, m.UUID, 1, block[4:]))
	writeAll(t, fs, "store/"+ForwardPath, b)
	ids, err := Open(t.Context(), dev, fs, "store", m)
	if err != nil {
		t.Fatal(err)
	}
	defer ids.Close()
	for _, ext := range exts {
		if id, err := ids.Internal(t.Context(), ext); !errors.Is(err, kv.ErrDamaged) {
			t.Errorf("%s is node %d of %d, %v: want damage", ext, id, m.Nodes, err)
		}
	}
}

// TestIDsOfAnotherVersion: a dictionary of a later format is not called damaged.
func TestIDsOfAnotherVersion(t *testing.T) {
	fs := vfs.NewMem()
	m, err := writeIDs(fs, "store", names(5), hashTest)
	if err != nil {
		t.Fatal(err)
	}
	b := readAll(t, fs, "store/"+ReversePath)
	b[8]++ // the version
	e := codec.Enc{}
	e.U32(codec.Checksum(b[4:BlockBytes]))
	copy(b, e.B)
	writeAll(t, fs, "store/"+ReversePath, b)
	_, err = Open(t.Context(), testDevice(t), fs, "store", m)
	if !errors.Is(err, kv.ErrFormat) || errors.Is(err, kv.ErrDamaged) {
		t.Errorf("a later version: %v, want ErrFormat", err)
	}
}

// TestLengthOfIDs: a file that is not as long as the catalog says is damaged before any of it is
// read, however long it is.
func TestLengthOfIDs(t *testing.T) {
	fs := vfs.NewMem()
	m := must(writeIDs(fs, "store", names(2000), hashTest))(t)
	for _, path := range []string{ForwardPath, ReversePath} {
		good := readAll(t, fs, "store/"+path)
		for _, bytes := range []int{0, 1, 2 * BlockBytes, len(good) + BlockBytes} {
			writeAll(t, fs, "store/"+path, make([]byte, bytes))
			want := fmt.Sprintf("file is %d bytes long, want %d", bytes, len(good))
			if _, err := Open(t.Context(), testDevice(t), fs, "store", m); err == nil ||
				!errors.Is(err, kv.ErrDamaged) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s of %d bytes: %v", path, bytes, err)
			}
		}
		writeAll(t, fs, "store/"+path, good)
	}
}
