package shell

// Styles of the terminal, as select-graphic-rendition sequences.
const (
	styleNone    = "\x1b[0m"
	styleBold    = "\x1b[1m"
	styleDim     = "\x1b[2m"
	styleReverse = "\x1b[7m"
	styleRed     = "\x1b[31m"
	styleGreen   = "\x1b[32m"
	styleYellow  = "\x1b[33m"
	styleCyan    = "\x1b[36m"
)

// dressed puts s into a style; "" leaves it as it is.
func dressed(s, style string) string {
	if style == "" || s == "" {
		return s
	}
	return style + s + styleNone
}
