package columns

import "fmt"

// cycleNames name the values of cycles, in order.
var cycleNames = [...]string{"year.sin", "year.cos", "week.sin", "week.cos", "day.sin", "day.cos"}

// Names returns what each value of a row of the type tells, in order: VECTOR[k], or COLUMN, and
// behind it =WORD, #BUCKET of a hash, the part of a cycle (.year.sin), or .missing.
func (t *Type) Names() (names []string) {
	for _, v := range t.Vectors {
		for k := range v.Dim {
			names = append(names, fmt.Sprintf("%s[%d]", v.Name, k))
		}
	}
	for i := range t.Columns {
		names = append(names, t.Columns[i].names()...)
	}
	return names
}

func (c *Column) names() (names []string) {
	switch c.Kind {
	case Words:
		for _, w := range c.Words {
			names = append(names, c.Name+"="+w)
		}
		return names
	case Hashed, Text:
		for k := range c.Buckets {
			names = append(names, fmt.Sprintf("%s#%d", c.Name, k))
		}
		return names
	}
	names = append(names, c.Name)
	for _, cycle := range cycleNames[:cyclesOf[c.Kind]] {
		names = append(names, c.Name+"."+cycle)
	}
	if c.Gaps {
		names = append(names, c.Name+".missing")
	}
	return names
}
