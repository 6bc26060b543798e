package codec

import (
	"bytes"
	"errors"
	"fmt"
)

// SealZeros is what the last field of a JSON object, crc32c, holds before SealJSON.
const SealZeros = "00000000"

// What is around the digits of the checksum.
const (
	sealBefore = `"crc32c": "`
	sealAfter  = "\"\n}\n"
)

// SealJSON puts the CRC32C of an indented JSON object, which ends with a field crc32c of SealZeros
// and a newline, into that field.
func SealJSON(b []byte) {
	copy(b[len(b)-len(sealAfter)-len(SealZeros):], fmt.Sprintf("%08x", Checksum(b)))
}

// CheckSealed reports an object that is not as SealJSON left it.
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
