package system

import "syscall"

// dieWithParent has the program killed when this process dies, by whatever
// cause: two programs that train in one logdir would spoil it. It depends on the
// thread that starts the program; see [System.Start].
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }
