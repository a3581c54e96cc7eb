//go:build linux

package systemd_test

import (
	"regexp"
	"strings"
	"testing"
)

// What cannot go better the next time is not tried again.
func testEnds(t *testing.T, b *box) {
	for _, c := range []struct {
		name, from, to string
		code           string
	}{
		{"complete", "steps = 1000000000", "steps = 1", "0"},
		{"config", "softmax", "sofdmax", "78"},
		{"data", "label = -1", "label = 999", "65"},
	} {
		b.run("systemctl", "reset-failed", b.unit)
		b.put("/etc/trainerd/digits.toml", []byte(strings.Replace(digitsConfig, c.from, c.to, 1)), 0o644)
		before := b.property("NRestarts")
		b.try("systemctl", "start", b.unit)
		want := "failed"
		if c.code == "0" {
			want = "inactive"
		}
		b.eventually(c.name, func() bool { return b.property("ActiveState") == want })
		if code, restarts := b.property("ExecMainStatus"), b.property("NRestarts"); code != c.code || restarts != before && restarts != "0" {
			t.Errorf("%s: exit code %s, %s restarts", c.name, code, restarts)
		}
		if e, ok := b.newest(b.property("ExecMainPID"), "/etc/trainerd/digits"); c.code != "0" && (!ok || e.Priority != "3") {
			t.Errorf("%s: the journal has %+v", c.name, e)
		}
	}
	b.put("/etc/trainerd/digits.toml", []byte(digitsConfig), 0o644)
}

// A program in another language is kept alive in the same way: it ends with the
// daemon that is killed, and is asked to save when the service is stopped.
func testChild(t *testing.T, b *box) {
	defer func(before string) { b.unit = before }(b.unit)
	b.unit = "trainerd@child"
	// udev makes the group of the GPUs, which not every machine has.
	b.run("sh", "-c", "getent group render || echo render:x:993: >>/etc/group")
	b.shipped("child-gpu.conf")
	defer b.shipped("")
	b.put("/etc/trainerd/child.toml", []byte(childConfig), 0o644)
	b.put("/etc/trainerd/train.sh", []byte(childProgram), 0o644)
	b.run("systemctl", "start", b.unit)
	status := regexp.MustCompile(`^supervising, step \d+, loss 1, .*saved \d+$`)
	b.eventually("status text "+status.String(), func() bool { return status.MatchString(b.property("StatusText")) })
	t.Log(b.property("StatusText"))

	for _, signal := range []string{"KILL", "STOP"} { // a process that is stopped is for the watchdog
		pid := b.property("MainPID")
		b.run("systemctl", "kill", "--signal", signal, "--kill-who", "main", b.unit)
		b.awaitResume(pid, 10)
		b.eventually("one program", func() bool {
			out, err := b.try("pgrep", "-f", "^/bin/sh /etc/trainerd/train.sh")
			return err == nil && !strings.Contains(out, "\n")
		})
	}

	pid := b.property("MainPID")
	b.run("systemctl", "stop", b.unit)
	if result, code := b.property("Result"), b.property("ExecMainStatus"); result != "success" || code != "0" {
		t.Errorf("%s, exit code %s", result, code)
	}
	end := regexp.MustCompile(`^stopped at step \d+, and saved$`)
	b.eventually("last words", func() bool {
		e, ok := b.newest(pid, "stopped ")
		return ok && end.MatchString(e.Message)
	})
}

// A job that always fails is given up.
func testCrashLoop(t *testing.T, b *box) {
	b.dropIn("test.conf", "[Service]\nRestartSec=10ms\nExecStart=\nExecStart=/bin/false\n")
	b.run("systemctl", "reset-failed", b.unit)
	b.try("systemctl", "start", b.unit)
	b.eventually("giving up", func() bool {
		_, ok := b.newest("", b.unit+".service: Start request repeated too quickly")
		return ok && b.property("ActiveState") == "failed"
	})
}
