package triples

// Answer is an entity that answers a query, and its score.
type Answer struct {
	Entity uint32
	Score  float32
}
