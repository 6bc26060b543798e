package train

import "fmt"

// macroNote says that draws are used again.
func (t *trainer) macroNote() string {
	if t.cfg.MacroBatch <= 1 {
		return ""
	}
	return fmt.Sprintf("approximate: the neighbors of %d batches are drawn at once, and a node "+
		"that several of them reach has the same in all (--macro-batch)", t.cfg.MacroBatch)
}
