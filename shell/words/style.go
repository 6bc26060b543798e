package words

// Styles of the terminal, as select-graphic-rendition sequences.
const (
	StyleNone    = "\x1b[0m"
	StyleBold    = "\x1b[1m"
	StyleDim     = "\x1b[2m"
	StyleReverse = "\x1b[7m"
	StyleRed     = "\x1b[31m"
	StyleGreen   = "\x1b[32m"
	StyleYellow  = "\x1b[33m"
	StyleCyan    = "\x1b[36m"
)

// Dressed returns s in a style; a style of "" leaves it as it is.
func Dressed(s, style string) string {
	if style == "" || s == "" {
		return s
	}
	return style + s + StyleNone
}
