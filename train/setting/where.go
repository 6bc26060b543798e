package setting

import "fmt"

// Where says where a run is evaluated; zero values are as the run was trained.
type Where struct {
	// Backend is one of the choices of backend.
	Backend string
	// Device is the number of the device.
	Device *int
	// DeviceMemory bounds what is taken of a device's memory, in bytes; 0 for what it has.
	DeviceMemory int64
}

// Apply changes where settings compute. What was trained on a device need not find one.
func (w Where) Apply(c *Computing) {
	switch {
	case w.Backend != "":
		c.Backend = w.Backend
	case c.Backend == BackendCUDA:
		c.Backend = BackendAuto
	}
	if c.MoreDevices = nil; w.Device != nil {
		c.Device = *w.Device
	}
}

// Where returns where the line says that a run is evaluated.
func (l *Line) Where() (Where, error) {
	w := Where{DeviceMemory: l.node.DeviceMemory}
	if l.Given("backend") {
		w.Backend = l.node.Backend
	}
	if l.Given("device") {
		w.Device = &l.node.Device
	}
	if l.node.Parts() > 1 {
		return w, fmt.Errorf("--device %s: %w", FormatDevices(l.node.Devices()), errOneDevice)
	}
	return w, nil
}

// Precision returns the precision on the line; "" if none was given.
func (l *Line) Precision() string {
	if l.Given("precision") {
		return l.node.Precision
	}
	return ""
}
