package temporal

import "fmt"

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// floorMod is for b > 0.
func floorMod(a, b int64) int64 { return a - floorDiv(a, b)*b }

// civil returns the date that is day days after 1970-01-01. Eras of 400 years have 146,097 days;
// years begin in March, so that a leap day is the last one (H. Hinnant, "chrono-Compatible
// Low-Level Date Algorithms").
func civil(day int64) (year, month, dom int64) {
	day += 719_468
	era := floorDiv(day, 146_097)
	d := day - era*146_097
	y := (d - d/1460 + d/36_524 - d/146_096) / 365
	d -= 365*y + y/4 - y/100
	m := (5*d + 2) / 153
	dom = d - (153*m+2)/5 + 1
	month = floorMod(m+2, 12) + 1
	year = era*400 + y
	if month <= 2 {
		year++
	}
	return year, month, dom
}

// epochDay is the inverse of civil. dom may be past the end of the month.
func epochDay(year, month, dom int64) int64 {
	if month <= 2 {
		year--
	}
	era := floorDiv(year, 400)
	y := year - era*400
	m := floorMod(month-3, 12)
	return era*146_097 + y*365 + y/4 - y/100 + (153*m+2)/5 + dom - 1 - 719_468
}

func monthDays(year, month int64) int64 {
	if month == 12 {
		return 31
	}
	return epochDay(year, month+1, 1) - epochDay(year, month, 1)
}

func yearDays(year int64) int64 { return epochDay(year+1, 1, 1) - epochDay(year, 1, 1) }

// weekDay returns 1 for a Monday to 7 for a Sunday.
func weekDay(day int64) int64 { return floorMod(day+3, 7) + 1 }

// weekOne returns the Monday of the first week of a year: the one with January 4th.
func weekOne(year int64) int64 {
	d := epochDay(year, 1, 4)
	return d - weekDay(d) + 1
}

// week returns the year and the week, from 1, that a day is in (ISO 8601).
func week(day int64) (year, week int64) {
	year, _, _ = civil(day - weekDay(day) + 4) // the year of the Thursday
	return year, (day-weekOne(year))/7 + 1
}

func weeks(year int64) int64 { return (weekOne(year+1) - weekOne(year)) / 7 }

// plusMonths moves a day by months. The day of the month stays, or is the month's last.
func plusMonths(day, months int64) int64 {
	y, m, d := civil(day)
	at := y*12 + m - 1 + months
	y, m = floorDiv(at, 12), floorMod(at, 12)+1
	return epochDay(y, m, min(d, monthDays(y, m)))
}

// within says of a component that it is outside its range.
func within(name string, v, least, greatest int64) error {
	if v < least || v > greatest {
		return fmt.Errorf("%s %d is not in %d..%d", name, v, least, greatest)
	}
	return nil
}
