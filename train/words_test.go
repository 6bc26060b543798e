package train

import (
	"slices"
	"testing"

	"gdb/compute/backend"
	"gdb/compute/decoder"
	"gdb/train/model"
	"gdb/train/setting"
	"gdb/train/task"
)

// TestWordsOfSettings: settings know the words of the packages that read them, in their order.
func TestWordsOfSettings(t *testing.T) {
	for _, c := range []struct {
		name      string
		has, want []string
	}{
		{"model", setting.Models, model.Names()},
		{"backend", setting.Choices("backend"), []string{backend.Auto, backend.CPU,
			backend.CUDA}},
		{"loss of links", setting.LinkLosses, decoder.LossNames()},
	} {
		if !slices.Equal(c.has, c.want) {
			t.Errorf("%s: settings have %v, and the package that reads them %v", c.name, c.has,
				c.want)
		}
	}
}

// TestWordsOfLabels: a loss and a metric that settings know fit a kind of labels, and no others.
func TestWordsOfLabels(t *testing.T) {
	fits := func(loss, metric string) (some bool) {
		for _, kind := range []string{task.KindClass, task.KindMulti, task.KindTarget} {
			l, m := loss, metric // Fit replaces auto
			some = some || task.Fit(kind, &l, &m) == nil
		}
		return some
	}
	for _, loss := range append(slices.Clone(setting.NodeLosses), "hinge") {
		if fits(loss, task.Auto) != (loss != "hinge") {
			t.Errorf("loss %s: fits %t", loss, fits(loss, task.Auto))
		}
	}
	for _, metric := range append(slices.Clone(setting.NodeMetrics), "logloss") {
		if fits(task.Auto, metric) != (metric != "logloss") {
			t.Errorf("metric %s: fits %t", metric, fits(task.Auto, metric))
		}
	}
}

// TestWordsOfDecoders: settings know decoders, and no others are made.
func TestWordsOfDecoders(t *testing.T) {
	for _, name := range append(slices.Clone(setting.Decoders), "hole") {
		_, err := decoder.New(name, 4, decoder.Options{Norm: 1})
		if (err == nil) != (name != "hole") {
			t.Errorf("decoder %s: %v", name, err)
		}
	}
}
