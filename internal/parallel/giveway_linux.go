package parallel

import "golang.org/x/sys/unix"

// GiveWay lets other threads of the machine have the processor first, and
// returns at once where none wants it. Work in the background calls it every
// few hundred microseconds: Linux would let it go on until the next tick of its
// clock, for up to 4 ms, while a step waits for this processor.
func GiveWay() { unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }
