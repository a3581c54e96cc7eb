package main

import (
	"fmt"
	"strings"
)

// jobNames returns the names that the folder of a job of systemd may have, which is named in an
// argument: people type the name of the unit too, and it has escapes for what no unit may have in
// its name. systemctl leaves dashes as they are, systemd-escape does not.
func jobNames(arg string) []string {
	if instance, isUnit := strings.CutPrefix(arg, "trainerd@"); isUnit {
		arg = strings.TrimSuffix(instance, ".service")
	}
	return []string{arg, escaped(arg, `:_.-@\`), escaped(arg, ":_.")}
}

// escaped returns a name with escapes, as in \x20, for all but letters, digits and what is allowed.
func escaped(name, allowed string) string {
	var b strings.Builder
	for _, c := range []byte(name) {
		isPlain := c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || strings.IndexByte(allowed, c) >= 0
		if isPlain {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, `\x%02x`, c)
		}
	}
	return b.String()
}
