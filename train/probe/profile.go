package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"time"

	"gdb/blockdev"
	"gdb/internal/files"
	"gdb/kv"
	"gdb/train/plan"

	"golang.org/x/sys/unix"
)

// keptMost bounds the entries of each table of the profile: when a table is full it is emptied.
const keptMost = 256

// timed returns the work recorded under a name in the profile, or else measures and records it.
func (m *profiler) timed(name string, measure func() (plan.Work, error)) (plan.Work, error) {
	return kept(m, &m.device.Timed, name, measure)
}

// tried returns the reads recorded under a name in the profile, or else tries and records them.
func (m *profiler) tried(name string, try func() (plan.ListReads, error)) (plan.ListReads, error) {
	return kept(m, &m.device.Tried, name, try)
}

// kept returns the entry of a table under a name, or else finds and records it.
func kept[T any](m *profiler, in *map[string]T, name string, find func() (T, error)) (T, error) {
	if v, ok := (*in)[name]; ok {
		return v, nil
	}
	v, err := find()
	if err != nil {
		return v, err
	}
	if *in == nil || len(*in) >= keptMost {
		*in = map[string]T{}
	}
	(*in)[name], m.news = v, true
	return v, nil
}

// profile finds the profile of the device and of this machine: in the catalog, or as it was
// measured for another store; else it measures a new one.
func (m *profiler) profile(ctx context.Context) error {
	if m.device != nil {
		return nil
	}
	name := m.profileName()
	if !m.again {
		b, err := m.src.Store.Catalog().Profile(ctx, name)
		if err == nil {
			p := &plan.Profile{}
			if err := json.Unmarshal(b, p); err != nil {
				return fmt.Errorf("probe: profile %s: %w", name, err)
			}
			m.device = p
			return nil
		}
		if !errors.Is(err, kv.ErrNotFound) {
			return fmt.Errorf("probe: read profile %s: %w", name, err)
		}
		if m.device = m.ofMachine(time.Now()); m.device != nil {
			m.news = true
			return nil
		}
	}
	p, err := m.measure(ctx)
	if err != nil {
		return fmt.Errorf("probe: measure the device: %w", err)
	}
	m.device, m.news, m.measured = p, true, true
	return nil
}

// keepProfile writes the profile to the catalog if anything in it is new, and what was measured to
// the file where other stores find it.
func (m *profiler) keepProfile(ctx context.Context) error {
	if !m.news {
		return nil
	}
	b, err := json.Marshal(m.device)
	if err != nil {
		return fmt.Errorf("probe: encode profile: %w", err)
	}
	if err := m.src.Store.Catalog().PutProfile(ctx, m.profileName(), b); err != nil {
		m.device.Kept = err.Error()
	}
	m.news = false
	if !m.measured {
		return nil
	}
	m.measured = false
	if err := m.keepForMachine(time.Now()); err != nil {
		m.device.Kept = fmt.Sprintf("for other stores: %v", err)
	}
	return nil
}

// ProfileName returns the name of a profile in a catalog. It differs by machine, way of reading,
// kind of rows and number of threads.
func ProfileName(dev blockdev.Device, rows kv.RowsMeta, threads int) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("train4/%s/%s/%d-%d-%d/%d", host, dev.Info().Backend, rows.RowBytes,
		rows.PageBytes, rows.Dim, threads)
}

func (m *profiler) profileName() string {
	return ProfileName(m.src.Device, m.src.AnyRows().Meta(), m.threads)
}

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
func (m *profiler) machineName() string {
	var at unix.Stat_t
	if m.kept == "" || unix.Stat(m.src.Store.Path(), &at) != nil {
		return ""
	}
	dev := uint64(at.Dev)
	return fmt.Sprintf("%s/device %d:%d/model %t", m.profileName(), unix.Major(dev),
		unix.Minor(dev), m.model != nil)
}

func (m *profiler) machinePath() string {
	return m.src.Store.FS().PathJoin(m.kept, machineFile)
}

// machineProfiles returns the profiles in the file that still count; none if there is no file. A
// file with other content is an error.
func (m *profiler) machineProfiles(now time.Time) (map[string]machineProfile, error) {
	all, err := files.ReadRecords[machineProfile](m.src.Store.FS(), m.machinePath())
	maps.DeleteFunc(all, func(_ string, p machineProfile) bool { return !p.counts(now) })
	return all, err
}

// ofMachine returns the profile of the device that was measured for any store less than a
// day ago, or nil.
func (m *profiler) ofMachine(now time.Time) *plan.Profile {
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
func (m *profiler) keepForMachine(now time.Time) error {
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
