package system

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"syscall"
	"time"
)

// signalHandlers sends a signal to a program or, if it would die of it or ignores it, to its
// nearest descendants that handle it, but not to the processes that these have started.
func signalHandlers(p *os.Process, sig syscall.Signal) error {
	if err := p.Signal(syscall.Signal(0)); err != nil {
		return err
	}
	switch dispositionOf(p.Pid, sig) {
	case ended:
		return os.ErrProcessDone
	case handled, unknown:
		return p.Signal(sig)
	}
	found := handlersBelow(p.Pid, childrenOfAll(), sig)
	for _, pid := range found {
		syscall.Kill(pid, sig) // one that has ended meanwhile needs none
	}
	if len(found) == 0 {
		return ErrUnhandled
	}
	return nil
}

// disposition is what a process does when it gets a signal.
type disposition int

const (
	unhandled  disposition = iota // it dies of it, or ignores it
	blocked                       // gets it later: by sigwait or signalfd, or once it has started another program
	allBlocked                    // together with every other signal, as a process does that is starting another program
	handled
	ended   // there is no such process any more
	unknown // the system does not say
)

// A process blocks its signals while it starts another one, which takes longer if that has to be
// read from a slow disk, or the machine is busy.
const (
	beginning     = 20 * time.Millisecond
	longBeginning = time.Second // of one that blocks all of them
	lookAgain     = 5 * time.Millisecond
)

// dispositionOf looks up what a process does when it gets a signal.
func dispositionOf(pid int, sig syscall.Signal) disposition {
	return settled(func() disposition { return dispositionNow(pid, sig) })
}

func dispositionNow(pid int, sig syscall.Signal) disposition {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return ended
	}
	return dispositionIn(status, sig)
}

// settled repeats look until it is clear whether a process blocks a signal only for a moment.
func settled(look func() disposition) disposition {
	for began := time.Now(); ; time.Sleep(lookAgain) {
		d, patience := look(), beginning
		switch d {
		case allBlocked:
			patience = longBeginning
		case blocked:
		default:
			return d
		}
		if time.Since(began) >= patience {
			return handled
		}
	}
}

// dispositionIn parses the system's status of a process.
func dispositionIn(status []byte, sig syscall.Signal) disposition {
	said := unknown
	for line := range bytes.Lines(status) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimSpace(value)
		switch string(name) {
		case "State":
			if bytes.HasPrefix(value, []byte("Z")) || bytes.HasPrefix(value, []byte("X")) {
				return ended
			}
		case "SigBlk":
			said = unhandled
			if has(value, sig) {
				said = blocked
			}
			if hasAll(value) {
				said = allBlocked
			}
		case "SigCgt":
			if has(value, sig) {
				return handled
			}
		}
	}
	return said
}

// has reports whether a set of signals, in hexadecimal, contains one.
func has(set []byte, sig syscall.Signal) bool {
	mask, err := strconv.ParseUint(string(set), 16, 64)
	return err == nil && mask>>(sig-1)&1 == 1
}

// hasAll reports whether a set of signals has all of the usual ones that can be blocked.
func hasAll(set []byte) bool {
	for sig := syscall.Signal(1); sig <= syscall.SIGSYS; sig++ {
		if sig != syscall.SIGKILL && sig != syscall.SIGSTOP && !has(set, sig) {
			return false
		}
	}
	return true
}

// childrenOfAll returns the children of each process that has some.
func childrenOfAll() map[int][]int {
	children := make(map[int][]int)
	for _, pid := range processes() {
		parent := parentOf(pid)
		children[parent] = append(children[parent], pid)
	}
	return children
}

// handlersBelow returns the nearest processes below one that handle a signal.
func handlersBelow(pid int, children map[int][]int, sig syscall.Signal) (found []int) {
	for _, child := range children[pid] {
		if dispositionOf(child, sig) == handled {
			found = append(found, child)
		} else {
			found = append(found, handlersBelow(child, children, sig)...)
		}
	}
	return found
}

// signalOthers sends a signal to the group of the process leader, except to the leader itself.
func signalOthers(leader int, sig syscall.Signal) error {
	var errs []error
	for _, pid := range processes() {
		if fields := statOf(pid); pid == leader || len(fields) < 3 || string(fields[2]) != strconv.Itoa(leader) {
			continue
		}
		if err := syscall.Kill(pid, sig); !errors.Is(err, syscall.ESRCH) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
