package protocol

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

const (
	headerBytes = 12
	// bodyMax and dataMax bound what a frame of the other side may take here.
	bodyMax, dataMax = 64 << 20, 1 << 30
)

// Frame is a message.
type Frame struct {
	Kind Kind
	Body []byte // JSON, or nothing
	Data []byte
	File int // a descriptor to send, or none: -1
}

// Conn sends and receives frames. One goroutine may send while another receives.
type Conn struct{ c *net.UnixConn }

// NewConn returns a connection over a socket, which it closes.
func NewConn(c *net.UnixConn) *Conn { return &Conn{c} }

// Close ends the connection; whoever waits for a frame gets an error.
func (c *Conn) Close() error { return c.c.Close() }

// Interrupt has whoever sends or receives fail at once, as if the other side took and gave nothing.
func (c *Conn) Interrupt() { _ = c.c.SetDeadline(time.Unix(0, 1)) } // a closed one fails already

// Send sends a frame with a body, which is encoded, or nil.
func (c *Conn) Send(kind Kind, body any, data []byte) error {
	return c.SendFile(kind, body, data, -1)
}

// SendFile sends a frame with a descriptor, which stays the sender's too, unless it is -1.
func (c *Conn) SendFile(kind Kind, body any, data []byte, file int) (err error) {
	var encoded []byte
	if body != nil {
		if encoded, err = json.Marshal(body); err != nil {
			return fmt.Errorf("protocol: encode frame %d: %w", kind, err)
		}
	}
	if len(encoded) > bodyMax || len(data) > dataMax {
		return fmt.Errorf("protocol: frame %d has %d and %d bytes: ask for less at a time", kind,
			len(encoded), len(data))
	}
	head := make([]byte, headerBytes, headerBytes+len(encoded))
	binary.LittleEndian.PutUint32(head, uint32(len(encoded)))
	binary.LittleEndian.PutUint32(head[4:], uint32(len(data)))
	binary.LittleEndian.PutUint16(head[8:], uint16(kind))
	var rights []byte
	if file >= 0 {
		head[10] = 1
		rights = unix.UnixRights(file)
	}
	head = append(head, encoded...)
	n, _, err := c.c.WriteMsgUnix(head, rights, nil)
	if err == nil && n < len(head) {
		_, err = c.c.Write(head[n:])
	}
	if err == nil && len(data) > 0 {
		_, err = c.c.Write(data)
	}
	if err != nil {
		return fmt.Errorf("protocol: send frame %d: %w", kind, err)
	}
	return nil
}

// Receive waits for a frame; io.EOF is the end of the other side. Descriptors are not taken.
func (c *Conn) Receive() (*Frame, error) {
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
	f.Body, f.Data = make([]byte, body), make([]byte, data)
	_, err = io.ReadFull(c.c, f.Body)
	if err == nil {
		_, err = io.ReadFull(c.c, f.Data)
	}
	if err != nil {
		return nil, fmt.Errorf("protocol: receive frame %d of %d bytes: %w", f.Kind, body+data, err)
	}
	return f, nil
}

// lengths are those of the body and the data of a frame.
func lengths(head [headerBytes]byte) (body, data int, err error) {
	b, d := binary.LittleEndian.Uint32(head[:]), binary.LittleEndian.Uint32(head[4:])
	if b > bodyMax || d > dataMax {
		return 0, 0, fmt.Errorf("protocol: a frame of %d and %d bytes: the other side does not "+
			"speak this protocol, or asks for too much at a time", b, d)
	}
	return int(b), int(d), nil
}

// Decode reads the body of a frame.
func (f *Frame) Decode(to any) error {
	if len(f.Body) == 0 {
		return nil
	}
	if err := json.Unmarshal(f.Body, to); err != nil {
		return fmt.Errorf("protocol: decode frame %d: %w", f.Kind, err)
	}
	return nil
}
