package protocol

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"gdb/internal/mem"

	"golang.org/x/sys/unix"
)

// pair is two ends of a connection, which the end of the test closes.
func pair(t testing.TB) (a, b *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*net.UnixConn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "end")
		c, err := net.FileConn(f)
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		ends[i] = c.(*net.UnixConn)
	}
	return ends[0], ends[1]
}

// counts is a room that counts all requests in one budget.
func counts(b *mem.Budget) Room { return func(Kind) *mem.Budget { return b } }

// header is the header of a frame.
func header(body, data uint32, kind Kind) []byte {
	head := make([]byte, headerBytes)
	binary.LittleEndian.PutUint32(head, body)
	binary.LittleEndian.PutUint32(head[4:], data)
	binary.LittleEndian.PutUint16(head[8:], uint16(kind))
	return head
}

// TestRoundTrip: frames of all sizes come as they were sent, one after the other.
func TestRoundTrip(t *testing.T) {
	a, b := pair(t)
	from, to := NewConn(a), NewConn(b)
	budget := mem.NewBudget(64 << 20)
	for i, n := range []int{0, 1, 3, smallBytes, firstBytes - 2, firstBytes, firstBytes + 1,
		3 * firstBytes, 1<<20 + 5} {
		text, data := strings.Repeat("x", n), bytes.Repeat([]byte{byte(i)}, n)
		sent := make(chan error)
		go func() {
			sent <- from.Send(KindQuery+Kind(i), Query{Statement: text}, data)
		}()
		f, err := to.Receive(counts(budget))
		if err = errors.Join(err, <-sent); err != nil {
			t.Fatal(err)
		}
		var got Query
		if err := f.Decode(&got); err != nil || got.Statement != text ||
			f.Kind != KindQuery+Kind(i) ||
			!bytes.Equal(f.Data, data) || f.File != -1 || f.Refused != nil {
			t.Errorf("a frame of %d bytes: %v, kind %d, %d bytes of text, %d of data", n, err,
				f.Kind, len(got.Statement), len(f.Data))
		}
		want := int64(0)
		if size := len(f.Body) + len(f.Data); size > smallBytes {
			want = int64(decodeCost*len(f.Body) + len(f.Data))
		}
		if used := budget.Used(); used != want {
			t.Errorf("a frame of %d bytes is counted with %d, want %d", n, used, want)
		}
		f.Free()
		if f.Free(); budget.Used() != 0 {
			t.Errorf("%d bytes are still counted", budget.Used())
		}
	}
}

// TestBodies: every body is the same after a round trip.
func TestBodies(t *testing.T) {
	for _, body := range []any{&Hello{Version}, &Welcome{Protocol: 1, Version: "v", Store: Store{
		Path: "p", Nodes: 1 << 40, Splits: map[string]uint64{"train": 3}, Classes: []string{"a"}}},
		&Failed{"m", "held"}, &Open{Split: "train@3", Fanout: []int{5, -1}, Batch: 7,
			Seed: 1<<64 - 1, Memory: 1 << 40, Cache: "auto", Rank: 1, World: 2},
		&Opened{Seeds: 1, Batches: 2, Plan: "plan"}, &Start{1, 2, []uint32{3}, []uint32{4}},
		&Next{[]uint32{1<<32 - 1}},
		&Batch{Arena: 1, Bytes: 2, New: true, Gone: []uint32{1}, HopNodes: []int{1},
			Arrays: []Array{{"x", "f4", []int{2, 3}, 64}}},
		&Sample{1, 2, []uint32{3}}, &Edges{"test", 1, 2},
		&Neighbors{-1, 3}, &Query{"RETURN $x", json.RawMessage(`{"x":1}`)},
		&Names{[]string{"ä", "\u2028", "<"}},
		&Stats{BytesRead: 1, Policy: "sieve", Pack: 0.5}} {
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		got := reflect.New(reflect.TypeOf(body).Elem()).Interface()
		if err := (&Frame{Body: text}).Decode(got); err != nil || !reflect.DeepEqual(got, body) {
			t.Errorf("%v: %+v became %+v", err, body, got)
		}
	}
	empty := Next{Done: []uint32{1}}
	if err := (&Frame{}).Decode(&empty); err != nil || len(empty.Done) != 1 {
		t.Errorf("no body: %v, %+v", err, empty)
	}
	if err := (&Frame{Kind: 9, Body: []byte("{")}).Decode(&empty); err == nil ||
		!strings.Contains(err.Error(), "frame 9") {
		t.Errorf("half a body: %v", err)
	}
}

// TestDescriptors: a descriptor comes with the header of its frame, and of that alone.
func TestDescriptors(t *testing.T) {
	a, b := pair(t)
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	from := NewConn(a)
	err = errors.Join(from.SendFile(KindBatch, nil, int(file.Fd())),
		from.SendFile(KindBatch, nil, -1))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []bool{true, false} {
		head, oob := make([]byte, headerBytes), make([]byte, unix.CmsgSpace(4))
		_, n, _, _, err := b.ReadMsgUnix(head, oob)
		if err != nil || n > 0 != want || head[10] == 1 != want {
			t.Fatalf("%d bytes beside the header, which says %d: %v", n, head[10], err)
		}
		if n > 0 {
			all, err := unix.ParseSocketControlMessage(oob[:n])
			if err != nil {
				t.Fatal(err)
			}
			files, err := unix.ParseUnixRights(&all[0])
			if err = errors.Join(err, unix.Close(files[0])); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestTooLarge: frames over the limits are neither sent nor received, and those at the limits are.
func TestTooLarge(t *testing.T) {
	a, b := pair(t)
	large := json.RawMessage(make([]byte, bodyMax+1))
	if err := NewConn(a).Send(KindQuery, large, nil); err == nil ||
		!strings.Contains(err.Error(), "ask for less") {
		t.Errorf("sent: %v", err)
	}
	for _, c := range []struct {
		body, data int64
		ok         bool
	}{{bodyMax, dataMax, true}, {bodyMax + 1, 0, false}, {0, dataMax + 1, false}} {
		if err := checkSizes(KindRows, c.body, c.data); (err == nil) != c.ok {
			t.Errorf("%d and %d bytes to send: %v", c.body, c.data, err)
		}
		var head [headerBytes]byte
		copy(head[:], header(uint32(c.body), uint32(c.data), KindRows))
		body, data, err := lengths(head)
		if (err == nil) != c.ok || c.ok && (int64(body) != c.body || int64(data) != c.data) {
			t.Errorf("%d and %d bytes to receive: %d, %d, %v", c.body, c.data, body, data, err)
		}
	}
	if _, err := a.Write(header(bodyMax+1, 0, KindQuery)); err != nil {
		t.Fatal(err)
	}
	if _, err := NewConn(b).Receive(nil); !errors.Is(err, ErrForeign) {
		t.Errorf("received: %v", err)
	}
}

// TestRefused: a frame for which there is no memory is skipped, counts for nothing, and the next
// one is received.
func TestRefused(t *testing.T) {
	for _, memory := range []int64{200 << 10, 1} {
		budget := mem.NewBudget(memory)
		room := counts(budget)
		for _, size := range [][2]int{{300 << 10, 0}, {0, 300 << 10}, {30 << 10, 300 << 10},
			{13 << 10, 0}} {
			a, b := pair(t)
			sent := make(chan error)
			go func() {
				frame := append(header(uint32(size[0]), uint32(size[1]), KindNames),
					bytes.Repeat([]byte(" "), size[0]+size[1])...)
				_, err := a.Write(append(frame, header(0, 4, KindRows)...))
				if err == nil {
					_, err = a.Write([]byte("data"))
				}
				sent <- err
			}()
			to := NewConn(b)
			f, err := to.Receive(room)
			if err != nil || f.Refused == nil || f.Body != nil || f.Data != nil || f.held != 0 {
				t.Fatalf("%d bytes, %v: %v, %+v", memory, size, err, f)
			}
			if !errors.As(f.Refused, new(*mem.LimitError)) {
				t.Errorf("refused since %v", f.Refused)
			}
			f, err = to.Receive(room)
			if err = errors.Join(err, <-sent); err != nil || f.Kind != KindRows ||
				string(f.Data) != "data" {
				t.Errorf("%d bytes, after %v: %v, %+v", memory, size, err, f)
			}
		}
		if budget.Used() != 0 {
			t.Errorf("%d bytes are still counted", budget.Used())
		}
	}
}

// TestGrowsAsItComes: what a header announces is not counted before it comes; and the end in the
// middle of a frame is an error that is not that of an end between frames.
func TestGrowsAsItComes(t *testing.T) {
	a, b := pair(t)
	budget, got := mem.NewBudget(1<<20), make(chan error)
	go func() {
		_, err := NewConn(b).Receive(counts(budget))
		got <- err
	}()
	some := make([]byte, 100<<10)
	if _, err := a.Write(append(header(0, dataMax, KindRows), some...)); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	err := <-got
	if !errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		t.Errorf("the end in a frame: %v", err)
	}
	if peak := budget.Peak(); peak < 100<<10 || peak > 512<<10 || budget.Used() != 0 {
		t.Errorf("100 KiB came, %d bytes were counted, %d are still", peak, budget.Used())
	}
	for n, want := range map[int]error{0: io.EOF, 5: io.ErrUnexpectedEOF} {
		a, b := pair(t)
		if _, err := a.Write(header(0, 0, KindBye)[:n]); err != nil {
			t.Fatal(err)
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := NewConn(b).Receive(nil); !errors.Is(err, want) {
			t.Errorf("the end after %d bytes: %v", n, err)
		}
	}
}

// TestKeepData: data stay counted for who keeps them, once.
func TestKeepData(t *testing.T) {
	budget := mem.NewBudget(1 << 20)
	for _, n := range []int{100, 10_000} {
		a, b := pair(t)
		open := append(header(0, uint32(n), KindOpen), make([]byte, n)...)
		if _, err := a.Write(open); err != nil {
			t.Fatal(err)
		}
		f, err := NewConn(b).Receive(counts(budget))
		if err != nil {
			t.Fatal(err)
		}
		want := int64(n)
		if n < smallBytes {
			want = 0
		}
		if got := f.KeepData(); got != want {
			t.Errorf("%d bytes kept, want %d", got, want)
		}
		f.Free()
		if used := budget.Used(); used != want {
			t.Errorf("%d bytes are counted, want %d", used, want)
		}
		budget.Release(want)
	}
}

// TestInterrupt: who waits for a frame, or for the other side to take one, fails at once.
func TestInterrupt(t *testing.T) {
	a, _ := pair(t)
	c, got := NewConn(a), make(chan error, 2)
	go func() {
		_, err := c.Receive(nil)
		got <- err
	}()
	go func() { got <- c.Send(KindRows, nil, make([]byte, 8<<20)) }()
	c.Interrupt()
	for range 2 {
		select {
		case err := <-got:
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Fatal("it waits on")
		}
	}
}

// TestText: a list that is written piece by piece is the JSON of the whole, and is counted.
func TestText(t *testing.T) {
	budget := mem.NewBudget(1 << 20)
	for _, names := range [][]string{{}, {"a<b"}, {"]}", strings.Repeat("x", 9000), ""}} {
		of := Names{Names: names}
		want, err := json.Marshal(of)
		if err != nil {
			t.Fatal(err)
		}
		text := &Text{Budget: budget}
		of.Names = []string{}
		err = text.BeginList(of)
		for _, name := range names {
			err = errors.Join(err, text.Add(name))
		}
		if err = errors.Join(err, text.EndList()); err != nil || !bytes.Equal(text.JSON(), want) {
			t.Errorf("%v, %.200s, want %.200s", err, text.JSON(), want)
		}
		if used := budget.Used(); used != int64(cap(text.JSON())) || used == 0 {
			t.Errorf("%d bytes are counted for %d", used, cap(text.JSON()))
		}
		text.Free()
		if text.Free(); budget.Used() != 0 {
			t.Errorf("%d bytes are still counted", budget.Used())
		}
	}
	text, n := &Text{Budget: budget}, 0
	err := text.BeginList(Names{Names: []string{}})
	for ; err == nil; n++ {
		err = text.Add(strings.Repeat("x", 1000))
	}
	if !errors.As(err, new(*mem.LimitError)) || n < 300 || n > 1100 {
		t.Errorf("%d names fit: %v", n, err)
	}
	text.Free()
	if budget.Used() != 0 {
		t.Errorf("%d bytes are still counted", budget.Used())
	}
}
