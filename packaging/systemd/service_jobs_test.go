//go:build linux

package systemd_test

import (
	"strings"
	"testing"
)

// testJobs has several jobs of one machine: what is done to one changes no other.
func testJobs(t *testing.T, b *box) {
	const other = "trainerd@other"
	b.put("/etc/trainerd/other.toml", []byte(digitsConfig), 0o644)
	b.run("systemctl", "enable", b.unit, other)
	b.run("systemctl", "disable", other)
	b.reboot()
	b.eventually("start with the machine", func() bool { return b.property("SubState") == "running" })
	if state := b.run("systemctl", "show", "--property", "ActiveState", "--value", other); state != "inactive" {
		t.Errorf("a job that is disabled is %s", state)
	}
	b.run("systemctl", "start", other)
	b.run("systemctl", "stop", "trainerd.target")
	for _, unit := range []string{b.unit, other} {
		b.eventually("stop of "+unit+" with the target", func() bool {
			return b.run("systemctl", "show", "--property", "ActiveState", "--value", unit) == "inactive"
		})
	}
	b.run("systemctl", "start", b.unit)
}

// testOddName has a job whose name has what no unit may have.
func testOddName(t *testing.T, b *box) {
	defer func(before string) { b.unit = before }(b.unit)
	b.unit = b.run("systemd-escape", "--template", "trainerd@.service", "my-job: größe 1.5")
	b.put("/etc/trainerd/my-job: größe 1.5.toml", []byte(digitsConfig), 0o644)
	b.try("systemctl", "start", b.unit)
	b.eventually("refusal", func() bool { return b.property("ActiveState") == "failed" })
	e, ok := b.newest(b.property("ExecMainPID"), "/etc/trainerd/")
	if !ok || !strings.Contains(e.Message, "systemd") {
		t.Errorf("the journal has %+v", e)
	}
	name, _ := strings.CutPrefix(strings.TrimSuffix(b.unit, ".service"), "trainerd@")
	b.put("/etc/trainerd/"+name+".toml", []byte(digitsConfig), 0o644)
	b.run("systemctl", "start", b.unit)
	for _, arg := range []string{"my-job: größe 1.5", name, b.unit} {
		if out := b.run("trainerd", "status", arg); !strings.Contains(out, "/var/lib/trainerd/"+name) && !strings.Contains(out, "/private/trainerd/"+name) {
			t.Errorf("status %s: %s", arg, out)
		}
	}
	b.run("systemctl", "stop", b.unit)
}

// testPackageScripts is an upgrade and a removal of the package in the middle of a run.
func testPackageScripts(t *testing.T, b *box) {
	for _, name := range []string{"preremove.sh", "postinstall.sh", "postremove.sh"} {
		b.put("/packages/"+name, read(t, "../scripts/"+name), 0o755)
	}
	b.run("systemctl", "enable", "--now", b.unit)
	pid := b.property("MainPID")
	for _, manager := range [][]string{
		{"preremove.sh upgrade 0.2", "postremove.sh upgrade 0.2", "postinstall.sh configure 0.1"}, // dpkg
		{"postinstall.sh 2", "preremove.sh 1", "postremove.sh 1"},                                 // rpm
	} {
		for _, script := range manager {
			b.run("sh", "-c", "sh /packages/"+script)
		}
	}
	if now := b.property("MainPID"); now != pid {
		t.Errorf("an upgrade has ended the run: %s is now %s", pid, now)
	}
	for _, removed := range []string{"remove", "0"} {
		b.run("systemctl", "start", b.unit)
		b.awaitSave()
		pid := b.property("MainPID")
		b.run("sh", "/packages/preremove.sh", removed)
		if state, result := b.property("ActiveState"), b.property("Result"); state != "inactive" || result != "success" {
			t.Errorf("after a removal (%s) the run is %s, %s", removed, state, result)
		}
		b.eventually("last words", func() bool {
			e, ok := b.newest(pid, "stopped at step ")
			return ok && strings.HasSuffix(e.Message, "and saved")
		})
		b.run("sh", "/packages/postremove.sh", removed)
		b.isEnabled("enabled")
	}
	b.run("sh", "/packages/postremove.sh", "purge")
	b.isEnabled("disabled")
	b.run("systemctl", "enable", "--now", b.unit)
}

func (b *box) isEnabled(want string) {
	b.t.Helper()
	if out, _ := b.try("systemctl", "is-enabled", b.unit); out != want {
		b.t.Errorf("the job is %s, want %s", out, want)
	}
}
