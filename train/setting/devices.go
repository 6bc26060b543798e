package setting

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Devices returns the numbers of all devices that compute, the first of which evaluates.
func (c *Computing) Devices() []int { return append([]int{c.Device}, c.MoreDevices...) }

// Parts returns how many parts a batch has: one for each device.
func (c *Computing) Parts() int { return 1 + len(c.MoreDevices) }

// PartSeeds returns the most seeds that a part of a batch has.
func (c *Node) PartSeeds() int { return (c.Batch + c.Parts() - 1) / c.Parts() }

// Together returns how many parts of batches are sliced from one sample.
func (c *Node) Together() int {
	if c.Parts() == 1 {
		return c.MacroBatch
	}
	return max(1, c.MacroBatch) * c.Parts()
}

// validateDevices refuses what several devices do not compute together. Backend may still be auto.
func (c *Node) validateDevices() error {
	if c.Parts() == 1 {
		return nil
	}
	for _, refused := range []struct {
		is   bool
		what string
	}{
		{c.Batch < c.Parts(), fmt.Sprintf("have each a part of a batch of %d seeds: raise --batch",
			c.Batch)},
		{c.Norm == "batch", "would each scale by the statistics of their own part, with --norm " +
			"batch: take --norm layer or none"},
		{c.NodeEmbedding > 0, "do not learn vectors of nodes (--node-embedding), whose gradients " +
			"come back from one: give one device"},
		{c.Buffered(), "do not train on partitions in memory (" + c.Means() + "): give one device"},
		{c.Sampler == SamplerLayer, "slice their parts from lists that are drawn node by node: " +
			"take --sampler neighbor"},
	} {
		if refused.is {
			return fmt.Errorf("train: devices %s %s", FormatDevices(c.Devices()), refused.what)
		}
	}
	return nil
}

// FormatDevices writes numbers of devices as --device takes them.
func FormatDevices(all []int) string {
	var texts []string
	for _, n := range all {
		texts = append(texts, strconv.Itoa(n))
	}
	return strings.Join(texts, ",")
}

// devicesOf is the value of --device.
func devicesOf(fields []any) Value { return devicesValue{fields[0].(*int), fields[1].(*[]int)} }

// devicesValue is the number of a device, or of several with commas between, each once.
type devicesValue struct {
	first *int
	more  *[]int
}

// String is the flag's value.
func (d devicesValue) String() string { return FormatDevices(append([]int{*d.first}, *d.more...)) }

// Set takes one number or several.
func (d devicesValue) Set(s string) error {
	var all []int
	for part := range strings.SplitSeq(s, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < 0 {
			return fmt.Errorf("%q is no device: they are numbered from 0, such as 0 or 0,1", part)
		}
		if slices.Contains(all, n) {
			return fmt.Errorf("device %d is named twice", n)
		}
		all = append(all, n)
	}
	*d.first, *d.more = all[0], all[1:]
	return nil
}

// Type is shown in help.
func (d devicesValue) Type() string { return "devices" }

// errOneDevice refuses several devices where one computes.
var errOneDevice = errors.New("one device does this: give --device one number")
