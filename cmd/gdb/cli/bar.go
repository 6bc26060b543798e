package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"gdb/internal/mem"

	"github.com/dustin/go-humanize"
	"github.com/schollz/progressbar/v3"
)

// lineEvery is how often progress is written where there is no terminal.
const lineEvery = 10 * time.Second

// Bar shows how far long work is: a bar with rate and ETA on a terminal, a line every ten
// seconds elsewhere, nothing with --quiet. It is used from one goroutine.
type Bar struct {
	w       io.Writer
	tty     bool
	json    bool
	quiet   bool
	phase   string
	started time.Time
	last    time.Time
	bar     *progressbar.ProgressBar
	rate    rate
}

// rateOver is the time over which a rate is smoothed, and rateAfter how long a phase must have run
// before a rate is shown: that of the first moments is of buffers, not of the work.
const rateOver, rateAfter = 4 * time.Second, time.Second

// rate is what is done in a second, as of the last few.
type rate struct {
	begun, at time.Time
	done      int64
	perS      float64
}

// add takes how much is done at a time, and returns the rate; 0 while there is none to tell.
func (r *rate) add(now time.Time, done int64) float64 {
	if r.begun.IsZero() {
		r.begun, r.at, r.done = now, now, done
	}
	since := now.Sub(r.at).Seconds()
	if since > 0.1 {
		recent := float64(done-r.done) / since
		keep := math.Exp(-since / rateOver.Seconds())
		if r.perS == 0 {
			keep = 0
		}
		r.perS = keep*r.perS + (1-keep)*recent
		r.at, r.done = now, done
	}
	if now.Sub(r.begun) < rateAfter {
		return 0
	}
	return r.perS
}

// describe returns what stands before the bar: the phase, its rate, and the time left.
func (r *rate) describe(phase string, now time.Time, done, total int64, unit string) string {
	perS := r.add(now, done)
	if perS < 1 {
		return phase
	}
	s := phase + "  " + humanize.SIWithDigits(perS, 1, " "+unit+"/s")
	if unit == "bytes" {
		s = phase + "  " + mem.FormatSize(int64(perS)) + "/s"
	}
	s = strings.ReplaceAll(s, "  "+unit, " "+unit)
	if total > done {
		left := time.Duration(float64(total-done) / perS * float64(time.Second))
		s += fmt.Sprintf(", %s left", left.Round(time.Second))
	}
	return s
}

// newBar returns one that writes to w: a bar if that is a terminal, objects if asJSON is set.
func newBar(w io.Writer, tty, asJSON, quiet bool) *Bar {
	return &Bar{w: w, tty: tty, json: asJSON, quiet: quiet}
}

// Update says that done of total units of phase are done; unit is "bytes" or what is counted.
func (p *Bar) Update(phase string, done, total int64, unit string) {
	if p.quiet {
		return
	}
	now := time.Now()
	if phase != p.phase {
		p.Finish()
		p.phase, p.started, p.last, p.rate = phase, now, now, rate{}
		if p.tty {
			p.bar = progressbar.NewOptions64(unknownIfZero(total), progressbar.OptionSetWriter(p.w),
				progressbar.OptionSetDescription(phase),
				progressbar.OptionThrottle(100*time.Millisecond),
				progressbar.OptionClearOnFinish(), progressbar.OptionSetPredictTime(false),
				progressbar.OptionSetElapsedTime(false), progressbar.OptionFullWidth())
		}
	}
	if p.bar != nil {
		// Only the terminal can fail here, and the work does not depend on it.
		if total > 0 {
			done = min(done, total)
		}
		p.bar.Describe(p.rate.describe(phase, now, done, total, unit))
		_ = p.bar.Set64(done)
		return
	}
	if now.Sub(p.last) >= lineEvery {
		p.last = now
		p.line(done, total, unit, now)
	}
}

func (p *Bar) line(done, total int64, unit string, now time.Time) {
	elapsed := now.Sub(p.started).Seconds()
	rate := float64(done) / max(elapsed, 1e-9)
	eta := time.Duration(0)
	if rate > 0 && total > 0 {
		eta = time.Duration(float64(total-done)/rate) * time.Second
	}
	if p.json {
		// Encoding a map of numbers and strings cannot fail.
		b, _ := json.Marshal(map[string]any{"event": "progress", "phase": p.phase, "done": done,
			"total": total, "unit": unit, "per_s": rate, "eta_s": eta.Seconds()})
		fmt.Fprintf(p.w, "%s\n", b)
		return
	}
	amount := func(n int64) string {
		if unit == "bytes" {
			return mem.FormatSize(n)
		}
		return humanize.Comma(n) + " " + unit
	}
	if total <= 0 {
		fmt.Fprintf(p.w, "%s: %s, %s/s\n", p.phase, amount(done), amount(int64(rate)))
		return
	}
	fmt.Fprintf(p.w, "%s: %s of %s, %s/s, %s left\n", p.phase, amount(done), amount(total),
		amount(int64(rate)), eta.Round(time.Second))
}

// unknownIfZero gives the bar -1, its sign for a total that is not known.
func unknownIfZero(total int64) int64 {
	if total <= 0 {
		return -1
	}
	return total
}

// Finish ends the bar of the current phase.
func (p *Bar) Finish() {
	if p.bar != nil {
		_ = p.bar.Finish()
		p.bar = nil
	}
}
