package plan

import (
	"crypto/sha256"
	"fmt"
)

// Kept is the record of a chosen split that the catalog keeps, so that a run of the same settings
// gets the same split without measuring again.
type Kept struct {
	Plan          Plan  `json:"plan"`
	BlockCache    int64 `json:"block_cache"`
	NeighborCache int64 `json:"neighbor_cache"`
}

// Kept returns the record of the split to keep.
func (p *Split) Kept() Kept {
	k := Kept{Plan: *p.Plan, BlockCache: p.BlockCache, NeighborCache: p.NeighborCache}
	if p.Forecast != nil { // the device has a place of its own
		f := *p.Forecast
		f.Device = nil
		k.Plan.Forecast = &f
	}
	return k
}

// Split makes the split again from its record, with runtime files as large as the disk has room for
// now. It returns nil where the program has grown so that the split does not fit any more, or where
// the disk has less than half of the room.
func (k *Kept) Split(f *Facts, d *Profile) *Split {
	plan := k.Plan
	plan.dim, plan.Fixed = f.Dim, f.Program
	if plan.Forecast != nil {
		forecast := *plan.Forecast
		forecast.Device = d
		plan.Forecast = &forecast
	}
	p := &Split{Plan: &plan, Facts: f, BlockCache: k.BlockCache, NeighborCache: k.NeighborCache}
	if p.OnDevice = f.deviceAgain(plan.OnDevice); p.Left() < 0 || p.OnDevice.fits() != nil {
		return nil
	}
	if s := p.Superbatch; s != nil {
		if f.Storage < s.Storage/2 {
			return nil
		}
		less := *s
		less.Storage = min(s.Storage, f.Storage)
		p.Superbatch = &less
	}
	return p
}

// deviceAgain splits the memory of the device with the step's sizes of an earlier plan and with the
// memory that is free now.
func (f *Facts) deviceAgain(before *DevicePlan) *DevicePlan {
	if before != nil {
		f.Device.Step, f.Device.Given = before.Step, before.Given
	}
	return f.planDevice()
}

// Name returns a hash that differs between facts that lead to different plans, before batches are
// measured. It leaves out the memory of the program, the free memory of the device and the room on
// the disk, which are never the same twice.
func (f Facts) Name() string {
	f.Program, f.Storage, f.PagedBytes, f.Device.Free = 0, 0, nil, 0
	return fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%+v", f)))
}
