package amx

import (
	"errors"
	"fmt"

	"golang.org/x/sys/cpu"
	"golang.org/x/sys/unix"
)

const (
	// tileState is the state of tiles as bits of the register XCR0: configuration and data.
	tileState = 1<<17 | 1<<18
	// Linux gives the data of tiles, component 18, to processes that ask for it: see
	// Documentation/arch/x86/xstate.rst.
	archRequestPermission = 0x1023
	tileDataComponent     = 18
)

// extendedControl returns the register XCR0: the states that the system saves.
func extendedControl() uint64

// ask finds out whether the process may use tiles, and has the system give them to it.
func ask() error {
	x := &cpu.X86
	switch {
	case !x.HasAMXTile || !x.HasAMXBF16:
		return errors.New("the processor has no AMX for bfloat16")
	case !x.HasAVX512F || !x.HasAVX512BW:
		return errors.New("the system does not let processes use AVX-512, which AMX is used with")
	case !x.HasOSXSAVE || extendedControl()&tileState != tileState:
		return errors.New("the system does not save the tiles of AMX")
	}
	_, _, errno := unix.RawSyscall(unix.SYS_ARCH_PRCTL, archRequestPermission, tileDataComponent, 0)
	if errno != 0 {
		return fmt.Errorf("the system refuses the tiles of AMX: arch_prctl: %w", errno)
	}
	return nil
}
