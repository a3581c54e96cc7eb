package daemon

import (
	"strings"
	"testing"
)

// TestCommandsThatHideTheEnd has commands that end with exit code 0 though the training in them
// was killed, and others.
func TestCommandsThatHideTheEnd(t *testing.T) {
	for _, tc := range []struct {
		command string // its words, divided by " / "
		want    string // "" for nothing
	}{
		{"python3 / train.py / | / tee", ""},
		{"sh / -c / python3 train.py | tee log", "pipeline"},
		{"/bin/bash / -c / python3 train.py 2>&1 | tee log", "pipeline"},
		{"bash / -lc / python3 train.py |& tee log", "pipeline"},
		{"bash / -c / set -o pipefail; python3 train.py | tee log", ""},
		{"bash / -o / pipefail / -c / python3 train.py | tee log", ""},
		{"bash / -euo / pipefail / -c / python3 train.py | tee log", ""},
		{"sh / -c / python3 train.py || python3 train.py --small", ""},
		{"sh / -c / python3 train.py 2>&1 >|log", ""},
		{"sh / -c / python3 train.py --names 'a|b' \"c|d\" e\\|f", ""},
		{"sh / -c / echo \"it\\\"s\" | cat", "pipeline"},
		{"sh / -c / echo '\\' | cat", "pipeline"},
		{"sh / -c / nohup python3 train.py >log 2>&1 &", "background"},
		{"sh / -c / python3 helper.py & python3 train.py", ""},
		{"sh / -c / cd run && exec python3 train.py", ""},
		{"sh / train.sh", ""},
		{"sh / -c", ""},
		{"make / -c / a | b", ""},
		{"setsid / python3 / train.py", "background"},
		{"setsid / --wait / python3 / train.py", ""},
		{"setsid / -w / python3 / train.py", ""},
		{"", ""},
	} {
		var command []string
		if tc.command != "" {
			command = strings.Split(tc.command, " / ")
		}
		got := hidesEnd(command)
		if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%q: %q, want %q", tc.command, got, tc.want)
		}
	}
}

// TestShortfall has programs that end with exit code 0, before their last step or at it.
func TestShortfall(t *testing.T) {
	for _, tc := range []struct {
		name  string
		watch childWatch
		says  bool
	}{
		{"far from it", childWatch{reported: true, step: 90, stride: 10, steps: 200}, true},
		{"at it", childWatch{reported: true, step: 200, stride: 10, steps: 200}, false},
		{"counting from 0", childWatch{reported: true, step: 199, stride: 1, steps: 200}, false},
		{"reporting now and then", childWatch{reported: true, step: 180, stride: 20, steps: 200}, false},
		{"saved later than reported", func() childWatch {
			w := childWatch{reported: true, step: 100, stride: 10, steps: 200}
			w.saved.Step = 200
			return w
		}(), false},
		{"without a last step", childWatch{reported: true, step: 90, stride: 1}, false},
		{"without reports", childWatch{steps: 200}, false},
	} {
		if got := tc.watch.shortfall(); (got != "") != tc.says || tc.says && !strings.Contains(got, "200") {
			t.Errorf("%s: %q", tc.name, got)
		}
	}
}
