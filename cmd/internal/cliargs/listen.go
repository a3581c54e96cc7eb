package cliargs

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// ListenError returns the error of listening at an address that flags name. One
// that this machine cannot give now is for another try; any other is the address
// itself, and a [UsageError].
func ListenError(flags string, err error) error {
	if _, ok := errors.AsType[syscall.Errno](err); ok {
		return fmt.Errorf("%s: %w", flags, err)
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.Temporary() {
		return fmt.Errorf("%s: %w", flags, err)
	}
	return Usagef("%s: %w", flags, err)
}
