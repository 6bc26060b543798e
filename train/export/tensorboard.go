package export

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"time"

	"gdb/train/runs"

	"github.com/cockroachdb/pebble/v2/vfs"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// masked returns the checksum of a record, rotated and with a constant added, so that a checksum of
// checksums differs.
func masked(b []byte) uint32 {
	c := crc32.Checksum(b, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}

// appendRecord frames the bytes of an event.
func appendRecord(dst, event []byte) []byte {
	at := len(dst)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(len(event)))
	dst = binary.LittleEndian.AppendUint32(dst, masked(dst[at:]))
	dst = append(dst, event...)
	return binary.LittleEndian.AppendUint32(dst, masked(event))
}

// Tags of fields: number<<3 | wire type, of Event, Summary and Summary.Value.
const (
	eventTime, eventStep       = 1<<3 | 1, 2 << 3
	eventVersion, eventSummary = 3<<3 | 2, 5<<3 | 2
	summaryValue               = 1<<3 | 2
	valueTag, valueSimple      = 1<<3 | 2, 2<<3 | 5
)

func appendBytes(dst []byte, tag byte, b []byte) []byte {
	return append(binary.AppendUvarint(append(dst, tag), uint64(len(b))), b...)
}

// appendHead writes the time and step of an event.
func appendHead(dst []byte, at time.Time, step uint64) []byte {
	dst = append(dst, eventTime)
	dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(float64(at.UnixMicro())/1e6))
	return binary.AppendUvarint(append(dst, eventStep), step)
}

// appendScalar writes a value under a name.
func appendScalar(dst []byte, name string, v float64) []byte {
	value := appendBytes(nil, valueTag, []byte(name))
	value = binary.LittleEndian.AppendUint32(append(value, valueSimple),
		math.Float32bits(float32(v)))
	return appendBytes(dst, summaryValue, value)
}

// EventWriter writes the event file of one run.
type EventWriter struct {
	path string
	file vfs.File
	now  func() time.Time
}

// CreateEvents begins an event file in dir/run. A run that goes on begins another: TensorBoard
// reads all files of a directory.
func CreateEvents(fs vfs.FS, dir, run string) (*EventWriter, error) {
	return createEvents(fs, dir, run, time.Now)
}

func createEvents(fs vfs.FS, dir, run string, now func() time.Time) (*EventWriter, error) {
	dir = fs.PathJoin(dir, run)
	if err := fs.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("tensorboard: make %s: %w", dir, err)
	}
	w := &EventWriter{now: now, path: fs.PathJoin(dir,
		fmt.Sprintf("events.out.tfevents.%d.gdb", now().UnixNano()))}
	var err error
	if w.file, err = fs.Create(w.path, vfs.WriteCategoryUnspecified); err != nil {
		return nil, fmt.Errorf("tensorboard: %w", err)
	}
	event := appendBytes(appendHead(nil, now(), 0), eventVersion, []byte("brain.Event:2"))
	if err := w.write(event); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// Epoch writes what an epoch reached and cost.
func (w *EventWriter) Epoch(e runs.Record) error {
	var summary []byte
	for _, s := range e.Scalars() {
		summary = appendScalar(summary, s.Name, s.Value)
	}
	head := appendHead(nil, w.now(), uint64(e.Ordinal()))
	return w.write(appendBytes(head, eventSummary, summary))
}

func (w *EventWriter) write(event []byte) error {
	if _, err := w.file.Write(appendRecord(nil, event)); err != nil {
		return fmt.Errorf("tensorboard: write %s: %w", w.path, err)
	}
	return nil
}

// Close ends the file.
func (w *EventWriter) Close() error {
	if err := w.file.Close(); err != nil {
		return fmt.Errorf("tensorboard: close %s: %w", w.path, err)
	}
	return nil
}
