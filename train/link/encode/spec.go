package encode

import (
	"errors"
	"fmt"

	"gdb/kv"
	"gdb/sample"
	"gdb/train/model"
	"gdb/train/setting"
)

// SpecOf returns the model of the encoder that settings choose, for a graph. Each layer has the
// width of the vectors, and adds its input to its output.
func SpecOf(c *setting.Link, m *kv.Meta) (*model.Spec, error) {
	a, err := model.Find(c.Encoder)
	if err != nil {
		return nil, fmt.Errorf("train: encoder: %w", err)
	}
	fanout, err := sample.ParseFanout(c.Fanout)
	if err != nil {
		return nil, fmt.Errorf("train: fanout %q: %w", c.Fanout, err)
	}
	s := &model.Spec{Architecture: a, Options: setting.Options{Residual: true}}
	if c.Encoder == "rgcn" {
		s.Relations = len(m.EdgeTypes)
	}
	s.Dims = []int{0}
	if c.EncodesVectors() {
		s.NodeEmbedding, s.Dims[0] = c.Dim, c.Dim
	}
	if c.EncodesFeatures() {
		if len(m.Features) == 0 {
			return nil, errors.New("train: the store has no features: leave --encoder-input out")
		}
		s.Dims[0] += setting.FeatureDim(m)
	}
	for range fanout {
		s.Dims = append(s.Dims, c.Dim)
	}
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("train: encoder %s: %w", c.Encoder, err)
	}
	return s, nil
}
