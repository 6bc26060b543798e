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

// A file of the user has the profiles of the devices of this machine, for all stores: what one of
// them had measured is known to the others for a day. Nothing depends on the file: without it,
// devices are measured.
const (
	machineFile = "devices.json"
	// machineDay is how long a profile counts: a device that others use is faster by turns.
	machineDay = 24 * time.Hour
)

// machineProfile is that of a device.
type machineProfile struct {
	Measured time.Time    `json:"measured"`
	Profile  plan.Profile `json:"profile"`
}

// When is for measured.
func (p machineProfile) When() time.Time { return p.Measured }

// counts says that a profile is of the day before now, and what a device can be.
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

// machineName is what the profile of the store's device is kept under: with what a catalog has it
// under, the file system that the store is in, and whether there is a model, whose products are
// timed. It is empty where nothing is kept: no directory was given, or the store is in no file
// system of the machine.
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

// machineProfiles are those of the file that count; none if it is not there. A file of something
// else is an error.
func (m *Probe) machineProfiles(now time.Time) (map[string]machineProfile, error) {
	all, err := files.ReadRecords[machineProfile](m.src.Store.FS(), m.machinePath())
	maps.DeleteFunc(all, func(_ string, p machineProfile) bool { return !p.counts(now) })
	return all, err
}

// ofMachine is the profile of the device that was measured for any store less than a day ago, or
// nil.
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

// keepForMachine adds what was measured to the file. Where it cannot be written, the other stores
// have the device measured again.
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
