package serve

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/internal/testgraph"
	"gdb/layout"
	"gdb/layout/ingest"
	"gdb/layout/ingest/source"
	"gdb/sample"
	"gdb/serve/protocol"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

const testMemory = 256 << 20

// coraStore makes a store of Cora in memory.
func coraStore(t *testing.T) *layout.Store {
	t.Helper()
	fs := vfs.NewMem()
	if err := testgraph.WriteCora(fs, "cora"); err != nil {
		t.Fatal(err)
	}
	if _, err := ingest.Run(t.Context(), fs,
		ingest.Options{Options: source.Options{Sources: []string{"cora"}, Memory: testMemory},
			Out: "cora.gdb", Undirected: true}); err != nil {
		t.Fatal(err)
	}
	st, err := layout.Open(t.Context(), fs, "cora.gdb")
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// running is a server under test.
type running struct {
	*Server
	path string
	stop context.CancelFunc
	done chan error
}

// start starts a server, which the end of the test ends.
func start(t testing.TB, st *layout.Store, opt Options) *running {
	t.Helper()
	dev, err := opt.Device, error(nil)
	if dev == nil {
		dev, err = blockdev.Open(blockdev.Options{Backend: blockdev.Memory})
	}
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "serve") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	opt.Store, opt.Device, opt.Version = st, dev, "test"
	if opt.Memory == 0 {
		opt.Memory = testMemory
	}
	opt.Threads = max(1, opt.Threads)
	r := &running{Server: New(opt), path: filepath.Join(dir, "s"), done: make(chan error, 1)}
	l, err := Listen(r.path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.stop = cancel
	go func() { r.done <- r.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-r.done; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if _, err := os.Stat(r.path); err == nil {
			t.Error("the socket is still there")
		}
		if err := errors.Join(dev.Close(), os.RemoveAll(dir)); err != nil {
			t.Error(err)
		}
	})
	return r
}

// client speaks to a server as the Python package does.
type client struct {
	t    testing.TB
	c    *net.UnixConn
	maps map[uint32][]byte
	done []uint32
}

// connect connects and says hello.
func (r *running) connect(t testing.TB) *client {
	t.Helper()
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: r.path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	k := &client{t: t, c: c, maps: map[uint32][]byte{}}
	t.Cleanup(k.close)
	if kind, _, _, err := k.receive(); err != nil || kind != protocol.KindWelcome {
		t.Fatalf("frame %d in the place of the welcome: %v", kind, err)
	}
	k.must(protocol.KindHello, protocol.Hello{Protocol: protocol.Version}, nil, protocol.KindDone)
	return k
}

func (k *client) close() {
	for _, m := range k.maps {
		_ = unix.Munmap(m)
	}
	k.maps = nil
	_ = k.c.Close()
}

// receive receives a frame, and a descriptor if one comes with it: else -1.
func (k *client) receive() (kind protocol.Kind, body *protocol.Frame, file int, err error) {
	head, oob := make([]byte, 12), make([]byte, unix.CmsgSpace(4))
	n, got, _, _, err := k.c.ReadMsgUnix(head, oob)
	if err == nil && n < len(head) {
		_, err = io.ReadFull(k.c, head[n:])
	}
	if err != nil {
		return 0, nil, -1, err
	}
	file = -1
	if got > 0 {
		all, err := unix.ParseSocketControlMessage(oob[:got])
		if err != nil {
			return 0, nil, -1, err
		}
		files, err := unix.ParseUnixRights(&all[0])
		if err != nil {
			return 0, nil, -1, err
		}
		file = files[0]
	}
	f := &protocol.Frame{Kind: protocol.Kind(binary.LittleEndian.Uint16(head[8:])),
		Body: make([]byte, binary.LittleEndian.Uint32(head)),
		Data: make([]byte, binary.LittleEndian.Uint32(head[4:]))}
	if _, err = io.ReadFull(k.c, f.Body); err == nil {
		_, err = io.ReadFull(k.c, f.Data)
	}
	return f.Kind, f, file, err
}

// ask sends a request and returns the answer; a Failed is an error.
func (k *client) ask(kind protocol.Kind, body any, data []byte) (*protocol.Frame, int, error) {
	if err := protocol.NewConn(k.c).Send(kind, body, data); err != nil {
		return nil, -1, err
	}
	got, f, file, err := k.receive()
	if err == nil && got == protocol.KindFailed {
		var failed protocol.Failed
		if err = f.Decode(&failed); err == nil {
			err = fmt.Errorf("%s: %s", failed.What, failed.Message)
		}
	}
	return f, file, err
}

// must is ask for what does not fail.
func (k *client) must(kind protocol.Kind, body any, data []byte,
	want protocol.Kind) *protocol.Frame {
	k.t.Helper()
	f, _, err := k.ask(kind, body, data)
	if err != nil || f.Kind != want {
		k.t.Fatalf("request %d: %v, %+v", kind, err, f)
	}
	return f
}

// settle waits until the server has given back what it held for the last answer: a session handles
// one request after the other.
func (k *client) settle() {
	k.t.Helper()
	k.must(protocol.KindStats, nil, nil, protocol.KindStatsNow)
}

// say sends what has no answer.
func (k *client) say(kind protocol.Kind) {
	k.t.Helper()
	if err := protocol.NewConn(k.c).Send(kind, nil, nil); err != nil {
		k.t.Fatal(err)
	}
}

// open opens a loader, of seeds if there are some.
func (k *client) open(o protocol.Open, seeds ...sample.NodeID) protocol.Opened {
	k.t.Helper()
	if o.Split == "" {
		o.Split = "train"
	}
	o.World = max(1, o.World)
	var opened protocol.Opened
	f := k.must(protocol.KindOpen, o, mem.BytesOf(seeds), protocol.KindOpened)
	if err := f.Decode(&opened); err != nil {
		k.t.Fatal(err)
	}
	return opened
}

func (k *client) start(epoch, first uint64) {
	k.t.Helper()
	k.must(protocol.KindStart, protocol.Start{Epoch: epoch, First: first, Done: k.done}, nil,
		protocol.KindDone)
	k.done = nil
}

// served is a batch that was received.
type served struct {
	protocol.Batch
	bytes []byte
}

// next receives the next batch: nil after the last.
func (k *client) next() (*served, error) {
	f, file, err := k.ask(protocol.KindNext, protocol.Next{Done: k.done}, nil)
	return k.batch(f, file, err)
}

// batch is the batch of an answer: nil after the last.
func (k *client) batch(f *protocol.Frame, file int, err error) (*served, error) {
	k.done = nil
	if err != nil || f.Kind == protocol.KindEnd {
		return nil, err
	}
	b := &served{}
	if err := f.Decode(&b.Batch); err != nil {
		return nil, err
	}
	if b.New {
		m, err := unix.Mmap(file, 0, b.Bytes, unix.PROT_READ, unix.MAP_SHARED)
		if err = errors.Join(err, unix.Close(file)); err != nil {
			return nil, err
		}
		k.maps[b.Arena] = m
	}
	b.bytes = k.maps[b.Arena]
	return b, nil
}

// give has a batch given back with the next request.
func (k *client) give(b *served) { k.done = append(k.done, b.Arena) }

// giveNow gives a batch back before the next request.
func (k *client) giveNow(b *served) {
	k.t.Helper()
	m := protocol.Next{Done: []uint32{b.Arena}}
	if err := protocol.NewConn(k.c).Send(protocol.KindReturn, m, nil); err != nil {
		k.t.Fatal(err)
	}
}

// ints are the numbers of an array.
func (b *served) ints(name string) []int64 { return mem.View[int64](b.array(name, 8)) }

// floats likewise.
func (b *served) floats(name string) []float32 { return mem.View[float32](b.array(name, 4)) }

func (b *served) array(name string, width int) []byte {
	for _, a := range b.Arrays {
		if a.Name == name {
			n := width
			for _, k := range a.Shape {
				n *= k
			}
			return b.bytes[a.Offset : a.Offset+n]
		}
	}
	return nil
}

// eventually waits for something to be so, long enough for a loaded machine.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !so(); {
		if time.Now().After(end) {
			t.Fatal(what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
