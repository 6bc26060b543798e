// Package benches has the commands of gdb bench that need a machine or a store, and no training.
package benches

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gdb/bench"
	"gdb/cmd/gdb/cli"
	"gdb/internal/mem"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"
)

// commands make the subcommands of bench.
type commands struct{ *cli.App }

// Command is bench, with more subcommands than those of this package.
func Command(app *cli.App, more ...*cobra.Command) *cobra.Command {
	a := commands{app}
	cmd := &cobra.Command{
		Use: "bench NAME", Short: "Measure this machine and gdb on it; generate graphs",
		Args: cli.NoCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.gen(), a.io(), a.ingest(), a.sample(), a.cache(), a.partition(),
		a.gather(), a.gemm(), a.nearest(), a.device())
	cmd.AddCommand(more...)
	return cmd
}

// Print prints a report as a table, or as one JSON object.
func Print(a *cli.App, r *bench.Report, asJSON bool) error {
	if asJSON {
		b, err := json.Marshal(r)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(a.Out, "%s\n", b)
		return err
	}
	if len(r.Rows) == 0 {
		return errors.New("bench: nothing was measured")
	}
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	header := table.Row{}
	for _, c := range r.Columns {
		header = append(header, c)
	}
	t.AppendHeader(header)
	for _, row := range r.Rows {
		cells := table.Row{}
		for _, c := range r.Columns {
			cells = append(cells, cell(c, row[c]))
		}
		t.AppendRow(cells)
	}
	m := r.Machine
	w := &cli.Lines{W: a.Out}
	w.Printf("%s\n", t.Render())
	for _, why := range reasons(r) {
		w.Printf("%s\n", why)
	}
	for _, note := range r.Notes {
		w.Printf("%s\n", note)
	}
	w.Printf("%s, %d cores, %s\n", m.CPU, m.Cores, m.Go)
	return w.Err
}

// reasons are why figures are missing, each with the rows that it is about: of a sweep with the
// value, unless all rows of that name have it.
func reasons(r *bench.Report) (all []string) {
	var order []string
	of, rows := map[string][]string{}, map[string]int{}
	for _, row := range r.Rows {
		rows[rowName(r, row)]++
		why, ok := row["why"].(string)
		if ok && why != "" && !slices.Contains(order, why) {
			order = append(order, why)
		}
	}
	for _, why := range order {
		counts := map[string]int{}
		for _, row := range r.Rows {
			if row["why"] == why {
				counts[rowName(r, row)]++
			}
		}
		for _, row := range r.Rows {
			name := rowName(r, row)
			if row["why"] == why && counts[name] < rows[name] && row["value"] != nil {
				name += fmt.Sprintf(" (%v)", row["value"])
			}
			if row["why"] == why && !slices.Contains(of[why], name) {
				of[why] = append(of[why], name)
			}
		}
		all = append(all, strings.Join(of[why], ", ")+": "+why)
	}
	return all
}

// rowName returns what the first column says, or of what the benchmark is if there is nothing in
// it.
func rowName(r *bench.Report, row bench.Row) string {
	if row[r.Columns[0]] == nil {
		return r.Bench
	}
	return cell(r.Columns[0], row[r.Columns[0]])
}

// cell returns a value as a table shows it: bytes and shares with their units. JSON has all digits.
func cell(column string, v any) string {
	var f float64
	switch n := v.(type) {
	case nil:
		return "-"
	case float64:
		f = n
	case int:
		f = float64(n)
	case int64:
		f = float64(n)
	case uint64:
		f = float64(n)
	default:
		return fmt.Sprint(v)
	}
	switch {
	case strings.Contains(column, "bytes_per_s"):
		return mem.FormatSize(int64(f)) + "/s"
	case strings.Contains(column, "bytes"):
		return mem.FormatSize(int64(f))
	case strings.HasSuffix(column, "hit_ratio"):
		return strconv.FormatFloat(100*f, 'f', 1, 64) + " %"
	case math.Abs(f) >= 100 || f == math.Trunc(f):
		return strconv.FormatFloat(f, 'f', 0, 64)
	}
	return strconv.FormatFloat(f, 'g', 4, 64)
}
