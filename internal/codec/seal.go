package codec

import (
	"bytes"
	"errors"
	"fmt"
)

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
