package main

import (
	"fmt"
	"io"

	"gdb/cmd/gdb/cli"
	"gdb/layout/ingest/source"
)

// printColumns lists the columns of the tables that are read, with what each is taken for, a line
// each. Many columns next to each other with one role are one line.
func printColumns(out io.Writer, columns []source.TableColumn) error {
	w := &cli.Lines{W: out}
	for len(columns) > 0 {
		n := 1
		for n < len(columns) && columns[n].File == columns[0].File {
			n++
		}
		w.Printf("columns     %s\n", columns[0].File)
		printTable(w, columns[:n])
		columns = columns[n:]
	}
	return w.Err
}

// sameRole is how many columns with one role are a line each.
const sameRole = 8

func printTable(w *cli.Lines, columns []source.TableColumn) {
	for len(columns) > 0 {
		n := 1
		for n < len(columns) && columns[n].Role == columns[0].Role {
			n++
		}
		role := columns[0].Role
		if role == "" {
			role = "not stored"
		}
		if n > sameRole {
			first, last := cli.Cut(columns[0].Name, 24), cli.Cut(columns[n-1].Name, 24)
			printColumn(w, first+" … "+last, fmt.Sprintf("%s, %s columns", role,
				cli.Count(uint64(n))))
		} else {
			for _, c := range columns[:n] {
				printColumn(w, cli.Cut(c.Name, 50), role)
			}
		}
		columns = columns[n:]
	}
}

func printColumn(w *cli.Lines, name, role string) {
	w.Printf("  %-20s %s\n", name, role)
}
