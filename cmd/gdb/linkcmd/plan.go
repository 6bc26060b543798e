package linkcmd

import (
	"fmt"
	"slices"
	"strings"

	"gdb/cmd/gdb/cli"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/train/link"
	"gdb/train/runs"
	"gdb/train/setting"
)

// Plan is gdb plan of --task link.
func Plan(e *cli.App, st *layout.Store, c setting.Link, asJSON bool) error {
	checked := c
	if slices.Contains(setting.BufferedOrders, c.Order) {
		checked.Order = setting.OrderTwoLevel
	}
	if err := link.Validate(&checked); err != nil {
		return cli.Usage(err)
	}
	p, err := link.Plan(c, st.Meta())
	if err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	if asJSON {
		return e.PrintJSON(p)
	}
	return printPlan(e, p)
}

// setsShown is how many sets the text has, and partsShown how many partitions of each.
const setsShown, partsShown = 10, 12

func printPlan(e *cli.App, p *link.Planned) error {
	w := &cli.Lines{W: e.Out}
	const longest = 17 // places of buckets
	w.Pool("memory", p.Pool(), longest)
	if len(p.Device) > 0 {
		need := mem.Pool{Parts: p.Device}
		for _, part := range p.Device {
			need.Bytes += part.Bytes
		}
		w.Pool("device", &need, longest)
	}
	w.Printf("%-11s %s\n", "order", p.Order)
	w.Reasons(p.Why)
	if p.Disk != nil {
		printPlanDisk(w, p.Disk)
	}
	return w.Err
}

func printPlanDisk(w *cli.Lines, d *link.PlannedDisk) {
	w.Field("disk", "vectors and state take up to %s: as they are, as they were in the last "+
		"checkpoint, and those of the best evaluation", mem.FormatSize(d.Bytes))
	bias := ""
	if d.Bias != nil {
		bias = fmt.Sprintf("; Edge Permutation Bias %s", runs.Figure(*d.Bias, 3))
	}
	w.Field("epoch", "%d sets of %d of %d partitions, %d swapped in; read %s, written %s, edges "+
		"%s%s", len(d.Sets), d.InMemory, d.Partitions, d.Swaps, mem.FormatSize(d.Read),
		mem.FormatSize(d.Written), mem.FormatSize(d.Edges), bias)
	for i, set := range d.Sets {
		if i == setsShown {
			w.Field("", "and %d sets more, all of them with --json", len(d.Sets)-i)
			break
		}
		var names []string
		for _, part := range set[:min(partsShown, len(set))] {
			names = append(names, fmt.Sprint(part))
		}
		if len(set) > partsShown {
			names = append(names, "…")
		}
		w.Field(fmt.Sprintf("set %d", i+1), "%s; %d buckets", strings.Join(names, " "),
			d.Buckets[i])
	}
}
