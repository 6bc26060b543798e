package setting

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gdb/internal/message"
)

// Line is what a command line says of settings: the values that were given, for either task.
type Line struct {
	node  Node
	link  Link
	given map[*Row]bool
	// notLinks are the errors of values that links cannot have.
	notLinks map[*Row]error
}

// NewLine returns a command line that says nothing.
func NewLine() *Line {
	return &Line{node: Default(), link: DefaultLink(Decoders[0]), given: map[*Row]bool{},
		notLinks: map[*Row]error{}}
}

// Clone returns a line that says the same, and on which more may be said.
func (l *Line) Clone() *Line {
	c := *l
	c.given, c.notLinks = maps.Clone(l.given), maps.Clone(l.notLinks)
	return &c
}

// Start gives settings the values that a command starts from in the place of the table's defaults:
// NAME=VALUE, which are words of this program.
func (l *Line) Start(values ...string) {
	for _, v := range values {
		name, value, _ := strings.Cut(v, "=")
		if err := l.Value(Find(name)).Set(value); err != nil {
			panic("BUG: " + v + ": " + err.Error())
		}
	}
}

// Value returns the value of a setting on the line, which a flag sets.
func (l *Line) Value(r *Row) Value { return &lineValue{l, r} }

// lineValue is a setting of a line, as a flag.
type lineValue struct {
	line *Line
	row  *Row
}

// values returns the value of each task; nil where the task has none.
func (v *lineValue) values() (node, link Value) {
	return v.row.value(&v.line.node), v.row.value(&v.line.link)
}

// first returns the value that help shows.
func (v *lineValue) first() Value {
	node, link := v.values()
	if node != nil {
		return node
	}
	return link
}

// String returns the value.
func (v *lineValue) String() string {
	if v.row == nil { // of the zero value, which flags are compared with
		return ""
	}
	return v.first().String()
}

// Type names the value in help.
func (v *lineValue) Type() string { return v.first().Type() }

// Set takes a value of the command line.
func (v *lineValue) Set(text string) error {
	node, link := v.values()
	if link != nil {
		err := link.Set(text)
		if err != nil && node == nil {
			return err
		}
		v.line.notLinks[v.row] = err
	}
	if node != nil {
		if err := node.Set(text); err != nil {
			return err
		}
	}
	v.line.given[v.row] = true
	return nil
}

// Given says whether a setting was given.
func (l *Line) Given(name string) bool { return l.given[Find(name)] }

// over puts the values that were given on settings of a task.
func (l *Line) over(to, from Settings) {
	for r := range l.given {
		values := r.fields(from)
		for i, f := range r.fields(to) {
			f.Set(values[i])
		}
	}
}

// Node returns settings of a new training of nodes: base, with what was given on top. Of a run to
// go on with they have what can be told before it is read.
func (l *Line) Node(base Node) (Node, error) {
	c, err := l.OnNode(base)
	switch {
	case err != nil:
		return c, err
	case c.Resume != "": // the run says what these go with
		c.Sampler, c.LayerSize, c.PartitionSettings = SamplerNeighbor, nil, PartitionSettings{}
	case c.Sampler == SamplerLayer:
		if !l.Given("fanout") {
			c.Fanout, c.FanoutBy = nil, nil
		}
		return c, nil
	case !l.Given("layer-size"):
		c.LayerSize = nil
	}
	if len(c.Fanout) == 0 { // base is of layers
		c.Fanout = Default().Fanout
	}
	return c, nil
}

// OnNode returns settings of a run of nodes with what was given on top.
func (l *Line) OnNode(base Node) (Node, error) {
	for _, r := range Rows {
		if l.given[r] && r.For&OfNodes == 0 {
			return base, fmt.Errorf("train: --%s is of --task link, and this trains for nodes",
				r.Name)
		}
	}
	l.over(&base, &l.node)
	if l.Given("device") && base.Parts() > 1 && base.Backend == BackendCPU {
		return base, fmt.Errorf("train: --device %s: several devices are of --backend cuda: add it",
			FormatDevices(base.Devices()))
	}
	base.ChangePrecision = l.Given("precision")
	if base.DeviceMemory > 0 {
		base.Backend = BackendCUDA
	}
	return base, nil
}

// OnLink returns settings of links with what was given on top.
func (l *Line) OnLink(base Link) (Link, error) {
	for _, r := range Rows {
		switch {
		case !l.given[r]:
		case r.For&OfLinks == 0:
			return base, fmt.Errorf("train: --%s is not for --task link: leave it out", r.Name)
		case l.notLinks[r] != nil:
			return base, fmt.Errorf("train: --task link: --%s: %w", r.Name, l.notLinks[r])
		}
	}
	l.over(&base, &l.link)
	return base, nil
}

// IO returns how files are read.
func (l *Line) IO() string { return l.node.IO }

// Run returns the name of the run, "" if none was given.
func (l *Line) Run() string { return l.node.Run }

// Resume returns the name of the run to go on with, "" if none was given.
func (l *Line) Resume() string { return l.node.Resume }

// FromRun returns the name of the run to begin with, "" if none was given.
func (l *Line) FromRun() string { return l.node.FromRun }

// Recipe returns the settings that links start from: those of the decoder that was given.
func (l *Line) Recipe() (Link, error) {
	if !slices.Contains(Decoders, l.link.Decoder) {
		return l.link, fmt.Errorf("train: --decoder %q: want %s", l.link.Decoder,
			message.OneOf(Decoders))
	}
	return DefaultLink(l.link.Decoder), nil
}

// Idle tells of settings that were given and change nothing with the others: names of flags, each
// with what it is read with.
func (l *Line) Idle(c *Link) (idle [][2]string) {
	for _, r := range Rows {
		for _, n := range r.Needs {
			if l.given[r] && n.Missing(c) {
				idle = append(idle, [2]string{r.Name, n.Without})
				break
			}
		}
	}
	return idle
}
