package probe

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gdb/blockdev"
	"gdb/blockdev/devtest"
	"gdb/internal/files"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/sample/loader"
	"gdb/train/plan"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// machineProbe is a probe of a new store on this machine's disk that keeps profiles in a directory.
func machineProbe(t *testing.T, profiles string) *Probe {
	t.Helper()
	store := layouttest.Build(t, vfs.Default, filepath.Join(t.TempDir(), "store"),
		layouttest.Skewed())
	return probeOf(t, store, profiles)
}

// probeOf is a probe of a store.
func probeOf(t *testing.T, store *layout.Store, profiles string) *Probe {
	t.Helper()
	c := lawConfig(1)
	c.Profiles = profiles
	src := loader.NewSource(store, devtest.Open(t, blockdev.Options{}),
		mem.NewProcessBudget(c.Memory))
	t.Cleanup(func() {
		if err := src.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := errors.Join(src.OpenRows(t.Context()), src.OpenLabels(t.Context())); err != nil {
		t.Fatal(err)
	}
	m, err := New(src, c, nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// mustProfile is what a probe knows of the device.
func mustProfile(t *testing.T, m *Probe) plan.Profile {
	t.Helper()
	p, err := m.Profile(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return *p
}

// TestMachineProfiles: what was measured for a store is what another one is planned by, and a new
// probe of either, until a day is over.
func TestMachineProfiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache", "gdb")
	first := machineProbe(t, dir)
	measured := mustProfile(t, first)
	if measured.Kept != "" {
		t.Fatalf("not kept: %s", measured.Kept)
	}
	second := machineProbe(t, dir)
	for _, m := range []*Probe{second, probeOf(t, second.src.Store, ""),
		probeOf(t, first.src.Store, "")} {
		p := mustProfile(t, m)
		if p.ReadSeconds != measured.ReadSeconds || p.Sequential != measured.Sequential ||
			p.Copy != measured.Copy || m.measured {
			t.Errorf("another probe has %+v, the first %+v", p, measured)
		}
	}
	if p := second.ofMachine(time.Now().Add(machineDay)); p != nil {
		t.Error("a profile counts for longer than a day")
	}
	if p := second.ofMachine(time.Now().Add(-time.Hour)); p != nil {
		t.Error("a profile counts that was measured later than now")
	}
	second.again, second.device = true, nil
	if p := mustProfile(t, second); p.ReadSeconds == measured.ReadSeconds &&
		p.Copy == measured.Copy {
		t.Error("a device that was to be measured anew was not")
	}
	third := machineProbe(t, dir)
	if p := mustProfile(t, third); p.ReadSeconds != second.device.ReadSeconds {
		t.Error("what was measured anew did not come in the place of the profile before")
	}
}

// TestMachineFileIsNotNeeded: a file of something else, and a directory that cannot be made, are
// told, and the device is measured.
func TestMachineFileIsNotNeeded(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, machineFile)
	if err := os.WriteFile(path, []byte("{\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if p := mustProfile(t, machineProbe(t, dir)); !strings.Contains(p.Kept, "delete it") {
		t.Errorf("of a file that is damaged it is told: %q", p.Kept)
	}
	if p := mustProfile(t, machineProbe(t, filepath.Join(path, "gdb"))); p.Kept == "" {
		t.Error("of a directory that cannot be made nothing is told")
	}
	if err := os.WriteFile(path, []byte(`{"x": {"profile": {"cores": -1}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	m := machineProbe(t, dir)
	if p := mustProfile(t, m); p.Kept != "" || m.ofMachine(time.Now()) == nil {
		t.Errorf("beside a profile that cannot be, none is kept: %q", p.Kept)
	}
}

// TestMachineProfilesAreBounded: of more than there is a place for, the oldest go.
func TestMachineProfilesAreBounded(t *testing.T) {
	m := machineProbe(t, t.TempDir())
	mustProfile(t, m)
	begun := time.Now().Add(-time.Hour)
	for i := range files.RecordsMost + 3 {
		m.threads = i + 2
		if err := m.keepForMachine(begun.Add(time.Duration(i) * time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	all, err := m.machineProfiles(time.Now())
	if err != nil || len(all) != files.RecordsMost {
		t.Fatalf("%d profiles are kept, %v", len(all), err)
	}
	m.threads = 2
	if _, ok := all[m.machineName()]; ok {
		t.Error("the oldest did not go")
	}
}
