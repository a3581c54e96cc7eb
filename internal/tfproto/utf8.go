package tfproto

import (
	"fmt"
	"unicode/utf8"
)

// CheckString refuses a string that decoders would refuse a whole message for.
func CheckString(s string) error {
	if utf8.ValidString(s) {
		return nil
	}
	return fmt.Errorf("tfevents: %q is not UTF-8, which readers of events files refuse", s)
}
