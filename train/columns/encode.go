package columns

import (
	"bytes"
	"math"
	"time"
	"unicode/utf8"

	"gdb/internal/rng"
	"gdb/layout/columnfile"
)

const (
	secondsOfDay  = 24 * 60 * 60
	microsOfDay   = secondsOfDay * 1_000_000
	secondsOfWeek = 7 * secondsOfDay
	// monday is a Monday, 1970-01-05, in seconds.
	monday = 4 * secondsOfDay
)

// valueOf returns a value as a number: times in seconds.
func valueOf(typ string, v *columnfile.Values, i int) float64 {
	switch typ {
	case columnfile.Float64:
		return v.Floats[i]
	case columnfile.Date:
		return float64(v.Ints[i]) * secondsOfDay
	case columnfile.Timestamp:
		return float64(v.Ints[i]) / 1e6
	}
	return float64(v.Ints[i])
}

// encoder encodes the values of a column.
type encoder struct {
	*Column
	typ   string
	words map[string]int
}

func newEncoder(c *Column, typ string) *encoder {
	e := &encoder{Column: c, typ: typ, words: map[string]int{}}
	for i, w := range c.Words {
		e.words[w] = i
	}
	return e
}

// encode sets out, which has Dim zeros, to row i of v.
func (e *encoder) encode(v *columnfile.Values, i int, out []float32) {
	if e.typ == columnfile.String {
		if !v.Null(i) {
			e.encodeText(v.Strings.At(i), out)
		}
		return
	}
	x := math.NaN()
	if !v.Null(i) {
		x = valueOf(e.typ, v, i)
	}
	if math.IsNaN(x) || math.IsInf(x, 0) { // as a gap, which rows that were measured may lack
		if e.Gaps {
			out[len(out)-1] = 1
		}
		return
	}
	out[0] = float32((x - e.Mean) / e.Deviation)
	e.cycles(x, out[1:])
}

// cycles sets the sines and cosines of the parts of the year, the week and the day at a time.
func (e *encoder) cycles(seconds float64, out []float32) {
	n := cyclesOf[e.Kind]
	if n == 0 {
		return
	}
	at := time.Unix(int64(math.Floor(seconds)), 0).UTC()
	begin := time.Date(at.Year(), 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	end := time.Date(at.Year()+1, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	shares := [3]float64{(seconds - float64(begin)) / float64(end-begin),
		(seconds - monday) / secondsOfWeek, seconds / secondsOfDay}
	for k, share := range shares[:n/2] {
		sin, cos := math.Sincos(2 * math.Pi * (share - math.Floor(share)))
		out[2*k], out[2*k+1] = float32(sin), float32(cos)
	}
}

// Keys of hashes. A text is hashed by words and by letters.
const (
	hashOfWord = iota + 1
	hashOfPart
	hashOfLetters
)

// encodeText sets out for a word or a text.
func (e *encoder) encodeText(b []byte, out []float32) {
	switch e.Kind {
	case Words:
		if at, ok := e.words[string(b)]; ok {
			out[at] = 1
		}
	case Hashed:
		out[rng.Hash(hashOfWord, b)%uint64(e.Buckets)] = 1
	case Text:
		hashText(bytes.ToLower(b), out)
	}
}

// lettersOf is how many letters in a row are hashed together.
const lettersOf = 3

// hashText adds a sign for each word of a text, and for each run of letters in it, and scales the
// sum to length 1.
func hashText(b []byte, out []float32) {
	for _, word := range bytes.Fields(b) {
		addHash(rng.Hash(hashOfPart, word), out)
		for len(word) > 0 {
			addHash(rng.Hash(hashOfLetters, firstLetters(word)), out)
			if utf8.RuneCount(word) <= lettersOf {
				break
			}
			_, n := utf8.DecodeRune(word)
			word = word[n:]
		}
	}
	sum := 0.0
	for _, x := range out {
		sum += float64(x) * float64(x)
	}
	if sum == 0 {
		return
	}
	scale := float32(1 / math.Sqrt(sum))
	for i := range out {
		out[i] *= scale
	}
}

// firstLetters is the first letters of a word, lettersOf if it has as many.
func firstLetters(word []byte) []byte {
	end := 0
	for range lettersOf {
		_, n := utf8.DecodeRune(word[end:])
		end += n
	}
	return word[:end]
}

func addHash(h uint64, out []float32) {
	out[h>>1%uint64(len(out))] += float32(1 - 2*int(h&1))
}
