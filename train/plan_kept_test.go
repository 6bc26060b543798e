package train

import (
	"context"
	"testing"

	"gdb/train/plan"
)

// TestPlanIsKept: the same settings are planned once, by plan or by a run, and read nothing of the
// graph the next time; other settings, or another device, are planned anew.
func TestPlanIsKept(t *testing.T) {
	s, c := mustBuildBare(t, planted(false)), testConfig()
	c.Cache, c.FeatureCache, c.Run = "static", 8<<10, "r"
	plans := func(c Config) (*plan.Plan, uint64) {
		t.Helper()
		dev := mustDevice(t)
		p, err := MakePlan(context.Background(), s, dev, c)
		if err != nil {
			t.Fatal(err)
		}
		return p, dev.Stats().Bytes
	}
	first, read := plans(c)
	again, least := plans(c)
	if first.String() != again.String() || *first.Forecast != *againDevice(again, first) {
		t.Errorf("planned\n%s, then\n%s", first, again)
	}
	if least >= read/2 {
		t.Errorf("planning again read %d bytes, first %d", least, read)
	}
	other := c
	other.Batch--
	if _, now := plans(other); now <= least {
		t.Errorf("other settings read %d bytes, the same %d", now, least)
	}
	noteProfile(t, s, c, diskProfile)
	was := first.Forecast.Device.ReadSeconds
	if p, now := plans(c); now <= least || p.Forecast.Device.ReadSeconds == was {
		t.Errorf("another device read %d bytes, the same %d", now, least)
	}
	mustRun(t, s, c)
}

// againDevice is the forecast of a plan with the device of another, which has the same values in
// another place.
func againDevice(p, of *plan.Plan) *plan.Forecast {
	f := *p.Forecast
	f.Device = of.Forecast.Device
	return &f
}
