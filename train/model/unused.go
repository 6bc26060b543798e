package model

import (
	"gdb/compute/program"
	"gdb/train/setting"
)

// Unused names the options that are set and change nothing in the model: its program is the same
// for any value.
func (s *Spec) Unused() (names []string) {
	none, some := 0.0, 0.5
	for _, o := range []struct {
		name   string
		set    bool
		values []func(o *setting.Options)
	}{
		{"heads", s.Heads != 0, []func(o *setting.Options){
			func(o *setting.Options) { o.Heads = 1 }, func(o *setting.Options) { o.Heads = 2 }}},
		{"aggregate", isSet(s.Aggregate), []func(o *setting.Options){
			func(o *setting.Options) { o.Aggregate = "mean" },
			func(o *setting.Options) { o.Aggregate = "sum" }}},
		{"residual", s.Residual, []func(o *setting.Options){
			func(o *setting.Options) { o.Residual = false },
			func(o *setting.Options) { o.Residual = true }}},
		{"norm", isSet(s.Norm), []func(o *setting.Options){
			func(o *setting.Options) { o.Norm = "none" },
			func(o *setting.Options) { o.Norm = "layer" }}},
		{"activation", isSet(s.Activation), []func(o *setting.Options){
			func(o *setting.Options) { o.Activation = "relu" },
			func(o *setting.Options) { o.Activation = "elu" }}},
		{"bases", s.Bases != 0, []func(o *setting.Options){
			func(o *setting.Options) { o.Bases = 1 }, func(o *setting.Options) { o.Bases = 2 }}},
		{"input-dropout", s.InputDropout != nil, []func(o *setting.Options){
			func(o *setting.Options) { o.InputDropout = &none },
			func(o *setting.Options) { o.InputDropout = &some }}},
	} {
		if o.set && s.textWith(o.values[0]) == s.textWith(o.values[1]) {
			names = append(names, o.name)
		}
	}
	return names
}

// isSet reports whether an option differs from its default.
func isSet(value string) bool { return value != "" && value != "auto" && value != "none" }

// textWith prints the program of a narrow model with as many layers and one option set, followed by
// the program of the precomputed sums.
func (s *Spec) textWith(set func(o *setting.Options)) string {
	const width, classes = 8, 3
	hidden := make([]int, s.Layers()-1)
	for i := range hidden {
		hidden[i] = width
	}
	narrow := &Spec{Architecture: s.Architecture,
		Options: setting.Options{Precompute: s.Precompute}}
	set(&narrow.Options)
	narrow.Precomputed = PrecomputedOf(narrow.Architecture, &narrow.Options, s.Layers())
	narrow.Dims = Widths(s.Architecture, width*narrow.Precomputed.Parts(), classes, hidden)
	text := narrow.text()
	if s.Precompute {
		text += narrow.Sums().text()
	}
	return text
}

func (s *Spec) text() string {
	var params program.Params
	return program.Make(&params, s.build, s.options(true, false)).String()
}
