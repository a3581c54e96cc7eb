package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// hintFor says what to write instead of a value of the wrong type: it recognises numbers
// and truth values in quotes, times with a unit, and percentages.
func hintFor(field reflect.Value, value any) string {
	s, ok := value.(string)
	if !ok {
		return ""
	}
	if _, err := strconv.ParseInt(s, 10, 64); errors.Is(err, strconv.ErrRange) {
		return "it is out of the range of 64 bits"
	}
	if _, err := strconv.ParseFloat(s, 64); err == nil || s == "true" || s == "false" {
		return "remove the quotes"
	}
	if !field.CanFloat() {
		return ""
	}
	if field.Type() == reflect.TypeFor[Seconds]() {
		return secondsHint(s)
	}
	if number, ok := strings.CutSuffix(s, "%"); ok {
		if percent, err := strconv.ParseFloat(strings.TrimSpace(number), 64); err == nil {
			return "write " + strconv.FormatFloat(percent/100, 'g', 12, 64)
		}
	}
	return ""
}

// timeUnit is a number with a unit of time, as people write it.
var timeUnit = regexp.MustCompile(`^\s*([0-9.]+)\s*(s|sec|second|m|min|minute|h|hr|hour|d|day)s?\s*$`)

// secondsHint returns the number that a time with a unit means.
func secondsHint(s string) string {
	const unknown = "write seconds, as a number"
	if d, err := time.ParseDuration(s); err == nil {
		return "write " + strconv.FormatFloat(d.Seconds(), 'g', -1, 64) + ", the seconds"
	}
	parts := timeUnit.FindStringSubmatch(strings.ToLower(s))
	if parts == nil {
		return unknown
	}
	number, err := strconv.ParseFloat(parts[1], 64)
	if err != nil {
		return unknown
	}
	unit := map[byte]float64{'s': 1, 'm': 60, 'h': 3600, 'd': 24 * 3600}[parts[2][0]]
	return "write " + strconv.FormatFloat(number*unit, 'g', 12, 64) + ", the seconds"
}

// homes are the ways in which a shell names the home folder.
var homes = []string{"~", "$HOME", "${HOME}"}

// afterHome returns what follows the home folder in a path, as a shell would read it.
func afterHome(path string) (rest string, ok bool) {
	for _, home := range homes {
		rest, ok := strings.CutPrefix(path, home)
		if ok && (rest == "" || strings.HasPrefix(rest, "/")) {
			return rest, true
		}
	}
	return "", false
}

// homeHint returns the path that was meant, from what follows the home folder in it.
func homeHint(rest string) string {
	home, err := os.UserHomeDir()
	if err != nil {
		return "write the whole path"
	}
	return fmt.Sprintf("write %q", filepath.Join(home, rest))
}

// pathHint says what to do about a config that cannot be opened: systemd has escapes for what no
// unit may have in its name, so a service looks for a file with these in its name.
func pathHint(name string) string {
	if base := filepath.Base(name); strings.Contains(base, `\x`) {
		return fmt.Sprintf("the name of a systemd unit has escapes for all but letters, digits and :_.-, and so has that of its config: call it %s, or give the job a plain name", base)
	}
	return "give the path of a job's TOML file"
}
