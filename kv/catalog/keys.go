package catalog

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"gdb/internal/codec"
	"gdb/kv"

	"github.com/cockroachdb/pebble/v2"
)

// A key is the letter of its kind, the version of the kind's encoding, and a name. The records of
// the graph and of runs come before the sets, so that merging these records does not touch the
// sets. A set is a head record and chunks; the key of a chunk ends in a zero byte and the chunk's
// big-endian number.
const (
	keyHold     = "h\x01"
	keyIndex    = "i\x01"
	keyMeta     = "m\x01"
	keySnapshot = "n\x01"
	keyProfile  = "p\x01"
	keyRun      = "r\x01"
	keySet      = "s\x01"
	keyChunk    = "t\x01"
)

// snapshotKey returns the key of the record of a snapshot: its number is big-endian, so that
// records are in order.
func snapshotKey(number uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte(keySnapshot), number)
}

// nameBytesMax bounds the names of sets, runs, indexes and profiles.
const nameBytesMax = 1000

// recordHead is the size of the checksum that stands before the payload of every record and covers
// key and payload. It is needed because blocks of large tables are not verified when the database
// is opened, and because it also tells whether the bytes belong to this key.
const recordHead = 4

// checkName refuses names that cannot be part of a key.
func checkName(what, name string) error {
	if name == "" || len(name) > nameBytesMax || strings.ContainsRune(name, 0) {
		return fmt.Errorf("kv: %s name %.40q: want 1 to %d bytes, none of them zero", what, name,
			nameBytesMax)
	}
	return nil
}

// chunkKey returns the key of a part of a set.
func chunkKey(name string, i uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte(keyChunk+name+"\x00"), i)
}

func encodeRecord(key, payload []byte) []byte {
	b := binary.LittleEndian.AppendUint32(make([]byte, 0, recordHead+len(payload)),
		codec.Checksum(key, payload))
	return append(b, payload...)
}

// decodeRecord returns the payload of a record; it shares memory with b.
func decodeRecord(key, b []byte) ([]byte, error) {
	d := codec.NewDec(b)
	sum := d.U32()
	payload := d.Bytes(d.Remaining())
	if d.Err() != nil {
		return nil, fmt.Errorf("record %q has %d bytes", key, len(b))
	}
	if got := codec.Checksum(key, payload); got != sum {
		return nil, fmt.Errorf("record %q has checksum %08x, its bytes give %08x", key, sum, got)
	}
	return payload, nil
}

// reader reads records inside a transaction.
type reader struct {
	c  *Catalog
	db *pebble.DB
	s  *seal
}

// get calls do with the payload of a record, which do may use only until it returns. It returns
// ErrNotFound if there is no such record.
func (r reader) get(key []byte, do func(payload []byte) error) error {
	v, closer, err := r.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return kv.ErrNotFound
	}
	if err != nil {
		return r.c.dbError("read", err)
	}
	payload, err := decodeRecord(key, v)
	if err != nil {
		err = kv.DamagedFile(r.c.rel(""), "%v", err)
	} else {
		err = do(payload)
	}
	return errors.Join(err, closer.Close())
}

// each calls do for every record of a kind in the order of names.
func (r reader) each(kind string, do func(name string, payload []byte) error) error {
	end := []byte(kind)
	end[len(end)-1]++
	it, err := r.db.NewIter(&pebble.IterOptions{LowerBound: []byte(kind), UpperBound: end})
	if err != nil {
		return r.c.dbError("read", err)
	}
	err = r.eachOf(it, kind, do)
	if closing := it.Close(); closing != nil && err == nil {
		err = r.c.dbError("read", closing)
	}
	return err
}

func (r reader) eachOf(it *pebble.Iterator, kind string,
	do func(name string, payload []byte) error) error {
	for ok := it.First(); ok; ok = it.Next() {
		v, err := it.ValueAndErr()
		if err != nil {
			return r.c.dbError("read", err)
		}
		payload, err := decodeRecord(it.Key(), v)
		if err != nil {
			return kv.DamagedFile(r.c.rel(""), "%v", err)
		}
		if err := do(string(it.Key()[len(kind):]), payload); err != nil {
			return err
		}
	}
	if err := it.Error(); err != nil {
		return r.c.dbError("read", err)
	}
	return nil
}

// writer writes records inside a transaction.
type writer struct {
	reader
	ctx context.Context
}

// put writes a record.
func (w writer) put(key, payload []byte) error {
	// Without a log there is nothing to sync here; the seal makes it durable.
	if err := w.db.Set(key, encodeRecord(key, payload), pebble.NoSync); err != nil {
		return w.c.dbError("write", err)
	}
	return nil
}

// remove takes a record away.
func (w writer) remove(key []byte) error {
	if err := w.db.Delete(key, pebble.NoSync); err != nil {
		return w.c.dbError("delete", err)
	}
	return nil
}

// flush moves the records that were put from memory to files. A flush before the sets and one after
// them keep small records and sets in different files.
func (w writer) flush() error {
	if err := w.db.Flush(); err != nil {
		return w.c.dbError("flush", err)
	}
	return nil
}

// tidy merges the files of small records in one of tidyEvery transactions. It does not rewrite
// sets.
func (w writer) tidy() error {
	if w.s.generation%tidyEvery != tidyEvery-1 {
		return nil
	}
	if err := w.db.Compact(w.ctx, []byte(keyHold), []byte(keySet), false); err != nil {
		return w.c.dbError("compact", err)
	}
	return nil
}

// chunkWriter stores the bytes that are written to it as the chunks of a set.
type chunkWriter struct {
	w    writer
	name string
	n    uint32 // chunks put
	size uint64 // bytes written
	buf  []byte
}

// chunkBytes is the size of a chunk, and so the memory that writing or reading a set takes besides
// the set itself.
const chunkBytes = 1 << 20

// Write implements io.Writer.
func (c *chunkWriter) Write(p []byte) (int, error) {
	c.size += uint64(len(p))
	for rest := p; len(rest) > 0; {
		n := min(len(rest), chunkBytes-len(c.buf))
		c.buf, rest = append(c.buf, rest[:n]...), rest[n:]
		if len(c.buf) == chunkBytes {
			if err := c.flush(); err != nil {
				return 0, err
			}
		}
	}
	return len(p), nil
}

func (c *chunkWriter) flush() error {
	if err := c.w.ctx.Err(); err != nil {
		return err
	}
	if err := c.w.put(chunkKey(c.name, c.n), c.buf); err != nil {
		return err
	}
	c.n, c.buf = c.n+1, c.buf[:0]
	return nil
}

// chunkReader reads the chunks of a set one after the other.
type chunkReader struct {
	r       reader
	name    string
	i, n    uint32
	current []byte
}

// Read implements io.Reader.
func (c *chunkReader) Read(p []byte) (int, error) {
	for len(c.current) == 0 {
		if c.i == c.n {
			return 0, io.EOF
		}
		err := c.r.get(chunkKey(c.name, c.i), func(payload []byte) error {
			c.current = append(c.current[:0], payload...)
			return nil
		})
		if errors.Is(err, kv.ErrNotFound) {
			return 0, kv.DamagedFile(c.r.c.rel(""), "part %d of %d of set %q is missing", c.i, c.n,
				c.name)
		}
		if err != nil {
			return 0, err
		}
		c.i++
	}
	n := copy(p, c.current)
	c.current = c.current[n:]
	return n, nil
}
