package cli

import (
	"testing"
	"time"
)

// TestRate: no rate is shown in the first second, and a burst or a pause moves it a little only.
func TestRate(t *testing.T) {
	var r rate
	begun := time.Unix(1000, 0)
	at := func(ms, done int64) string {
		now := begun.Add(time.Duration(ms) * time.Millisecond)
		return r.describe("read", now, done, 10e6, "edges")
	}
	if s := at(0, 3_000_000); s != "read" {
		t.Errorf("%q at once", s)
	}
	if s := at(500, 3_050_000); s != "read" {
		t.Errorf("%q after half a second", s)
	}
	done := int64(3_050_000)
	for ms := int64(600); ms <= 10_000; ms += 100 {
		done += 10_000
		at(ms, done)
	}
	if s := at(10_200, done+20_000); s != "read  100 k edges/s, 1m0s left" {
		t.Errorf("%q at a steady 100,000 a second", s)
	}
	if s := at(10_400, done+20_000); s[:8] != "read  95" {
		t.Errorf("%q after a pause", s)
	}
	var idle rate
	if s := idle.describe("number", begun, 0, 0, "ids"); s != "number" {
		t.Errorf("%q of nothing", s)
	}
	if s := idle.describe("number", begun.Add(time.Minute), 0, 0, "ids"); s != "number" {
		t.Errorf("%q of nothing after a minute", s)
	}
	var bytes rate
	bytes.describe("read", begun, 0, 0, "bytes")
	if s := bytes.describe("read", begun.Add(2*time.Second), 8<<20, 0, "bytes"); s !=
		"read  4.0 MiB/s" {
		t.Errorf("%q", s)
	}
}
