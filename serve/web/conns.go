package web

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// connectionBytes is what a connection takes: two goroutines and two buffers.
const connectionBytes = 24 << 10

// connectionsMost bounds the connections whatever the memory is.
const connectionsMost = 4096

// bounded returns a listener that refuses connections when there are too many. Connections take at
// most half of the memory for requests.
func (s *Service) bounded(l net.Listener) net.Listener {
	most := min(connectionsMost, s.requests.Limit()/2/connectionBytes)
	return &boundedListener{Listener: l, of: s, most: max(1, most)}
}

type boundedListener struct {
	net.Listener
	of   *Service
	most int64
	open atomic.Int64
}

// busy is the answer to a client for which there is no room.
const busy = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\n" +
	"Content-Length: 0\r\n\r\n"

// Accept returns the next connection that there is room for.
func (b *boundedListener) Accept() (net.Conn, error) {
	for {
		c, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if b.open.Load() < b.most &&
			b.of.requests.Reserve("connections", connectionBytes) == nil {
			b.open.Add(1)
			b.of.metrics.clients.Inc()
			return &countedConn{Conn: c, from: b}, nil
		}
		b.of.metrics.refused.Inc()
		_ = c.SetWriteDeadline(time.Now().Add(time.Millisecond)) // its buffer is empty
		_, _ = c.Write([]byte(busy))
		_ = c.Close()
	}
}

// countedConn is a connection that is counted until it is closed.
type countedConn struct {
	net.Conn
	from *boundedListener
	once sync.Once
}

// Close closes the connection.
func (c *countedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() {
		c.from.open.Add(-1)
		c.from.of.metrics.clients.Dec()
		c.from.of.requests.Release(connectionBytes)
	})
	return err
}
