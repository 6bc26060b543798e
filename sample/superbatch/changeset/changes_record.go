package changeset

import (
	"fmt"

	"gdb/internal/codec"
)

// Encode appends the record of a batch's changes: about 3 bytes per node for a million slots, and 4
// for each row that is kept. gaps is scratch memory, which it returns.
func (c *Changes) Encode(e *codec.Enc, gaps []uint32) []uint32 {
	gaps = gaps[:0]
	before := uint32(0)
	for _, i := range c.Keep {
		gaps = append(gaps, i-before)
		before = i
	}
	e.U32(word(c.Alone))
	PutArray(e, c.From)
	PutArray(e, gaps)
	PutArray(e, c.Slots)
	return gaps
}

// word returns 1 for true and 0 for false.
func word(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// Decode reads what Encode wrote, and checks it for a batch of this number of nodes and a cache of
// this number of slots.
func (c *Changes) Decode(payload []byte, nodes, slots int) (err error) {
	d := codec.NewDec(payload)
	c.Alone = d.U32() != 0
	for _, to := range []*[]uint32{&c.From, &c.Keep, &c.Slots} {
		if *to, err = TakeArray(d, *to, nodes); err != nil {
			return err
		}
	}
	if len(c.From) != nodes || len(c.Keep) != len(c.Slots) {
		return fmt.Errorf("%d nodes of %d, %d kept in %d slots", len(c.From), nodes, len(c.Keep),
			len(c.Slots))
	}
	c.Hits = 0
	for _, s := range c.From {
		if s != 0 {
			c.Hits++
		}
		if int(s) > slots {
			return fmt.Errorf("a row comes from slot %d of %d", s-1, slots)
		}
	}
	at := uint64(0)
	for k, gap := range c.Keep {
		at += uint64(gap)
		if at >= uint64(nodes) || int(c.Slots[k]) >= slots {
			return fmt.Errorf("row %d of %d goes to slot %d of %d", at, nodes, c.Slots[k], slots)
		}
		c.Keep[k] = uint32(at)
	}
	return nil
}
