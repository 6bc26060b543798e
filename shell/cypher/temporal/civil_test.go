package temporal

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestCalendar compares days with package time, over all years that there are.
func TestCalendar(t *testing.T) {
	const seed = 1
	r := rand.New(rand.NewPCG(seed, 0))
	most := epochDay(maxYear, 12, 31)
	for i := range int64(20_000) {
		day := i - 10_000
		if i%2 == 0 {
			day = r.Int64N(2*most) - most
		}
		want := time.Unix(day*daySeconds, 0).UTC()
		y, m, d := civil(day)
		weekYear, w := week(day)
		wantYear, wantWeek := want.ISOWeek()
		got := Instant{kind: KindDate, day: day}
		ordinal, _ := got.Component("ordinalDay")
		if y != int64(want.Year()) || m != int64(want.Month()) || d != int64(want.Day()) ||
			weekYear != int64(wantYear) || w != int64(wantWeek) ||
			ordinal != int64(want.YearDay()) ||
			weekDay(day)%7 != int64(want.Weekday()) || epochDay(y, m, d) != day {
			t.Fatalf("day %d (seed %d): %s, week %d of %d, day %v, want %s, week %d of %d", day,
				seed, got, w, weekYear, ordinal, want, wantWeek, wantYear)
		}
		months := r.Int64N(2_000) - 1_000
		moved := time.Date(int(y), time.Month(m+months), 1, 0, 0, 0, 0, time.UTC)
		if last := moved.AddDate(0, 1, -1); d > int64(last.Day()) {
			moved = last
		} else {
			moved = moved.AddDate(0, 0, int(d)-1)
		}
		if got := plusMonths(day, months); got*daySeconds != moved.Unix() {
			t.Fatalf("day %d and %d months (seed %d): %d, want %s", day, months, seed, got, moved)
		}
	}
}

// TestClocks compares what clocks show with package time, around changes of the offset. It differs
// only where clocks skip a time or show it twice.
func TestClocks(t *testing.T) {
	for _, name := range []string{"Europe/Stockholm", "America/New_York", "Australia/Lord_Howe",
		"Asia/Kathmandu"} {
		z, err := parseZone(name)
		if err != nil {
			t.Fatal(err)
		}
		from := time.Date(2017, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
		for s := from; s < from+366*daySeconds; s += 900 {
			local, err := fromEpoch(s, 5)
			if err != nil {
				t.Fatal(err)
			}
			got := local.local(z, noOffset)
			u := time.Unix(s, 0).UTC()
			want := time.Date(u.Year(), u.Month(), u.Day(), u.Hour(), u.Minute(), 0, 5, z.place)
			seconds, nanos := got.utc()
			shows := got.day == local.day && got.nano == local.nano
			if skipped := want.Hour() != u.Hour() || want.Minute() != u.Minute(); shows == skipped {
				t.Errorf("%s in %s is %s: skipped %v", u, name, got, skipped)
			}
			halfHour := name == "Australia/Lord_Howe"
			twice := halfHour || want.Add(-time.Hour).Hour() == u.Hour() ||
				want.Add(time.Hour).Hour() == u.Hour()
			if shows && !twice && (seconds != want.Unix() || nanos != 5) {
				t.Errorf("%s in %s is %s, want %s", u, name, got, want)
			}
			if back := got.in(z); back != got {
				t.Errorf("%s is the same instant as %s", back, got)
			}
		}
	}
}
