package kv

import "testing"

// TestRescaled: a store says whether ingest changed its features.
func TestRescaled(t *testing.T) {
	typed := func(mean ...float32) Meta {
		return Meta{NodeTypes: []NodeTypeMeta{{Name: "tag"},
			{Name: "user", Encoding: &FeatureEncoding{Mean: mean}}}}
	}
	for want, m := range map[string]Meta{
		"--normalize row":    {Source: SourceMeta{Args: []string{"--dedup", "--normalize=row"}}},
		"those of user":      typed(1, 2),
		"":                   typed(),
		"--normalize zscore": {Source: SourceMeta{Args: []string{"--normalize=zscore"}}},
	} {
		if got := m.Rescaled(); got != want {
			t.Errorf("%+v: %q, want %q", m, got, want)
		}
	}
	plain := Meta{Source: SourceMeta{Args: []string{"--normalize=none"}}}
	if got := plain.Rescaled(); got != "" {
		t.Errorf("not scaled: %q", got)
	}
}
