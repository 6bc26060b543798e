// Package message makes the program's messages fit for people: the name of the program in commands
// that it proposes (Program), a word that was probably meant by another (Nearest), lists of words
// (OneOf), and lines wrapped at the width of a screen (Wrap, Writer).
package message
