package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestHelp(t *testing.T) {
	for _, line := range []string{"trainerd", "trainerd help", "trainerd --help", "trainerd run --help", "trainerd check -h", "trainerd help run", "trainerd graph -h", "trainerd graph run --help"} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), strings.Fields(line), nil, &out, &errs); code != 0 || errs.Len() > 0 || !strings.Contains(out.String(), "USAGE:") {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q", line, code, out.String(), errs.String())
		}
	}
}

func TestVersion(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"trainerd", "version"}, nil, &out, &errs); code != 0 || !strings.HasPrefix(out.String(), "trainerd ") {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, out.String(), errs.String())
	}
}
