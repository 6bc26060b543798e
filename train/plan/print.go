package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"gdb/internal/mem"
	topo "gdb/layout/topology"
)

// Host names the pool that is the process's own memory.
const Host = "host"

// neighborCache names the part that is left out of a line where there is none.
const neighborCache = "neighbor cache"

// Pools lists the memory of each device, the host's first. The parts of a pool add up to no more
// than its Bytes.
func (p *Plan) Pools() []mem.Pool {
	parts := []mem.Part{part("program", "", p.Fixed), part("model", "", p.Model)}
	if p.Vectors > 0 {
		disk := "and " + mem.FormatSize(p.VectorsDisk) + " of disk in checkpoints"
		halo := p.facts != nil && p.facts.Halo
		parts = append(parts, part(vectorsName(halo), disk, p.Vectors))
	}
	if b := p.Partitions; b != nil {
		what := fmt.Sprintf("%d of %d, features and lists", b.InMemory, b.Parts)
		parts = append(parts, part("partitions", what, b.Bytes))
	}
	parts = append(parts, part("topology", p.topologyKind(), p.Topology),
		part(neighborCache, p.neighborKind(), p.Neighbor),
		part("features", p.cacheName(), p.Features),
		part("batches", p.batchKind()+p.workers(), p.Batches),
		part("step", "", p.Step), part("evaluation", "besides the step's", p.Eval))
	if p.Lent > 0 {
		parts = append(parts, part("lent", "batches of clients", p.Lent))
	}
	pools := []mem.Pool{{Device: Host, Bytes: p.Memory, Parts: parts}}
	if p.OnDevice != nil {
		pools = append(pools, p.OnDevice.pool())
	}
	return pools
}

// vectorsName says what Facts.Vectors are.
func vectorsName(halo bool) string {
	if halo {
		return "hidden states"
	}
	return "node embedding"
}

// part returns a part of a plan, for people.
func part(name, what string, bytes int64) mem.Part {
	return mem.Part{Name: name, What: what, Bytes: bytes}
}

// cacheName names the cache. It adds how much larger the cache is while batches are trained on, if
// it uses memory that is needed otherwise between.
func (p *Plan) cacheName() string {
	s := p.Superbatch
	if s == nil || s.Kept == s.Slots || s.Kept == 0 {
		return "cache " + p.Cache
	}
	return fmt.Sprintf("cache %s, %.1f times as many rows while training", p.Cache,
		float64(s.Slots)/float64(s.Kept))
}

// topologyKind says how neighbor lists are held and read.
func (p *Plan) topologyKind() string {
	topology := "paged"
	if p.Resident {
		topology = "resident"
		if p.Form != "" && p.Form != topo.Plain {
			topology += ", " + string(p.Form)
		}
	} else if l := p.Lists; l != nil && l.Neighbors > 0 {
		topology = "paged behind a neighbor cache"
	} else if p.PassBytes() > 0 {
		topology = "paged, in passes"
		if p.Staged() {
			topology += ", rows read ahead"
		}
	}
	if s := p.Superbatch; s != nil && !s.Overlap {
		topology += ", in turn with batches"
	}
	return topology
}

// neighborKind returns the size of a neighbor cache that is counted with the topology, because it
// takes turns with batches in the same memory; else "".
func (p *Plan) neighborKind() string {
	if l := p.Lists; l != nil && l.Neighbors > 0 && p.Neighbor == 0 {
		return mem.FormatSize(l.Neighbors) + " in turn with batches"
	}
	return ""
}

// batchKind says how many gathered batches wait for the step.
func (p *Plan) batchKind() string {
	if p.InTurn {
		return "gathered in turn"
	}
	return fmt.Sprintf("%d ready", p.Ready)
}

// workers says how many goroutines make batches.
func (p *Plan) workers() string {
	switch {
	case p.Samplers == 0 || p.Superbatch != nil:
		return ""
	case p.Samplers == 1:
		return ", 1 sampler"
	}
	return fmt.Sprintf(", %d samplers", p.Samplers)
}

// Why says against which rivals the plan was chosen, in a line for people; "" if there
// was no choice.
func (p *Plan) Why() string {
	if p.Forecast == nil || len(p.Rivals) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s an epoch", p.what(), seconds(p.Forecast.Time))
	for i, r := range p.Rivals {
		sep := ", "
		if i == 0 {
			sep = "; "
		}
		least := ""
		if r.AtLeast {
			least = "over "
		}
		fmt.Fprintf(&b, "%s%s: %s%s", sep, r.What, least, seconds(r.Time))
	}
	if l := p.Lists; l != nil && l.Why != "" {
		fmt.Fprintf(&b, "; %s", l.Why)
	}
	return b.String()
}

// seconds formats s seconds with three digits, in the unit that suits.
func seconds(s float64) string {
	d := time.Duration(s * float64(time.Second))
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit).String()
}

// what describes the plan by the choices that distinguish it from its rivals.
func (p *Plan) what() string {
	return fmt.Sprintf("%s, topology %s, %s", p.Cache, p.topologyKind(), p.batchKind())
}

// String returns one line for people.
func (p *Plan) String() string {
	host := p.Pools()[0]
	host.Parts = slices.DeleteFunc(host.Parts, func(part mem.Part) bool {
		return part.Name == neighborCache && part.Bytes == 0 && part.What == ""
	})
	return fmt.Sprintf("memory %s: %s", mem.FormatSize(p.Memory), &host)
}

// Left returns the bytes of the host's memory that no part has.
func (p *Plan) Left() int64 { return p.Pools()[0].Left() }

// String returns one line for people.
func (f *Forecast) String() string {
	return fmt.Sprintf("an epoch of %d batches: read %s, hit %.1f%%, sample %.1fs, gather %.1fs, "+
		"compute %.1fs, time %.1fs (%s)", f.Batches, mem.FormatSize(f.Read), 100*f.Hit, f.Sample,
		f.Gather, f.Compute, f.Time, f.Binding)
}

// String returns one line for people.
func (w *BusWay) String() string {
	way := "copies are sent"
	if w.InPlace {
		way = "the device reads them in the host's memory"
	}
	if w.Bytes > 0 {
		way += fmt.Sprintf(": %s took the host %.2f ms to copy, %.2f ms to send, and the device "+
			"%.2f ms to read", mem.FormatSize(w.Bytes), 1e3*w.Copy, 1e3*w.Send, 1e3*w.Read)
	}
	switch {
	case w.Why != "":
		way += ": " + w.Why
	case w.Bytes == 0:
		way += ", since they change places in the host's cache"
	}
	return way
}

// String returns one line for people.
func (w *DrawWay) String() string {
	where := "the host"
	if w.OnDevice {
		where = "the device"
	}
	return fmt.Sprintf("%s draws batches: one takes the device %.2f ms, and the host's samplers "+
		"%.2f ms", where, 1e3*w.Device, 1e3*w.Host)
}

// String returns one line for people.
func (w *LaunchWay) String() string {
	way := "launched one by one"
	if w.Grouped {
		way = "launched at once, batches padded"
	}
	return fmt.Sprintf("%s: a step took %.2f ms at once, %.2f ms one by one", way, 1e3*w.AtOnce,
		1e3*w.OneByOne)
}

// BusWays says how rows that the device does not keep will come to it; "" where there are none.
func (p *Plan) BusWays() string {
	switch {
	case p.OnDevice == nil || p.Forecast == nil || p.Forecast.DeviceHit == 1:
		return ""
	case p.Superbatch == nil && (p.Cache == "all" || p.Cache == "none" || p.Cache == "static"):
		return "copies of rows are sent, or the device reads them in the host's memory: what is " +
			"faster when a run begins and tries both"
	}
	return "copies of rows are sent, since they change places in the host's cache"
}

// Note tells the user why the device cannot read rows in the host's memory; "" if it can.
func (p *DevicePlan) Note() string {
	if p == nil || p.Bus == nil || p.Bus.Why == "" {
		return ""
	}
	return "rows are copied and sent to the device, which does not read them in the host's " +
		"memory: " + p.Bus.Why
}

// pool returns the device's memory, with the share of each part of the run.
func (p *DevicePlan) pool() mem.Pool {
	features := part("features", "none", p.Cache)
	if p.Rows > 0 {
		features.What = fmt.Sprintf("of the %d nodes used most", p.Rows)
	}
	parts := []mem.Part{part("other", "driver, kernels, other processes", p.Other),
		part("model", "", p.Model), part("step", "", p.Step),
		part("given", "rows and lists of 2 steps", p.Given)}
	if p.Lists > 0 {
		parts = append(parts, part("neighbors", "all lists, and batches drawn from them", p.Lists))
	}
	parts = append(parts, part("evaluation", "besides the step's", p.Eval), features)
	if p.SharedRows > 0 {
		what := fmt.Sprintf("%d rows that its batches share", p.SharedRows)
		parts = append(parts, part("macro-batch", what, p.Shared))
	}
	return mem.Pool{Device: p.Name, Bytes: p.Memory, Parts: parts}
}

// TooSmallError says that a run does not fit in the memory it was given.
type TooSmallError struct {
	Memory int64
	Least  int64 // the smallest memory that would do, as far as is known
	// Nearest is the split that needs only Least, or nil where batches were not sampled.
	Nearest *Plan
	// Evaluates says that the run is an evaluation without training.
	Evaluates bool
}

// Error says how much memory is needed, and which settings lower that.
func (e *TooSmallError) Error() string {
	memory, least := mem.FormatSize(e.Memory), sizeUp(e.Least)
	switch {
	case e.Evaluates:
		return fmt.Sprintf("memory %s is too small to evaluate: it needs at least %s: raise "+
			"--memory", memory, least)
	case e.Nearest == nil:
		return fmt.Sprintf("memory %s is too small: this store needs at least %s, and room for "+
			"batches: raise --memory", memory, least)
	}
	return fmt.Sprintf("memory %s is too small: this run needs at least %s (%s): raise --memory, "+
		"or lower --batch, --fanout or --hidden", memory, least, e.Nearest)
}

// sizeUp writes a size of n bytes in MiB, rounded up.
func sizeUp(n int64) string { return fmt.Sprintf("%dMiB", (n+1<<20-1)>>20) }

// DeviceTooSmallError says that a run does not fit in the memory of its device.
type DeviceTooSmallError struct{ Plan *DevicePlan }

// Error says how much memory the run needs, for what, and which settings lower it.
func (e *DeviceTooSmallError) Error() string {
	p, instead := e.Plan, "--backend cpu"
	if p.Lists > 0 {
		instead = "--sample-on host"
	}
	size := mem.FormatSize
	return fmt.Sprintf("the memory of %s, %s, is too small: this run needs at least %s of it "+
		"(%s have the driver and others, model %s, step %s, what two steps are given %s, "+
		"neighbor lists %s, evaluation %s): lower --batch, --fanout or --hidden, or %s", p.Name,
		size(p.Memory), sizeUp(p.taken()), size(p.Other), size(p.Model), size(p.Step),
		size(p.Given), size(p.Lists), size(p.Eval), instead)
}
