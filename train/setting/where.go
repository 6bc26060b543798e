package setting

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
func (w Where) Apply(c *Node) {
	switch {
	case w.Backend != "":
		c.Backend = w.Backend
	case c.Backend == BackendCUDA:
		c.Backend = BackendAuto
	}
	if w.Device != nil {
		c.Device = *w.Device
	}
	c.DeviceMemory = w.DeviceMemory
}
