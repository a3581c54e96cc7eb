package machine

import (
	"os"
	"strings"
)

// BootID names the time from a start of this machine to its end, "" if it is not known.
func BootID() string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
