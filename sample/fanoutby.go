package sample

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"gdb/internal/message"
	"gdb/kv"
)

// RelationFanout is how many neighbors a hop draws of each relation, by name; "" is what it draws
// of those that are not named, and 0 draws none.
type RelationFanout map[string]int

// ParseFanoutBy parses fanouts by relation, such as "buys=10,rev_buys=5;5": hops are parted by ;
// and relations by a comma, REL=N is for one, and a number without a name for the rest, which is 0
// where it is missing. It also returns the largest of each hop. Of fanouts without names
// or ; it returns what ParseFanout does, and no names.
func ParseFanoutBy(text string) (fanout []int, by []RelationFanout, err error) {
	if !strings.ContainsAny(text, "=;") {
		fanout, err = ParseFanout(text)
		return fanout, nil, err
	}
	for hop := range strings.SplitSeq(text, ";") {
		of := RelationFanout{}
		for part := range strings.SplitSeq(hop, ",") {
			name, number, named := strings.Cut(strings.TrimSpace(part), "=")
			if !named {
				name, number = "", name
			}
			n, err := parseDrawn(number)
			if _, twice := of[name]; twice || err != nil || named && name == "" {
				return nil, nil, fmt.Errorf("fanout %q: %q: give each relation of a hop once as "+
					"REL=N, one number for the rest, and ; between hops, such as "+
					"buys=10,rev_buys=5;5", text, strings.TrimSpace(part))
			}
			of[name] = n
		}
		by, fanout = append(by, of), append(fanout, of.most())
	}
	if slices.Contains(fanout, 0) {
		return nil, nil, fmt.Errorf("fanout %q: a hop that draws nothing: leave it out", text)
	}
	return fanout, by, nil
}

// parseDrawn parses a number from 0 on, or all.
func parseDrawn(text string) (int, error) {
	if strings.EqualFold(text, "all") {
		return All, nil
	}
	n, err := strconv.Atoi(text)
	if err == nil && (n < 0 || n > math.MaxInt32) {
		err = errors.New("out of range")
	}
	return n, err
}

// most returns the largest fanout.
func (f RelationFanout) most() (most int) {
	for _, n := range f {
		if n == All || most == All {
			most = All
			continue
		}
		most = max(most, n)
	}
	return most
}

// FormatFanoutBy writes fanouts as ParseFanoutBy reads them.
func FormatFanoutBy(fanout []int, by []RelationFanout) string {
	if len(by) == 0 {
		return FormatFanout(fanout)
	}
	var hops []string
	for _, of := range by {
		var names, parts []string
		for name := range of {
			names = append(names, name)
		}
		sort.Sort(sort.Reverse(sort.StringSlice(names))) // the rest comes last
		for _, name := range names {
			part := FormatFanout([]int{of[name]})
			if name != "" {
				part = name + "=" + part
			}
			parts = append(parts, part)
		}
		hops = append(hops, strings.Join(parts, ","))
	}
	return strings.Join(hops, ";")
}

// RelationFanouts returns the fanouts of each hop by number of relation, for Config.ByRelation; nil
// if there are none by name. The error says which name is none of the store's relations.
func RelationFanouts(by []RelationFanout, m *kv.Meta) (fanouts [][]int, err error) {
	if len(by) > 0 && !m.Typed() {
		return nil, errors.New("fanouts by relation are for stores whose relations have lists of " +
			"their own: ingest with --nodes TYPE=FILE and --edges SRC:REL:DST=FILE, or give " +
			"a number a hop")
	}
	for _, hop := range by {
		of := slices.Repeat([]int{hop[""]}, len(m.EdgeTypes))
		for name, n := range hop {
			at := slices.Index(m.EdgeTypes, name)
			if at < 0 && name != "" {
				return nil, unknownRelation(name, m.EdgeTypes)
			}
			if at >= 0 {
				of[at] = n
			}
		}
		fanouts = append(fanouts, of)
	}
	return fanouts, nil
}

func unknownRelation(name string, names []string) error {
	if near := message.Nearest(name, names); near != "" {
		return fmt.Errorf("fanout of the relation %q: there is none; did you mean %s?", name, near)
	}
	return fmt.Errorf("fanout of the relation %q: there is none; the relations are %s", name,
		strings.Join(names, ", "))
}
