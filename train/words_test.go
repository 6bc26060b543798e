package train

import (
	"slices"
	"testing"

	"gdb/compute/backend"
	"gdb/train/link/decoder"
	"gdb/train/model"
	"gdb/train/setting"
	"gdb/train/task"
)

// TestWordsOfSettings: settings know the words of the packages that read them, in their order.
func TestWordsOfSettings(t *testing.T) {
	auto := []string{task.Auto}
	for _, c := range []struct {
		name      string
		has, want []string
	}{
		{"model", setting.Models, model.Names()},
		{"loss", setting.NodeLosses, append(auto, task.Losses()...)},
		{"metric", setting.NodeMetrics, append(auto, task.Metrics()...)},
		{"backend", setting.Choices("backend"), backend.Names()},
		{"decoder", setting.Decoders, decoder.Names()},
		{"loss of links", setting.LinkLosses, decoder.LossNames()},
	} {
		if !slices.Equal(c.has, c.want) {
			t.Errorf("%s: settings have %v, and the package that reads them %v", c.name, c.has,
				c.want)
		}
	}
}
