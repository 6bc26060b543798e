package superbatch

import (
	"context"

	"gdb/internal/mem"
)

// packed locates the rows that the batches of a span miss, as a sweep wrote them: for each batch
// records of perRecord rows, the last with the remainder, ordered by node. It takes 8 bytes of
// memory per record and 4 per batch.
type packed struct {
	file      *fileReader
	rowBytes  int
	perRecord int
	starts    []uint32 // first record of each batch, and at the end the number of all
	refs      []ref
	held      mem.Account // starts and refs
	gone      *remover
}

const (
	// packedChunk is how many bytes of packed rows are read at once, about.
	packedChunk = 2 << 20
	// PackedBytes is the memory to read packed rows, besides rows that are read ahead and rows
	// longer than a MiB: records are read whole, and a buffer that grows takes a quarter more.
	PackedBytes = (packedChunk + bufferMost) * 5 / 4
)

// read calls emit with rows first … end-1 of a batch of the span, in order and some at a time. emit
// gets the index of its first row and the rows' bytes, valid during the call.
func (p *packed) read(ctx context.Context, batch, first, end int, buf *readBuffer,
	emit func(first int, rows []byte) error) error {
	refs := p.refs[p.starts[batch]:p.starts[batch+1]]
	var records [packedChunk / bufferLeast]record
	for first < end {
		at, n, bytes := first/p.perRecord, 0, int64(0)
		for at+n < len(refs) && (at+n)*p.perRecord < end && n < len(records) &&
			bytes < packedChunk {
			records[n] = record{File: p.file, At: refs[at+n]}
			bytes += refs[at+n].DiskBytes()
			n++
		}
		if n == 0 {
			return p.file.Damage(0, "batch %d of the span has %d records, row %d was asked for",
				batch, len(refs), first)
		}
		payloads, err := buf.Read(ctx, records[:n]...)
		if err != nil {
			return err
		}
		for i, rows := range payloads {
			begin := (at + i) * p.perRecord
			stop := min(begin+len(rows)/p.rowBytes, end)
			err := emit(first, rows[(first-begin)*p.rowBytes:(stop-begin)*p.rowBytes])
			if err != nil {
				return err
			}
			first = stop
		}
	}
	return nil
}

// readFirst reads the first records of a batch, as many as fit in the buffer, which holds them
// afterwards. It returns the number of their rows.
func (p *packed) readFirst(ctx context.Context, batch int, buf *readBuffer) (rows int,
	err error) {
	room := int64(len(buf.Arena.Bytes()))
	var records []record
	for _, at := range p.refs[p.starts[batch]:p.starts[batch+1]] {
		if room -= at.DiskBytes(); room < 0 {
			break
		}
		records = append(records, record{File: p.file, At: at})
		rows += int(at.Bytes) / p.rowBytes
	}
	if rows > 0 {
		_, err = buf.Read(ctx, records...)
	}
	return rows, err
}

// row returns the bytes of row k, of those that readFirst read to buf.
func (p *packed) row(buf *readBuffer, k int) []byte {
	at := k % p.perRecord * p.rowBytes
	return buf.Payloads[k/p.perRecord][at : at+p.rowBytes]
}

// close gives the memory back, and begins to remove the file.
func (p *packed) close() {
	p.held.Release()
	p.gone.Begin(p.file.Drop)
}
