package system

import "syscall"

// dieWithParent makes the kernel kill the program when this process dies, for whatever reason: two
// programs that train in one logdir would ruin it. It depends on the thread that starts the
// program; see [System.Start].
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }
