package sample

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ParseFanout parses fanouts such as "15,10,all"; the hop next to the seeds comes first.
func ParseFanout(text string) ([]int, error) {
	var fanout []int
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if strings.EqualFold(part, "all") {
			fanout = append(fanout, All)
			continue
		}
		n, err := strconv.Atoi(part)
		if err != nil || n < 1 || n > math.MaxInt32 {
			return nil, fmt.Errorf("fanout %q: give positive numbers or all, one a hop, "+
				"such as 15,10,5", text)
		}
		fanout = append(fanout, n)
	}
	return fanout, nil
}

// FormatFanout writes fanouts as ParseFanout reads them.
func FormatFanout(fanout []int) string {
	parts := make([]string, len(fanout))
	for i, f := range fanout {
		parts[i] = strconv.Itoa(f)
		if f == All {
			parts[i] = "all"
		}
	}
	return strings.Join(parts, ",")
}
