package cliargs

import (
	"errors"
	"net"
	"os"
	"syscall"
	"testing"
)

func TestListenError(t *testing.T) {
	_, noPort := net.Listen("tcp", "nope")
	_, badPort := net.Listen("tcp", "127.0.0.1:99999")
	taken := &net.OpError{Op: "listen", Net: "tcp", Err: os.NewSyscallError("bind", syscall.EADDRINUSE)}
	for _, tc := range []struct {
		err   error
		usage bool
	}{
		{noPort, true},
		{badPort, true},
		{errors.New("can be reached from other machines"), true},
		{&net.OpError{Op: "listen", Err: &net.DNSError{Err: "no such host", IsNotFound: true}}, true},
		{&net.OpError{Op: "listen", Err: &net.DNSError{Err: "timeout", IsTimeout: true}}, false},
		{taken, false},
	} {
		got := ListenError("--listen", tc.err)
		if usage, _ := errors.AsType[*UsageError](got); (usage != nil) != tc.usage || !errors.Is(got, tc.err) {
			t.Errorf("%v: usage error %v, want %v", got, usage != nil, tc.usage)
		}
	}
}
