package plan

// planDevice splits the memory of the device; it returns nil if there is none.
func (f *Facts) planDevice() *DevicePlan {
	d := &f.Device
	if d.Memory == 0 {
		return nil
	}
	if d.Lists == 0 {
		return f.splitDevice(false)
	}
	p := f.splitDevice(true)
	if d.DrawBeside && (p.fits() != nil || d.Cacheable && p.Rows < int64(f.Nodes)) {
		return f.splitDevice(false)
	}
	return p
}

// splitDevice splits the memory of the device, on which batches are drawn or not.
func (f *Facts) splitDevice(draws bool) *DevicePlan {
	d := &f.Device
	p := &DevicePlan{Name: d.Name, Memory: d.Memory, Other: d.Memory - d.Free, Model: d.Model,
		Step: d.Step, Given: d.Given, Launches: d.Launches,
		Eval: max(0, d.Eval-d.Step-d.Given)}
	if draws {
		device, host := d.Draw(f.BatchNodes, f.BatchEdges)
		p.Lists, p.DrawHost = d.Lists+device, host
	}
	row := 4 * int64(f.Dim)
	if row == 0 || !d.Cacheable {
		return p
	}
	room := max(0, d.Memory-p.taken()-d.Memory/deviceReserve) / row
	if f.DeviceCache < 0 {
		p.Rows = min(room, int64(f.Nodes))
	} else {
		p.Rows = min(room, f.DeviceCache/row, int64(f.Nodes))
	}
	f.planShared(p, room)
	p.Cache, p.Shared = p.Rows*row, p.SharedRows*row
	return p
}

// planShared reserves up to half of the room, in rows, for rows that the batches of a macro-batch
// share. It reserves none if all rows are kept anyway.
func (f *Facts) planShared(p *DevicePlan, room int64) {
	if f.MacroBatch <= 1 || p.Rows == int64(f.Nodes) {
		return
	}
	want := min(int64(f.MacroBatch)*f.BatchNodes, int64(f.Nodes))
	if n := min(want, room/2-1); n > 0 { // one more has zeros
		p.SharedRows, p.Rows = n, min(p.Rows, room-n-1)
	}
}

// drawHost returns the page-locked memory of the host for batches that the device draws.
func (f *Facts) drawHost() int64 {
	if p := f.planDevice(); p != nil {
		return p.DrawHost
	}
	return 0
}

// fits returns a DeviceTooSmallError if the run does not fit on the device.
func (p *DevicePlan) fits() error {
	if p != nil && p.taken() > p.Memory {
		return &DeviceTooSmallError{Plan: p}
	}
	return nil
}

// DeviceRows returns how many rows the device keeps. It is the same for every split of the
// host's memory.
func (f *Facts) DeviceRows() int64 { return f.planDevice().Cached() }
