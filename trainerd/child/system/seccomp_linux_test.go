package system

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"
)

// TestListenInSandbox has a process that may make no unix sockets, as some sandboxes have it.
func TestListenInSandbox(t *testing.T) {
	const variable = "SYSTEM_TEST_SANDBOX"
	if os.Getenv(variable) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestListenInSandbox$", "-test.v")
		cmd.Env = append(os.Environ(), variable+"=yes", "TMPDIR="+t.TempDir())
		out, err := cmd.CombinedOutput()
		if strings.Contains(string(out), "no filter") {
			t.Skip(string(out))
		}
		if err != nil {
			t.Errorf("%v:\n%s", err, out)
		}
		return
	}
	if err := forbidUnixSockets(); err != nil {
		t.Skip("no filter of system calls here: ", err)
	}
	temp := os.TempDir()
	for name, shared := range map[string][]string{temp: nil, temp + "/none": {temp}} {
		t.Setenv("TMPDIR", name)
		sharedTemps = shared
		if ln, err := (OS{}).Listen(); !errors.Is(err, ErrNoSockets) || ln != nil {
			t.Errorf("with temporary files in %s, or in %v: Listen = %v, %v", name, shared, ln, err)
		}
	}
	if entries, err := os.ReadDir(temp); err != nil || len(entries) > 0 {
		t.Errorf("left are %v, %v", entries, err)
	}
}

// TestForbidden has errors of a socket that say that there can be none, and others.
func TestForbidden(t *testing.T) {
	for errno, want := range map[syscall.Errno]bool{syscall.EPERM: true, syscall.EACCES: true, syscall.EAFNOSUPPORT: true, syscall.EINVAL: false, syscall.EMFILE: false} {
		err := forbiddenOr(os.NewSyscallError("socket", errno))
		if !errors.Is(err, errno) || errors.Is(err, ErrNoSockets) != want {
			t.Errorf("%v becomes %v", errno, err)
		}
	}
}

// forbidUnixSockets has socket(2) fail in this process for the family of unix sockets.
func forbidUnixSockets() error {
	const (
		setNoNewPrivs  = 38
		setModeFilter  = 1
		ofAllThreads   = 1
		loadWord       = 0x20 // BPF_LD|BPF_W|BPF_ABS
		jumpEqual      = 0x15 // BPF_JMP|BPF_JEQ|BPF_K
		result         = 0x06 // BPF_RET|BPF_K
		numberOffset   = 0
		argumentOffset = 16
		allow          = 0x7fff0000
		failWith       = 0x00050000
	)
	seccomp := map[string]uintptr{"amd64": 317, "arm64": 277}[runtime.GOARCH]
	if seccomp == 0 {
		return errors.ErrUnsupported
	}
	filter := []syscall.SockFilter{
		{Code: loadWord, K: numberOffset},
		{Code: jumpEqual, Jf: 3, K: syscall.SYS_SOCKET},
		{Code: loadWord, K: argumentOffset},
		{Code: jumpEqual, Jf: 1, K: syscall.AF_UNIX},
		{Code: result, K: failWith | uint32(syscall.EPERM)},
		{Code: result, K: allow},
	}
	program := syscall.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	runtime.LockOSThread() // whose rights the others get
	defer runtime.UnlockOSThread()
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, setNoNewPrivs, 1, 0, 0, 0, 0); errno != 0 {
		return errno
	}
	if _, _, errno := syscall.RawSyscall(seccomp, setModeFilter, ofAllThreads, uintptr(unsafe.Pointer(&program))); errno != 0 {
		return errno
	}
	runtime.KeepAlive(filter)
	return nil
}
