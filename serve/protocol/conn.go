package protocol

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"gdb/internal/mem"

	"golang.org/x/sys/unix"
)

const (
	headerBytes = 12
	// bodyMax and dataMax bound the bytes of a frame's body and data, in both directions.
	bodyMax, dataMax = 64 << 20, 1 << 30
	// smallBytes is the size up to which a frame is not counted. So clients can ask for batches and
	// give them back even when the memory is full.
	smallBytes = 4 << 10
	// firstBytes is how much memory is made for a part of a frame before more of its bytes have
	// come.
	firstBytes = 64 << 10
	// decodeCost is the factor by which a body counts more than its bytes: an empty name takes
	// three bytes in it, and in memory a string of 16 bytes in a list that grows.
	decodeCost = 16
)

// ErrForeign reports a header that no frame can have: the bytes behind it cannot be understood.
var ErrForeign = errors.New("the other side does not speak this protocol, or sends too much at a " +
	"time")

// Frame is a message of the protocol.
type Frame struct {
	Kind Kind
	Body []byte // JSON, or empty
	Data []byte
	File int // a descriptor to send, or -1
	// Refused says why the frame has neither body nor data although it was received: there was no
	// memory for them.
	Refused error

	budget *mem.Budget // nil if the frame is not counted
	held   int64       // bytes that are reserved there
}

// Free releases the bytes that the frame has reserved. Further calls do nothing.
func (f *Frame) Free() {
	if f.held > 0 {
		f.budget.Release(f.held)
	}
	f.held = 0
}

// KeepData keeps the data counted after Free, if the frame is counted. It returns the bytes that
// the caller releases later, or 0.
func (f *Frame) KeepData() int64 {
	if f.held == 0 {
		return 0
	}
	n := int64(len(f.Data))
	f.held -= n
	return n
}

// Room returns the budget that counts an incoming frame of a kind.
type Room func(kind Kind) *mem.Budget

// Conn sends and receives frames. One goroutine may send while another receives.
type Conn struct{ c *net.UnixConn }

// NewConn returns a connection over a socket, which it closes.
func NewConn(c *net.UnixConn) *Conn { return &Conn{c} }

// Close ends the connection. A pending Send or Receive returns an error.
func (c *Conn) Close() error { return c.c.Close() }

// Interrupt makes pending and further calls of Send and Receive fail at once, as if they had timed
// out.
func (c *Conn) Interrupt() { _ = c.c.SetDeadline(time.Unix(0, 1)) } // if closed, it fails already

// Send sends a frame. body is nil, or json.RawMessage that is sent as it is, or a value to encode
// as JSON. The parts of data follow each other.
func (c *Conn) Send(kind Kind, body any, data ...[]byte) error {
	return c.SendFile(kind, body, -1, data...)
}

// SendFile sends a frame with the descriptor file, or without one if file is -1. The sender keeps
// its descriptor.
func (c *Conn) SendFile(kind Kind, body any, file int, data ...[]byte) (err error) {
	encoded, ready := body.(json.RawMessage)
	if body != nil && !ready {
		if encoded, err = json.Marshal(body); err != nil {
			return fmt.Errorf("protocol: encode frame %d: %w", kind, err)
		}
	}
	bytes := int64(0)
	for _, part := range data {
		bytes += int64(len(part))
	}
	if err := checkSizes(kind, int64(len(encoded)), bytes); err != nil {
		return err
	}
	head := make([]byte, headerBytes, headerBytes+min(len(encoded), firstBytes))
	binary.LittleEndian.PutUint32(head, uint32(len(encoded)))
	binary.LittleEndian.PutUint32(head[4:], uint32(bytes))
	binary.LittleEndian.PutUint16(head[8:], uint16(kind))
	var rights []byte
	if file >= 0 {
		head[10] = 1
		rights = unix.UnixRights(file)
	}
	together := min(len(encoded), firstBytes) // sent with the header: most frames are one write
	head = append(head, encoded[:together]...)
	n, _, err := c.c.WriteMsgUnix(head, rights, nil)
	for _, rest := range append([][]byte{head[n:], encoded[together:]}, data...) {
		if err == nil && len(rest) > 0 {
			_, err = c.c.Write(rest)
		}
	}
	if err != nil {
		return fmt.Errorf("protocol: send frame %d: %w", kind, err)
	}
	return nil
}

// checkSizes reports a frame that is too large to be sent.
func checkSizes(kind Kind, body, data int64) error {
	if body > bodyMax || data > dataMax {
		return fmt.Errorf("protocol: frame %d has %d and %d bytes: ask for less at a time", kind,
			body, data)
	}
	return nil
}

// Receive waits for a frame. It returns io.EOF when the other side has closed the connection, and
// drops descriptors that come. The caller frees the frame.
//
// Memory is made as the bytes come, and not as the header announces them. room, which may be nil,
// gives the budget that counts it. If that has none left, the rest of the frame is skipped and
// Frame.Refused says so.
func (c *Conn) Receive(room Room) (*Frame, error) {
	var head [headerBytes]byte
	if _, err := io.ReadFull(c.c, head[:]); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, io.EOF
		}
		return nil, fmt.Errorf("protocol: receive: %w", err)
	}
	body, data, err := lengths(head)
	if err != nil {
		return nil, err
	}
	f := &Frame{Kind: Kind(binary.LittleEndian.Uint16(head[8:])), File: -1}
	if room != nil && body+data > smallBytes {
		f.budget = room(f.Kind)
	}
	if err := f.receive(c.c, body, data); err != nil {
		f.Free()
		return nil, fmt.Errorf("protocol: receive frame %d of %d bytes: %w", f.Kind, body+data, err)
	}
	return f, nil
}

// receive reads the body and the data. It returns errors of the connection only; Refused says that
// the memory was full.
func (f *Frame) receive(from io.Reader, body, data int) (err error) {
	left := body + data
	if f.Refused == nil {
		f.Body, err = f.grow(from, body, decodeCost)
		left -= len(f.Body)
	}
	if f.Refused == nil && err == nil {
		f.Data, err = f.grow(from, data, 1)
		left -= len(f.Data)
	}
	if f.Refused != nil && err == nil {
		f.Body, f.Data = nil, nil
		f.Free()
		_, err = io.CopyN(io.Discard, from, int64(left))
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// grow reads n bytes and reserves cost bytes of memory for each. It returns the bytes that were
// read; if there is no memory for the others, Refused says so.
func (f *Frame) grow(from io.Reader, n int, cost int64) (buf []byte, err error) {
	for len(buf) < n {
		size := min(n, max(firstBytes, 2*len(buf)))
		if f.Refused = f.reserve(cost * int64(size)); f.Refused != nil {
			return buf, nil
		}
		next := make([]byte, size)
		had := copy(next, buf)
		f.release(cost * int64(had))
		got, err := io.ReadFull(from, next[had:])
		if buf = next[:had+got]; err != nil {
			return buf, err
		}
	}
	return buf, nil
}

func (f *Frame) reserve(n int64) error {
	if f.budget == nil {
		return nil
	}
	if err := f.budget.Reserve("a request of a client", n); err != nil {
		return fmt.Errorf("%w, or ask for less at a time", err)
	}
	f.held += n
	return nil
}

func (f *Frame) release(n int64) {
	if f.budget != nil {
		f.budget.Release(n)
		f.held -= n
	}
}

// lengths returns the lengths of the body and the data of a frame, or ErrForeign if they are too
// large.
func lengths(head [headerBytes]byte) (body, data int, err error) {
	b, d := binary.LittleEndian.Uint32(head[:]), binary.LittleEndian.Uint32(head[4:])
	if b > bodyMax || d > dataMax {
		return 0, 0, fmt.Errorf("protocol: a frame of %d and %d bytes: %w", b, d, ErrForeign)
	}
	return int(b), int(d), nil
}

// Decode decodes the JSON body of a frame. An empty body leaves to as it is.
func (f *Frame) Decode(to any) error {
	if len(f.Body) == 0 {
		return nil
	}
	if err := json.Unmarshal(f.Body, to); err != nil {
		return fmt.Errorf("protocol: decode frame %d: %w", f.Kind, err)
	}
	return nil
}
