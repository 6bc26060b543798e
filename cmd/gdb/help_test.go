package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gdb/compute/decoder"
	"gdb/layout/ingest/source"
	"gdb/sample/rowcache"
	"gdb/train/plan"
	"gdb/train/setting"
)

// items returns the words that a page of help explains, in its order, each with its text.
func items(t *testing.T, page string) (names []string, texts map[string]string) {
	t.Helper()
	texts = map[string]string{}
	name := ""
	for line := range strings.Lines(page) {
		item := regexp.MustCompile(`^  (\w+) +(\S.*)`).FindStringSubmatch(line)
		switch {
		case item != nil:
			name = item[1]
			names, texts[name] = append(names, name), item[2]
		case strings.HasPrefix(line, "   ") && name != "":
			texts[name] += " " + strings.TrimSpace(line)
		default:
			name = ""
		}
	}
	return names, texts
}

func sameWords(t *testing.T, what string, got, want []string) {
	t.Helper()
	got, want = slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		t.Errorf("%s explains %v, there are %v", what, got, want)
	}
}

// TestStrategiesHelp: the page has the strategies and caches that there are, the bytes that they
// take, and what auto chooses from.
func TestStrategiesHelp(t *testing.T) {
	_, out, _ := said("help", "strategies")
	first, caches, ok := strings.Cut(out, "--cache")
	if !ok {
		t.Fatalf("no caches in %s", out)
	}
	names, _ := items(t, first)
	sameWords(t, "help strategies", names, setting.Strategies)
	names, texts := items(t, caches)
	sameWords(t, "help strategies", names, setting.Choices("cache"))
	sieve := rowcache.NewSIEVE()
	if text := texts[sieve.Name()]; !strings.Contains(text, fmt.Sprintf("%d bytes a row",
		sieve.SlotBytes())) {
		t.Errorf("sieve takes %d bytes a row: %s", sieve.SlotBytes(), text)
	}
	for _, name := range setting.Choices("cache") {
		said := regexp.MustCompile(`\b` + name + `\b`).MatchString(texts["auto"])
		if name != "auto" && said != slices.Contains(plan.AutoCaches, name) {
			t.Errorf("auto chooses from %v: %s", plan.AutoCaches, texts["auto"])
		}
	}
}

// TestFormatsHelp: the page has the formats that there are.
func TestFormatsHelp(t *testing.T) {
	_, out, _ := said("help", "formats")
	names, _ := items(t, out)
	sameWords(t, "help formats", slices.DeleteFunc(names, func(name string) bool {
		return name == "numpy"
	}), source.Formats())
}

// TestLinkHelp: the page has the decoders, losses and negatives that there are.
func TestLinkHelp(t *testing.T) {
	_, out, _ := said("help", "link")
	decoders, losses, _ := strings.Cut(out, "Losses,")
	losses, negatives, _ := strings.Cut(losses, "Negatives,")
	for _, part := range []struct {
		text  string
		names []string
	}{{decoders, setting.Decoders}, {losses, decoder.LossNames()}, {negatives,
		setting.NegativeSamplings}} {
		names, _ := items(t, part.text)
		sameWords(t, "help link", names, part.names)
	}
}

// TestExitCodesHelp: the page has the codes that there are.
func TestExitCodesHelp(t *testing.T) {
	_, out, _ := said("help", "exit-codes")
	for _, code := range []int{exitDone, exitFailed, exitUsage, exitDamaged, exitInterrupted} {
		if !regexp.MustCompile(fmt.Sprintf(`(?m)^ +%d  \S`, code)).MatchString(out) {
			t.Errorf("no code %d in %s", code, out)
		}
	}
}
