package setting

import "errors"

// Computing is where a training computes.
type Computing struct {
	// Backend is auto, cpu or cuda: see package backend. A run's is never auto.
	Backend string `json:"backend"`
	// Device is the number of the device that Backend computes on, where there are several.
	Device int `json:"device,omitempty"`
	// MoreDevices are the numbers of further devices, each of which computes a part of every batch.
	MoreDevices []int `json:"more_devices,omitempty"`
	// PlainLaunches has a device be given each operation by a call of its own, and batches as large
	// as they are: see package backend's Groups.
	PlainLaunches bool `json:"plain_launches,omitempty"`
}

// Place is where a training of nodes computes, and in which precision.
type Place struct {
	Computing
	// DeviceCache is the bytes of features' rows that stay in the memory of the device that
	// computes, if that has its own; 0 is none, DeviceCacheAuto as many as there is room for.
	DeviceCache int64 `json:"device_cache"`
	// DeviceMemory is the bytes of the device that the run is planned for, whether there is one or
	// not, and bounds what an evaluation takes of it; 0 asks the device.
	DeviceMemory int64 `json:"-" setting:"device_memory"`
	// Precision is f32, or bf16: what products and sums over lists read, whose sums are float32
	// either way, as are weights, losses and norms; "" is f32. ChangePrecision has a run that is
	// resumed go on in it, though it began in another.
	Precision       string `json:"precision,omitempty"`
	ChangePrecision bool   `json:"-"`
	// Products is amx where products of bfloat16 are summed in the order of its tiles, and "" for
	// the order of all other kernels. The machine decides it when a run begins.
	Products string `json:"products,omitempty"`
	// SampleOn says where the batches of a training on a device are drawn: SampleAuto, SampleHost
	// or SampleDevice, from lists in its memory; "" is the host. It changes no batch.
	SampleOn string `json:"sample_on,omitempty"`
	// Grouped says that a device is given the operations of a step at once, and batches are padded
	// for that, or that they are not. It is measured when a run begins; nil until then.
	Grouped *bool `json:"grouped,omitempty"`
}

// The values of Place.SampleOn.
const (
	SampleAuto   = "auto"
	SampleHost   = "host"
	SampleDevice = "device"
)

// The values of Place.Precision.
const (
	Float32  = "f32"
	BFloat16 = "bf16"
	// TF32 is float32 but for the factors of products, which a device rounds to 10 bits.
	TF32 = "tf32"
)

// DeviceCacheAuto as Place.DeviceCache takes what there is room for.
const DeviceCacheAuto = -1

var placeRows = []*Row{
	{Name: "device-memory", For: OfNodes, Free: OfNodes, NotIn: everywhere &^ Plan,
		Type: sizeOrNone, Applied: Eval | Predict | Embed,
		AppliedHelp: "most that is taken of the memory of the device, but for its driver",
		Help:        "plan for a device with so much memory, which need not be here"},
	{Name: "backend", For: OfBoth, Free: OfBoth, NotIn: BenchLink, Default: BackendCPU,
		Unset:   BackendCPU,
		Choices: []string{BackendAuto, BackendCPU, BackendCUDA}, InPlan: PlanValue,
		Applied: Eval | Predict | Embed, AppliedLinks: Eval,
		Group: GroupPlace, Help: "where it computes: cpu; cuda: on a device of NVIDIA, in a " +
			"gdb that was built for it; auto: there if one opens, else on the cpu"},
	{Name: "precision", For: OfNodes, Unset: Float32, Choices: []string{Float32, BFloat16, TF32},
		KeptIf: func(c *Node) bool { return !c.ChangePrecision }, InPlan: PlanValue,
		Applied: Eval | Predict,
		Group:   GroupPlace, Help: "what products and sums over neighbors read: f32; bf16, half " +
			"as large and faster; tf32: f32 whose factors a device rounds (default f32; of a " +
			"run, its own)"},
	{Name: "products", For: OfNodes, Free: OfNodes},
	{Name: "device", Fields: []string{"more_devices"}, For: OfBoth, Free: OfBoth,
		NotIn: BenchLink, Type: devicesOf, Check: atLeast(0), Group: GroupPlace,
		Applied: Eval | Predict | Embed, AppliedLinks: Eval,
		Help: "number of the device of --backend cuda; or several to train on, such as 0,1, each " +
			"with an equal part of each batch"},
	{Name: "grouped", For: OfNodes, Free: OfNodes},
	{Name: "plain-launches", For: OfBoth, Free: OfBoth, NotIn: BenchLink, Group: GroupPlace,
		Help: "have --backend cuda launch each operation by itself, and not those of a step at " +
			"once"},
	{Name: "sample-on", For: OfNodes, Free: OfNodes, Default: SampleAuto, Unset: SampleHost,
		Choices: []string{SampleAuto, SampleHost, SampleDevice}, Group: GroupPlace,
		Help: "where --backend cuda draws batches: host; device: there, from lists in its " +
			"memory; auto: what is faster, where lists fit beside all feature rows"},
}

// CheckPrecision refuses a precision that the CPU does not compute in; Backend is not auto.
func (c *Node) CheckPrecision() error {
	if c.Precision == TF32 && c.Backend == BackendCPU {
		return errors.New("train: --precision tf32 is computed on a device alone: --backend " +
			"cuda, or --precision f32")
	}
	return nil
}

// Half says whether products and sums over lists read bfloat16.
func (c *Node) Half() bool { return c.Precision == BFloat16 }
