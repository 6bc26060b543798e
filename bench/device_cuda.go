//go:build cuda && cgo && linux

package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"gdb/compute/backend"
	gpu "gdb/compute/backend/cuda"
	"gdb/internal/cuda"
)

// How long one measurement of a device takes at least, and how many there are; the best counts.
const (
	deviceTime   = 20 * time.Millisecond
	deviceRounds = 5
)

// deviceRows measures all devices.
func deviceRows(ctx context.Context) (rows []Row, err error) {
	if err := cuda.Available(); err != nil {
		return nil, err
	}
	n, err := cuda.Count()
	if err != nil {
		return nil, err
	}
	for i := range n {
		if err := ctx.Err(); err != nil {
			return rows, err
		}
		row, err := deviceRow(i)
		if err == nil {
			err = rowSpeeds(row, i)
		}
		if err != nil {
			return rows, fmt.Errorf("device %d: %w", i, err)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// rowSpeeds measures rows in the memory of a device.
func rowSpeeds(row Row, ordinal int) error {
	be, err := gpu.OpenNamed(backend.CUDA, backend.Options{Device: ordinal})
	if err != nil {
		return err
	}
	s, err := measureRowSpeeds(be)
	row["inner_bytes_per_s"], row["rows"] = s.Copy, s.Rows
	row["gather_share"], row["mean_share"] = s.Gather/s.Copy, s.Mean/s.Copy
	return errors.Join(err, be.Close())
}

// deviceMeter measures one device on a stream.
type deviceMeter struct {
	device     *cuda.Device
	stream     *cuda.Stream
	begin, end *cuda.Event
}

func deviceRow(ordinal int) (row Row, err error) {
	d, err := cuda.Open(ordinal)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	unbind, err := d.Bind()
	if err != nil {
		return nil, err
	}
	defer unbind()
	m := &deviceMeter{device: d}
	defer func() { err = errors.Join(err, m.close()) }()
	if m.stream, err = d.NewStream(); err != nil {
		return nil, err
	}
	if m.begin, err = d.NewEvent(true); err != nil {
		return nil, err
	}
	if m.end, err = d.NewEvent(true); err != nil {
		return nil, err
	}
	row = Row{"device": ordinal, "name": d.Name, "memory_bytes": d.MemoryBytes,
		"capability": fmt.Sprintf("%d.%d", d.Major, d.Minor), "driver_version": d.DriverVersion,
		"why": nil}
	if row["copy_bytes_per_s"], err = m.copies(); err != nil {
		return nil, err
	}
	return row, errors.Join(m.products(row), m.calls(row))
}

func (m *deviceMeter) close() (err error) {
	for _, e := range []*cuda.Event{m.begin, m.end} {
		if e != nil {
			err = errors.Join(err, e.Close())
		}
	}
	if m.stream != nil {
		err = errors.Join(err, m.stream.Close())
	}
	return err
}

// seconds returns the least time that queue takes on the device, of several times, once it was
// warm.
func (m *deviceMeter) seconds(queue func() error) (float64, error) {
	best := math.Inf(1)
	for range deviceRounds + 1 {
		if err := errors.Join(m.stream.Record(m.begin), queue(), m.stream.Record(m.end),
			m.end.Synchronize()); err != nil {
			return 0, err
		}
		d, err := m.end.Since(m.begin)
		if err != nil {
			return 0, err
		}
		best = min(best, d.Seconds())
	}
	return best, nil
}

// copies measures how many bytes a second go from locked memory to the device.
func (m *deviceMeter) copies() (rate float64, err error) {
	const bytes = 64 << 20
	host, err := m.device.AllocPinned(bytes)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, m.device.FreePinned(host)) }()
	p, err := m.device.Alloc(bytes)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, m.device.Free(p)) }()
	clear(host.Bytes) // the pages are there
	seconds, err := m.seconds(func() error { return m.stream.CopyToDevice(p, host.Bytes) })
	return bytes / seconds, err
}

// calls measures what it costs to have small things done one by one, and as a graph.
func (m *deviceMeter) calls(row Row) error {
	const bytes, count = 256, 256
	p, err := m.device.Alloc(bytes)
	if err != nil {
		return err
	}
	all := func() (err error) {
		for range count {
			err = errors.Join(err, m.stream.Zero(p, bytes))
		}
		return err
	}
	graph, err := m.stream.Capture(all)
	if err != nil {
		return errors.Join(err, m.device.Free(p))
	}
	call, err := m.seconds(all)
	grouped, failed := m.seconds(func() error { return graph.Launch(m.stream) })
	row["call_us"], row["graph_us"] = 1e6*call/count, 1e6*grouped/count
	return errors.Join(err, failed, graph.Close(), m.device.Free(p))
}

// products measures square products, of a size that takes the device some time.
func (m *deviceMeter) products(row Row) (err error) {
	const largest = 8192
	free, _, err := m.device.MemInfo()
	if err != nil {
		return err
	}
	blas, err := m.device.NewBLAS(m.stream)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, blas.Close()) }()
	for n := 512; ; n *= 2 {
		seconds, err := m.product(blas, n, cuda.Pedantic)
		if err != nil {
			return err
		}
		row["gflops"] = 2e-9 * float64(n) * float64(n) * float64(n) / seconds
		if seconds >= deviceTime.Seconds() || 2*n > largest || 3*4*4*int64(n)*int64(n) > free/2 {
			seconds, err = m.product(blas, n, cuda.TF32)
			row["tf32_gflops"] = 2e-9 * float64(n) * float64(n) * float64(n) / seconds
			row["n"] = n
			return err
		}
	}
}

// product returns the time of one product of n x n matrices.
func (m *deviceMeter) product(blas *cuda.BLAS, n int, mode cuda.Math) (seconds float64, err error) {
	bytes := 4 * int64(n) * int64(n)
	p, err := m.device.Alloc(3 * bytes)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, m.device.Free(p)) }()
	const half = 0x3f000000 // 0.5 as a float32
	if err := errors.Join(blas.SetMath(mode), m.stream.Fill(p, half, 3*bytes/4)); err != nil {
		return 0, err
	}
	at := func(i int64) cuda.Operand {
		return cuda.Operand{Memory: p + cuda.DevicePtr(i*bytes), Stride: n}
	}
	return m.seconds(func() error { return blas.Sgemm(n, n, n, 1, at(0), at(1), 0, at(2)) })
}
