// Package message makes what a program says fit for people: the name of the program in commands
// that it proposes (Program), the word that was probably meant by another (Nearest), lists of words
// (OneOf), and lines that are broken at the width of a screen (Wrap, Writer).
package message
