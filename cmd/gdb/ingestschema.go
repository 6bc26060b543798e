package main

import (
	"fmt"

	"gdb/layout/ingest"
	"gdb/layout/ingest/input"
	"gdb/layout/ingest/schema"

	"github.com/spf13/pflag"
)

// applySchema puts the tables of a directory in the place of it: by the schema that a flag names,
// or that is in the directory. Its flags are set unless they were given.
func (a *app) applySchema(opt *ingest.Options, file string, flags *pflag.FlagSet) error {
	one := len(opt.Sources) == 1
	if file == "" && one && opt.Edges == "" && len(opt.Relations) == 0 {
		in := a.FS.PathJoin(opt.Sources[0], schema.FileName)
		if _, err := a.FS.Stat(in); err == nil {
			file = in
		}
	}
	switch {
	case file == "":
		return nil
	case !one:
		return input.Usage("--schema %s: name one directory, which has its tables", file)
	case opt.Nodes != "" || opt.Edges != "":
		return input.Usage("--schema says what the tables are: leave out --nodes and --edges")
	}
	s, err := schema.Read(a.FS, file)
	if err != nil {
		return err
	}
	for name, value := range s.Flags {
		if f := flags.Lookup(name); f != nil && !f.Changed {
			if err := flags.Set(name, value); err != nil {
				return input.Wrong(file, "", "its flag %s: %v", name, err)
			}
		}
	}
	dir := opt.Sources[0]
	opt.Sources = nil
	return s.Apply(a.FS, dir, &opt.Options)
}

// schemaOut writes the schema that the tables of a directory seem to have.
func (a *app) schemaOut(opt *ingest.Options, args []string, file string) error {
	if len(args) != 1 {
		return fmt.Errorf("ingest: %w", input.Usage("--schema-out %s: name one directory, which "+
			"has the tables", file))
	}
	s, err := schema.Guess(a.FS, args[0], &opt.Options)
	if err != nil {
		return fmt.Errorf("ingest: %w", err)
	}
	if err := s.Write(a.FS, file); err != nil {
		return err
	}
	if a.Quiet {
		return nil
	}
	_, err = fmt.Fprintf(a.Out, "%s: %d tables; go on with: %s\n", file, len(s.Tables),
		a.commandLine([]string{"ingest", args[0], "--schema", file, "--out",
			likelyStore(args, opt)}))
	return err
}
