package train

import "fmt"

// macroNote says that draws are shared by the batches of a macro-batch; "" if they are not.
func (t *trainer) macroNote() string {
	if t.cfg.MacroBatch <= 1 {
		return ""
	}
	return fmt.Sprintf("approximate: the neighbors of %d batches are drawn at once, and a node "+
		"that several of them reach has the same in all (--macro-batch)", t.cfg.MacroBatch)
}
