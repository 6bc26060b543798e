package blockdev_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"gdb/blockdev"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func TestContract(t *testing.T) {
	blockdev.RaiseGOMAXPROCS()
	for _, opt := range []blockdev.Options{
		{}, {Backend: blockdev.Auto, QueueDepth: 3}, {Backend: blockdev.URing},
		{Backend: blockdev.URing, QueueDepth: 1}, {Backend: blockdev.URing, QueueDepth: 7},
		{Backend: blockdev.Pread}, {Backend: blockdev.Pread, QueueDepth: 1},
		{Backend: blockdev.Buffered}, {Backend: blockdev.MMap}, {Backend: blockdev.Memory},
	} {
		name := string(opt.Backend)
		if opt.QueueDepth > 1 && testing.Short() {
			continue // as those of one request at a time, and of many
		}
		if opt.QueueDepth > 0 {
			name += " depth=" + string(rune('0'+opt.QueueDepth))
		}
		t.Run("backend="+name, func(t *testing.T) {
			if opt.Backend == blockdev.URing {
				skipWithoutRing(t)
			}
			runContract(t, func() (blockdev.Device, error) { return blockdev.Open(opt) })
		})
	}
}

func skipWithoutRing(t *testing.T) {
	t.Helper()
	dev, err := blockdev.Open(blockdev.Options{Backend: blockdev.URing})
	if err != nil {
		t.Skipf("no io_uring on this machine: %v", err)
	}
	if err := dev.Close(); err != nil {
		t.Fatal(err)
	}
}

const fileBytes = 3<<20 + 5*blockdev.Align

// runContract checks the contract on devices that open returns. Each test opens its own.
func runContract(t *testing.T, open func() (blockdev.Device, error)) {
	for _, c := range []struct {
		name string
		test func(*testing.T, blockdev.Device)
	}{
		{"random batches", testRandomBatches},
		{"concurrent callers", testConcurrentCallers},
		{"file systems mixed", testMixed},
		{"big requests", testBigRequests},
		{"nothing to read", testNothing},
		{"invalid requests", testInvalid},
		{"invalid files", testInvalidFiles},
		{"truncated file", testTruncated},
		{"cancelled before", testCancelledBefore},
		{"cancelled within", testCancelledWithin},
		{"closed", testClosed},
		{"close waits", testCloseWaits},
		{"stats", testStats},
	} {
		t.Run(c.name, func(t *testing.T) {
			dev, err := open()
			if err != nil {
				t.Fatal(err)
			}
			c.test(t, dev)
			if err := dev.Close(); err != nil && c.name != "closed" {
				t.Fatal(err)
			}
		})
	}
}

// sample is a file of a test, with what it holds.
type sample struct {
	file    blockdev.File
	path    string
	content []byte
}

// mustSample writes a file of n bytes to the operating system's file system and opens it.
func mustSample(t *testing.T, dev blockdev.Device, name string, n int) sample {
	t.Helper()
	s := sample{path: filepath.Join(t.TempDir(), name), content: pattern(name, n)}
	if err := os.WriteFile(s.path, s.content, 0o600); err != nil {
		t.Fatal(err)
	}
	s.mustOpen(t, dev, vfs.Default)
	return s
}

// mustMemSample makes a sample as mustSample does, in an in-memory file system.
func mustMemSample(t *testing.T, dev blockdev.Device, name string, n int) sample {
	t.Helper()
	fs := vfs.NewMem()
	s := sample{path: name, content: pattern(name, n)}
	f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	// Write may change what it is given.
	if _, err := f.Write(bytes.Clone(s.content)); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	s.mustOpen(t, dev, fs)
	return s
}

func (s *sample) mustOpen(t *testing.T, dev blockdev.Device, fs vfs.FS) {
	t.Helper()
	f, err := dev.OpenFile(fs, s.path)
	if err != nil {
		t.Fatal(err)
	}
	if f.Size() != int64(len(s.content)) || f.Path() != s.path {
		t.Fatalf("opened %s of %d bytes, want %s of %d", f.Path(), f.Size(), s.path,
			len(s.content))
	}
	s.file = f
}

func (s *sample) mustClose(t *testing.T) {
	t.Helper()
	if err := s.file.Close(); err != nil {
		t.Fatal(err)
	}
}

// pattern returns n bytes of which every 8 say where they stand and in which file.
func pattern(name string, n int) []byte {
	b := make([]byte, n)
	for i := 0; i+8 <= n; i += 8 {
		binary.LittleEndian.PutUint64(b[i:], uint64(i)<<16|uint64(name[0])<<8|0xa5)
	}
	return b
}

// batchOf returns n requests of up to sectors*Align bytes at random places of the samples.
func batchOf(rng *rand.Rand, n, sectors int, samples ...sample) []blockdev.Request {
	reqs := make([]blockdev.Request, n)
	for i := range reqs {
		s := samples[rng.IntN(len(samples))]
		all := len(s.content) / blockdev.Align
		want := 1 + rng.IntN(min(sectors, all))
		off := int64(rng.IntN(all-want+1)) * blockdev.Align
		reqs[i] = blockdev.Request{File: s.file, Off: off,
			Buf: buffer(rng, want*blockdev.Align)}
	}
	return reqs
}

// buffer returns a buffer that may be aligned to no more than Align, as the contract allows.
func buffer(rng *rand.Rand, n int) []byte {
	skip := rng.IntN(2) * blockdev.Align
	b := blockdev.AlignedBuffer(n + skip)[skip:]
	fill(b, 0xee)
	return b
}

// fill sets all bytes of b to v. It copies what is filled already, since a loop over bytes is slow
// under the race detector.
func fill(b []byte, v byte) {
	if len(b) == 0 {
		return
	}
	b[0] = v
	for n := 1; n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}

// mustHold checks that every buffer holds the bytes of its file.
func mustHold(t *testing.T, reqs []blockdev.Request, samples ...sample) {
	t.Helper()
	for i, r := range reqs {
		for _, s := range samples {
			if s.file != r.File {
				continue
			}
			want := s.content[r.Off : r.Off+int64(len(r.Buf))]
			if !bytes.Equal(r.Buf, want) {
				t.Fatalf("request %d: %s at %d, %d bytes: not the bytes of the file", i, s.path,
					r.Off, len(r.Buf))
			}
		}
	}
}

// seeded returns a random source and prints its seed.
func seeded(t *testing.T) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}
