package probe

import (
	"fmt"
	"maps"
	"math"
	"time"

	"gdb/internal/files"
	"gdb/train/plan"

	"golang.org/x/sys/unix"
)

// The profiles of this machine's devices are also kept in a file of the user, for all stores:
// what one store had measured the others use for a day. Nothing depends on the file: without it
// devices are measured.
const (
	machineFile = "devices.json"
	// machineDay is how long a profile counts. A device that other processes use is faster at some
	// times than at others.
	machineDay = 24 * time.Hour
)

// machineProfile is the profile of a device, with the time it was measured at.
type machineProfile struct {
	Measured time.Time    `json:"measured"`
	Profile  plan.Profile `json:"profile"`
}

// When returns the time of measurement, as files.ReadRecords asks of a record.
func (p machineProfile) When() time.Time { return p.Measured }

// counts reports whether a profile was measured in the day before now and has values that a
// device can have.
func (p *machineProfile) counts(now time.Time) bool {
	d := &p.Profile
	for _, v := range []float64{d.RandomReads, d.Sequential, d.Cores} {
		if !(v > 0) || math.IsInf(v, 0) {
			return false
		}
	}
	for _, v := range []float64{d.ReadSeconds, d.ByteSeconds, d.ReadCPU, d.ByteCPU, d.GFLOPS,
		d.Write.Seconds, d.Write.CPU, d.Copy.Seconds, d.Copy.CPU, d.Hit.Seconds, d.Hit.CPU,
		d.Miss.Seconds, d.Miss.CPU, d.Decide.Seconds, d.Decide.CPU} {
		if !(v >= 0) || math.IsInf(v, 0) {
			return false
		}
	}
	age := now.Sub(p.Measured)
	return age >= 0 && age < machineDay
}

// machineName returns the key of the profile of the store's device: the profile's name in a
// catalog, the file system that the store is in, and whether there is a model, whose products are
// timed. It is "" where nothing is kept: no directory was given, or the store is in no file system
// of the machine.
func (m *Probe) machineName() string {
	var at unix.Stat_t
	if m.cfg.Profiles == "" || unix.Stat(m.src.Store.Path(), &at) != nil {
		return ""
	}
	dev := uint64(at.Dev)
	return fmt.Sprintf("%s/device %d:%d/model %t", m.profileName(), unix.Major(dev),
		unix.Minor(dev), m.model != nil)
}

func (m *Probe) machinePath() string {
	return m.src.Store.FS().PathJoin(m.cfg.Profiles, machineFile)
}

// machineProfiles returns the profiles in the file that still count; none if there is no file. A
// file with other content is an error.
func (m *Probe) machineProfiles(now time.Time) (map[string]machineProfile, error) {
	all, err := files.ReadRecords[machineProfile](m.src.Store.FS(), m.machinePath())
	maps.DeleteFunc(all, func(_ string, p machineProfile) bool { return !p.counts(now) })
	return all, err
}

// ofMachine returns the profile of the device that was measured for any store less than a
// day ago, or nil.
func (m *Probe) ofMachine(now time.Time) *plan.Profile {
	name := m.machineName()
	if name == "" {
		return nil
	}
	all, err := m.machineProfiles(now)
	if kept, ok := all[name]; ok && err == nil {
		return &kept.Profile
	}
	return nil
}

// keepForMachine adds what was measured to the file. If it cannot be written, other stores measure
// the device again.
func (m *Probe) keepForMachine(now time.Time) error {
	name := m.machineName()
	if name == "" {
		return nil
	}
	all, err := m.machineProfiles(now)
	if err != nil {
		return err
	}
	d := *m.device
	d.Timed, d.Tried, d.Kept = nil, nil, ""
	all[name] = machineProfile{now, d}
	return files.WriteRecords(m.src.Store.FS(), m.machinePath(), all)
}
