package logdir

import (
	"os"
	"strings"
)

// bootID names the time from a start of this machine to its end, "" if it is not known.
func bootID() string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
