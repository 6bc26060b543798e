package entities

import (
	"fmt"

	"gdb/internal/codec"
	"gdb/internal/mem"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// The vectors of entities, and the optimizer's state of each, are on disk by partition. A partition
// is read and written whole.
//
// Files to which a checkpoint refers are not overwritten. A partition that changes is written to
// new files beside those of the checkpoint, and the next checkpoint names these. Files that no
// checkpoint names any more are reused under a new name. So the disk holds each partition at most
// twice, and its vectors once more as they were in the best evaluation, which needs nothing of the
// optimizer. An owner that makes a checkpoint before Files.BytesWith exceeds
// FileSpec.DiskLimit never has more on disk than twice the partitions.
//
// # Files
//
// DIR/PART-GENERATION.rows holds the vectors, and PART-GENERATION.state the optimizer's state. Each
// is a header block followed by arrays of float32, (nodes of the partition, columns), each padded
// with zeros to a multiple of 4096 bytes. Arrays are numbered across both files: the vectors are
// array 0, the optimizer's begin with 1. The fields of the header:
//
//	u32 layout, u32 partition, u32 generation, u32 partitions, u64 nodes of the graph,
//	u64 nodes of the partition, u32 columns, u32 first array, u32 number of arrays, then for each
//	array: u32 crc32c
//
// The checksum of array i is codec.BlockSum of block i+1. A partition without files has its initial
// vectors, which FileSpec.Init draws, and the optimizer has taken no step.
//
// A record says which generation each partition has in a checkpoint, 0 for none. It is a part of
// the checkpoint. Generations grow with each checkpoint.
const (
	fileKind   = "EMPT"
	recordKind = "EMPR"
	fileLayout = 2
	pageBytes  = codec.HeaderBytes
)

// header is the content of a file's header.
type header struct {
	part, generation, parts uint32
	graph, nodes            uint64 // number of nodes, of the graph and of the partition
	columns                 uint32
	first                   uint32   // number of the first array
	sums                    []uint32 // checksums of the arrays from first on
}

func (h *header) encode(uuid [16]byte) []byte {
	e := codec.Enc{}
	for _, v := range []uint32{fileLayout, h.part, h.generation, h.parts} {
		e.U32(v)
	}
	e.U64(h.graph)
	e.U64(h.nodes)
	e.U32(h.columns)
	e.U32(h.first)
	e.U32(uint32(len(h.sums)))
	for _, sum := range h.sums {
		e.U32(sum)
	}
	return codec.Header{Kind: fileKind, UUID: uuid, Fields: e.B}.Encode()
}

// decodeHeader decodes a header and returns its checksums. Everything else must equal want.
func decodeHeader(b []byte, uuid [16]byte, want *header) (sums []uint32, err error) {
	h, err := codec.DecodeHeader(b, fileKind, uuid)
	if err != nil {
		return nil, err
	}
	d := codec.NewDec(h.Fields)
	if layout := d.U32(); layout != fileLayout {
		return nil, fmt.Errorf("its layout is %d, this program reads %d", layout, fileLayout)
	}
	got := header{part: d.U32(), generation: d.U32(), parts: d.U32(), graph: d.U64(),
		nodes: d.U64(), columns: d.U32(), first: d.U32()}
	n := d.U32()
	if int(n) != len(want.sums) || got.part != want.part || got.generation != want.generation ||
		got.parts != want.parts || got.graph != want.graph || got.nodes != want.nodes ||
		got.columns != want.columns || got.first != want.first {
		return nil, fmt.Errorf("it has %d arrays from %d on, of %d columns of %d nodes, partition "+
			"%d of %d, generation %d; want %d, %d, %d, %d, %d, %d and %d", n, got.first,
			got.columns, got.nodes, got.part, got.parts, got.generation, len(want.sums),
			want.first, want.columns, want.nodes, want.part, want.parts, want.generation)
	}
	for range n {
		sums = append(sums, d.U32())
	}
	return sums, d.Err()
}

// encodeRecord encodes a record of the generation of each partition.
func encodeRecord(uuid [16]byte, generations []uint32) []byte {
	body := mem.BytesOf(generations)
	e := codec.Enc{}
	e.U32(fileLayout)
	e.U32(uint32(len(generations)))
	e.U32(codec.BlockSum(recordKind, uuid, 1, body))
	return append(codec.Header{Kind: recordKind, UUID: uuid, Fields: e.B}.Encode(), body...)
}

// decodeRecord decodes the record of a number of partitions.
func decodeRecord(b []byte, uuid [16]byte, parts int) ([]uint32, error) {
	h, err := codec.DecodeHeader(b, recordKind, uuid)
	if err != nil {
		return nil, err
	}
	d := codec.NewDec(h.Fields)
	layout, n, sum := d.U32(), d.U32(), d.U32()
	body := codec.NewDec(b[pageBytes:])
	switch {
	case d.Err() != nil:
		return nil, d.Err()
	case layout != fileLayout:
		return nil, fmt.Errorf("its layout is %d, this program reads %d", layout, fileLayout)
	case int64(n) != int64(parts) || body.Remaining() != 4*parts:
		return nil, fmt.Errorf("it is of %d partitions and has %d bytes of them, want %d "+
			"partitions", n, body.Remaining(), parts)
	case codec.BlockSum(recordKind, uuid, 1, b[pageBytes:]) != sum:
		return nil, codec.ErrChecksum
	}
	out := make([]uint32, parts)
	for i := range out {
		out[i] = body.U32()
	}
	return out, body.Err()
}

// pieceBytes returns what an array of n values takes in a file.
func pieceBytes(n uint64) int64 { return (4*int64(n) + pageBytes - 1) / pageBytes * pageBytes }

// These are the endings of the names of a partition's files: for its vectors, and for the
// optimizer's arrays.
const (
	rowsFile  = "rows"
	stateFile = "state"
)

// name returns the name of a partition's file of a generation and kind.
func name(part int, generation uint32, kind string) string {
	return fmt.Sprintf("%04d-%08d.%s", part, generation, kind)
}

// parseName is the inverse of name.
func parseName(file string) (part int, generation uint32, kind string, ok bool) {
	for _, kind := range []string{rowsFile, stateFile} {
		_, err := fmt.Sscanf(file, "%d-%d."+kind, &part, &generation)
		if err == nil && name(part, generation, kind) == file {
			return part, generation, kind, true
		}
	}
	return 0, 0, "", false
}

// CheckFiles returns an error unless all files to which the records of a checkpoint refer exist and
// have the right size. record refers to vectors and the optimizer's arrays, best only to vectors.
// Either may be nil.
func CheckFiles(fs vfs.FS, path string, spec FileSpec, record, best []byte) error {
	all := spec.files()
	for _, c := range []struct {
		record []byte
		files  []file
	}{{record, all}, {best, all[:1]}} {
		if c.record == nil {
			continue
		}
		generations, err := decode(&spec, c.record)
		if err != nil {
			return err
		}
		for part, generation := range generations {
			for _, f := range c.files {
				if generation == 0 { // it is as it began, and in no file
					break
				}
				if err := checkFile(fs, fs.PathJoin(path, name(part, generation, f.kind)),
					spec.fileBytes(part, &f)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// checkFile returns an error unless a file exists and has that many bytes.
func checkFile(fs vfs.FS, path string, bytes int64) error {
	info, err := fs.Stat(path)
	switch {
	case oserror.IsNotExist(err):
		return damage(path, "the file is missing")
	case err != nil:
		return fmt.Errorf("train: %w", err)
	case info.Size() != bytes:
		return damage(path, "it has %d bytes, want %d", info.Size(), bytes)
	}
	return nil
}
