package codec

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
)

// HeaderBytes is the size of the first block of every data file.
const HeaderBytes = 4096

// headerMagic begins every data file, after the checksum.
const headerMagic = "GDBF"

// fileVersion is the version of the framing: header and block checksums.
const fileVersion = 1

// headerFixed is the size of the fields before Fields, in bytes.
const headerFixed = 4 + 4 + 4 + 4 + 16 + 4

const _ uint = HeaderBytes - headerFixed // the fixed fields fit

// Errors of DecodeHeader. The message says what was expected.
var (
	ErrChecksum = errors.New("checksum does not match")
	ErrKind     = errors.New("file is of another kind")
	ErrForeign  = errors.New("file belongs to another store")
	ErrVersion  = errors.New("file has another format version")
)

// Header is the first block of a data file:
//
//	0        4        8         12       16       32        36
//	+--------+--------+---------+--------+--------+---------+-----------------+----------+
//	| crc32c | "GDBF" | version | kind   | uuid   | length  | fields (length) | zeros    |
//	+--------+--------+---------+--------+--------+---------+-----------------+----------+
//
// The checksum covers all HeaderBytes after itself. Kind is four ASCII letters, and UUID is the
// store's, so a file of another store or kind is refused by name.
type Header struct {
	Kind   string
	UUID   [16]byte
	Fields []byte // fields of the kind, encoded by the package that owns it
}

// Encode returns the header block.
func (h Header) Encode() []byte {
	if len(h.Kind) != 4 || len(h.Fields) > HeaderBytes-headerFixed {
		panic(fmt.Sprintf("BUG: header kind %q with %d bytes of fields", h.Kind, len(h.Fields)))
	}
	e := Enc{B: make([]byte, 4, HeaderBytes)}
	e.Bytes([]byte(headerMagic))
	e.U32(fileVersion)
	e.Bytes([]byte(h.Kind))
	e.Bytes(h.UUID[:])
	e.U32(uint32(len(h.Fields)))
	e.Bytes(h.Fields)
	e.Pad(HeaderBytes)
	sum := Enc{}
	sum.U32(Checksum(e.B[4:]))
	copy(e.B, sum.B)
	return e.B
}

// DecodeHeader checks and decodes a header block of the given kind and store. A zero uuid takes
// the file of any store.
func DecodeHeader(b []byte, kind string, uuid [16]byte) (Header, error) {
	if len(b) < HeaderBytes {
		return Header{}, fmt.Errorf("%w: header of %d bytes", ErrShort, len(b))
	}
	d := NewDec(b[:HeaderBytes])
	sum, magic, version := d.U32(), string(d.Bytes(4)), d.U32()
	h := Header{Kind: string(d.Bytes(4))}
	copy(h.UUID[:], d.Bytes(16))
	n := d.U32()
	if got := Checksum(b[4:HeaderBytes]); got != sum {
		return h, fmt.Errorf("%w: header has %08x, its bytes give %08x", ErrChecksum, sum, got)
	}
	if magic != headerMagic || h.Kind != kind {
		return h, fmt.Errorf("%w: %q %q, want %q %q", ErrKind, magic, h.Kind, headerMagic, kind)
	}
	if version != fileVersion {
		return h, fmt.Errorf("%w: %d, this gdb reads %d", ErrVersion, version, fileVersion)
	}
	if uuid != ([16]byte{}) && uuid != h.UUID {
		return h, fmt.Errorf("%w: %s, want %s", ErrForeign,
			hex.EncodeToString(h.UUID[:]), hex.EncodeToString(uuid[:]))
	}
	h.Fields = d.Bytes(int(n))
	return h, d.Err()
}

// BlockSum returns the checksum of a block's bytes, without its own checksum field. It also covers
// the file's kind and store and the block's number, so a misplaced block never verifies.
func BlockSum(kind string, uuid [16]byte, block uint64, parts ...[]byte) uint32 {
	sum := ^uint32(0)
	for i := range len(kind) {
		sum = sumByte(sum, kind[i])
	}
	for _, b := range uuid {
		sum = sumByte(sum, b)
	}
	for i := range 8 {
		sum = sumByte(sum, byte(block>>(8*i)))
	}
	sum = ^sum
	for _, p := range parts {
		sum = ChecksumUpdate(sum, p)
	}
	return sum
}

// sumByte adds a byte to a CRC32C that is kept inverted. For a few bytes it takes no longer than
// crc32.Update, whose argument escapes to the heap.
func sumByte(sum uint32, b byte) uint32 { return castagnoli[byte(sum)^b] ^ sum>>8 }

// SealZeros is the value that the last field of a JSON object, crc32c, has before SealJSON.
const SealZeros = "00000000"

// The text around the digits of the checksum.
const (
	sealBefore = `"crc32c": "`
	sealAfter  = "\"\n}\n"
)

// SealJSON writes the CRC32C of an indented JSON object into its last field, crc32c, which must
// hold SealZeros and be followed by a newline, a brace and a newline.
func SealJSON(b []byte) {
	copy(b[len(b)-len(sealAfter)-len(SealZeros):], fmt.Sprintf("%08x", Checksum(b)))
}

// CheckSealed returns an error if an object differs from what SealJSON left.
func CheckSealed(b []byte) error {
	at := len(b) - len(sealAfter) - len(SealZeros)
	if at < 0 || !bytes.HasSuffix(b[:at], []byte(sealBefore)) ||
		!bytes.HasSuffix(b, []byte(sealAfter)) {
		return errors.New("it does not end with its checksum")
	}
	whole := bytes.Clone(b)
	copy(whole[at:], SealZeros)
	sum := b[at : at+len(SealZeros)]
	if got := fmt.Sprintf("%08x", Checksum(whole)); got != string(sum) {
		return fmt.Errorf("checksum %q, its bytes give %s", sum, got)
	}
	return nil
}
