package lang_test

import (
	"errors"
	"fmt"

	"gdb/shell/lang"
)

// ExampleParse parses a statement, and one with a mistake.
func ExampleParse() {
	p, err := lang.Parse("NEIGHBORS 'ann',#7 IN HOPS 2 LIMIT 10;")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.Statement.Head, "of", p.Operand.Nodes.IDs.Count, "nodes,", p.Args["HOPS"].N,
		"hops")

	_, err = lang.Parse("NEIGHBORS 42 HOPS 0;")
	var mistake *lang.SyntaxError
	if errors.As(err, &mistake) {
		fmt.Println("column", mistake.Pos+1, "-", mistake.Msg)
	}
	// Output:
	// NEIGHBORS of 2 nodes, 2 hops
	// column 19 - HOPS wants 1 to 64
}
