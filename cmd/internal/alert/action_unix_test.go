//go:build unix

package alert

import (
	"bytes"
	"strings"
	"testing"
)

func TestExec(t *testing.T) {
	var out bytes.Buffer
	step, value := int64(3), Number(0.5)
	a := &Alert{Text: "a b", Rule: "loss < 1", Logdir: "/logs", Run: "r", Tag: "loss", Step: &step, Value: &value, WallTime: 1700000000.25}
	e := &Exec{Stdout: &out, Stderr: &out,
		Command: `echo "$TFEVENTS_TEXT|$TFEVENTS_RULE|$TFEVENTS_LOGDIR|$TFEVENTS_RUN|$TFEVENTS_TAG|$TFEVENTS_STEP|$TFEVENTS_VALUE|$TFEVENTS_WALL_TIME"; cat`}
	if err := e.Do(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitN(out.String(), "\n", 2)
	if lines[0] != "a b|loss < 1|/logs|r|loss|3|0.5|1700000000.25" || !strings.Contains(lines[1], `"step":3,"value":0.5`) {
		t.Errorf("got %q", out.String())
	}
	if err := (&Exec{Command: "exit 3"}).Do(t.Context(), a); err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Error(err)
	}
}

// TestExecOfOddTag has a tag that no variable can hold: the command runs all the same.
func TestExecOfOddTag(t *testing.T) {
	var out bytes.Buffer
	a := &Alert{Tag: "a\x00b" + strings.Repeat("ü", 200_000)}
	e := &Exec{Command: `printf %s "$TFEVENTS_TAG"; cat >/dev/null`, Stdout: &out, Stderr: &out}
	if err := e.Do(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.HasPrefix(got, `a\x00bü`) || !strings.HasSuffix(got, "ü...") || len(got) > maxVariable {
		t.Errorf("the tag has %d bytes: %.20q ...", len(got), got)
	}
}
