package plan

import (
	"crypto/sha256"
	"fmt"
)

// Kept is a split that was chosen, from which it is made again for a run of the same settings.
type Kept struct {
	Plan          Plan  `json:"plan"`
	BlockCache    int64 `json:"block_cache"`
	NeighborCache int64 `json:"neighbor_cache"`
}

// Kept is what is kept of a split.
func (p *Split) Kept() Kept {
	k := Kept{Plan: *p.Plan, BlockCache: p.BlockCache, NeighborCache: p.NeighborCache}
	if p.Forecast != nil { // the device has a place of its own
		f := *p.Forecast
		f.Device = nil
		k.Plan.Forecast = &f
	}
	return k
}

// Split makes the split again, with runtime files that the disk has room for now. It is nil where
// the program has grown so that it does not fit any more, or the disk has less than half of the
// room.
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

// deviceAgain splits the memory of the device for the sizes of a plan that was made before, with
// what is free of it now.
func (f *Facts) deviceAgain(before *DevicePlan) *DevicePlan {
	if before != nil {
		f.Device.Step, f.Device.Given = before.Step, before.Given
	}
	return f.planDevice()
}

// Name tells facts apart that make other plans, before batches are measured: but for the memory of
// the program, what is free of a device's, and the room on the disk, which are never the same
// twice.
func (f Facts) Name() string {
	f.Program, f.Storage, f.PagedBytes, f.Device.Free = 0, 0, nil, 0
	return fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%+v", f)))
}
