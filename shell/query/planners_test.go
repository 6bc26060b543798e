package query

import (
	"testing"

	"gdb/shell/lang"
)

// TestStatementsAreDefined holds that every statement of the language is planned and run.
func TestStatementsAreDefined(t *testing.T) {
	for _, st := range lang.Statements {
		if planners[st.Head] == nil {
			t.Errorf("%s is not defined", st.Head)
		}
	}
	if len(planners) != len(lang.Statements)+1 { // and that of openCypher
		t.Errorf("%d planners of %d statements", len(planners), len(lang.Statements))
	}
}
