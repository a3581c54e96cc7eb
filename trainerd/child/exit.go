package child

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/trainerd/trainerd/trainerd/logdir"
)

// notStartedCode is the exit code of a program that has not been started.
const notStartedCode = -1

// exitTempFail is the exit code (EX_TEMPFAIL) of a program that could not continue
// for a reason outside of it, and would like to try again.
const exitTempFail = 75

// finalCodes are exit codes of programs that would fail again: an invalid
// command line, wrong data, a wrong configuration (sysexits.h), and a shell
// that cannot run the command or does not find it.
var finalCodes = []int{64, 65, 78, 126, 127}

// exitUsage means an invalid command line, as with Python's argparse, or that a Go program has
// crashed; so it is final only for a program that has not done anything yet, on any node.
const exitUsage = 2

// shellSignal plus a signal is the exit code of a shell whose command was ended by that signal.
const shellSignal = 128

// Cause says why a start of the program ended.
type Cause int

const (
	Completed Cause = iota // exit code 0
	Failed                 // it may work the next time
	Preempted              // SIGTERM from elsewhere, or exit code 75
	Hung                   // it reported no step for too long, and was killed
	Final                  // another start would fail as well
	Stopped                // because Run was asked to stop
	Diverged               // its loss was NaN or infinite, and it was killed
)

func (c Cause) String() string {
	names := [...]string{"completed", "failed", "preempted", "hung", "final", "stopped", "diverged"}
	if c < 0 || int(c) >= len(names) {
		return fmt.Sprintf("Cause(%d)", int(c))
	}
	return names[c]
}

// Exit is the end of one start of the program.
type Exit struct {
	Attempt int
	Cause   Cause
	Code    int            // -1 if a signal ended it
	Signal  syscall.Signal // 0 for none
	Took    time.Duration
	// Step is the step of the last report, -1 for none.
	Step int64
	// DiskFull says that it failed while the disk had less room than its checkpoint takes, or
	// two of them once it had trained.
	DiskFull bool
	// OutOfMemory says that the kernel has killed a process of this control group during the start
	// because memory ran out: the program, one of its processes, or another.
	OutOfMemory bool
	// Left are processes that the program had started and has left running, though it
	// has succeeded: it trains in the background, where nobody restarts it.
	Left []int
}

func (e *Exit) String() string {
	if e.Code == notStartedCode && e.Signal == 0 {
		return "could not be started"
	}
	text := fmt.Sprintf("ended with exit code %d", e.Code)
	if e.Signal != 0 {
		text = fmt.Sprintf("was ended by signal %d (%v)", int(e.Signal), e.Signal)
	}
	if e.OutOfMemory {
		text += ", and the kernel has ended a process because memory ran out"
	}
	return text
}

// wasKilled reports whether a SIGKILL from elsewhere has ended the program, or the
// command of a shell.
func (e *Exit) wasKilled() bool {
	return e.Cause == Failed && (e.Signal == syscall.SIGKILL || e.Code == shellSignal+int(syscall.SIGKILL))
}

// causeOf determines the cause from how a program ended, and what this process did to it. It does
// not know whether the program had done anything before, which matters for exitUsage.
func causeOf(e *Exit, stopped, hung bool) Cause {
	switch {
	case stopped:
		return Stopped
	case hung:
		return Hung
	case e.Code == 0:
		return Completed
	case e.Signal == syscall.SIGTERM, e.Code == exitTempFail:
		return Preempted
	case slices.Contains(finalCodes, e.Code):
		return Final
	}
	return Failed
}

// ExitError says that the program has failed permanently.
type ExitError struct {
	Command []string
	Exit    Exit
	// Failures is how often it failed within Window, or 0 if another start
	// would fail too.
	Failures int
	Window   time.Duration
}

func (e *ExitError) Error() string {
	text := fmt.Sprintf("%s %v", strings.Join(e.Command, " "), &e.Exit)
	switch {
	case e.Exit.Cause == Hung:
		text = strings.Join(e.Command, " ") + " hung and was killed"
	case e.Exit.Cause == Final:
		return text + ", which another start would not change; its output says more"
	case e.Failures == 1:
		return text + "; it is not started again"
	}
	return fmt.Sprintf("%s; it has failed %d times within %v, so it is not started again", text, e.Failures, e.Window)
}

// StartError says that the program could not be started at all.
type StartError struct {
	Command []string
	Err     error
}

func (e *StartError) Error() string {
	return fmt.Sprintf("cannot start %s: %v%s", strings.Join(e.Command, " "), e.Err, startHint(e.Err))
}

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }

// isFinal reports whether another start would fail, too, for example because there is no such
// program. The error is not final if the machine lacks processes, memory or open files, or its disk
// fails.
func (e *StartError) isFinal() bool {
	errno, ok := errors.AsType[syscall.Errno](e.Err)
	if !ok {
		return true // there is no such command in $PATH
	}
	return errors.Is(errno, fs.ErrNotExist) || errors.Is(errno, fs.ErrPermission) || slices.Contains(finalErrnos, errno)
}

var finalErrnos = []syscall.Errno{syscall.ENOEXEC, syscall.ENOTDIR, syscall.EISDIR, syscall.ELOOP, syscall.ENAMETOOLONG, syscall.E2BIG, syscall.EINVAL}

// isRetried reports whether a failed start is repeated: if an earlier start succeeded, what is
// missing may come back, such as a program that is just being replaced.
func isRetried(err error, attempt int) bool {
	if _, used := errors.AsType[*logdir.GroupError](err); used {
		return false
	}
	start, ok := errors.AsType[*StartError](err)
	return attempt > 1 || ok && !start.isFinal()
}
