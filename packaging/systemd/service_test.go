//go:build linux

package systemd_test

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

var withSystemd = flag.Bool("systemd", false, "boot a systemd in namespaces, and run the units in it")

// digitsConfig is a job that does not end by itself.
const digitsConfig = `name = "digits"
[data]
file = "digits.csv.gz"
header = false
label = -1
scale = 16
test_fraction = 0.2
[model]
family = "softmax"
[train]
steps = 1000000000
[eval]
steps = 1000000
[supervisor]
save_model_steps = 2000
save_summaries_steps = 1000
`

// newService returns a box with the units and the command installed.
func newService(t *testing.T) *box {
	b := newBox(t)
	for _, name := range []string{"trainerd@.service", "trainerd.target"} {
		b.put(filepath.Join(boxUnits, name), read(t, name), 0o644)
	}
	command := filepath.Join(t.TempDir(), "trainerd")
	build := exec.Command("go", "build", "-trimpath", "-o", command, "../../cmd/trainerd")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	b.put("/usr/bin/trainerd", read(t, command), 0o755)
	b.put("/etc/trainerd/digits.csv.gz", read(t, "../../examples/digits/digits.csv.gz"), 0o644)
	b.put("/etc/trainerd/digits.toml", []byte(digitsConfig), 0o644)
	b.run("systemctl", "daemon-reload")
	return b
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// dropIn changes the unit.
func (b *box) dropIn(name, text string) {
	b.t.Helper()
	b.put("/etc/systemd/system/trainerd@.service.d/"+name, []byte(text), 0o644)
	b.run("systemctl", "daemon-reload")
}

func (b *box) property(name string) string {
	b.t.Helper()
	return b.run("systemctl", "show", "--property", name, "--value", b.unit)
}

// entry is a line of the journal, as far as it matters here.
type entry struct {
	Message    string `json:"MESSAGE"`
	Priority   string `json:"PRIORITY"`
	Step       string `json:"TRAINERD_STEP"`
	Checkpoint string `json:"TRAINERD_CHECKPOINT"`
	Key        string `json:"TRAINERD_KEY"`
	Transport  string `json:"_TRANSPORT"`
	PID        string `json:"_PID"`
	Time       string `json:"__REALTIME_TIMESTAMP"`
}

// time is when the journal got the entry, in microseconds.
func (e *entry) time() int64 {
	n, _ := strconv.ParseInt(e.Time, 10, 64) // 0 for none
	return n
}

func (e *entry) step() int64 {
	n, err := strconv.ParseInt(e.Step, 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// journal returns what the unit has logged in this boot.
func (b *box) journal() []entry {
	b.t.Helper()
	var all []entry
	for line := range strings.Lines(b.run("journalctl", "--unit", b.unit, "--output", "json", "--boot", "--quiet", "--all")) {
		var e entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			continue // a message that is not text is an array of bytes
		}
		all = append(all, e)
	}
	return all
}

// newest returns the last entry of a process whose message begins so.
func (b *box) newest(pid, message string) (found entry, ok bool) {
	b.t.Helper()
	for _, e := range b.journal() {
		if strings.HasPrefix(e.Message, message) && (pid == "" || e.PID == pid) {
			found, ok = e, true
		}
	}
	return found, ok
}

// awaitSave waits until the present process has announced a checkpoint, and
// returns its step.
func (b *box) awaitSave() (step int64) {
	b.t.Helper()
	pid := b.property("MainPID")
	b.eventually("checkpoint", func() bool {
		e, ok := b.newest(pid, "saved ")
		step = e.step()
		return ok && step > 0
	})
	return step
}

// awaitResume waits until another process than pid trains, and checks that it
// has lost nothing that was announced.
func (b *box) awaitResume(pid string, announced int64) {
	b.t.Helper()
	b.eventually("restart", func() bool {
		now := b.property("MainPID")
		return now != pid && now != "0" && b.property("SubState") == "running"
	})
	var e entry
	now := b.property("MainPID")
	b.eventually("resume", func() (ok bool) {
		e, ok = b.newest(now, "restored; training continues")
		return ok
	})
	if e.step() < announced {
		b.t.Errorf("continues at step %d, although a checkpoint of step %d was announced", e.step(), announced)
	}
}

var exposure = regexp.MustCompile(`exposure level for \S+: ([0-9.]+) `)

// exposure returns what `systemd-analyze security` gives the unit.
func (b *box) exposure() float64 {
	b.t.Helper()
	out := b.run("systemd-analyze", "security", "--no-pager", b.unit+".service")
	m := exposure.FindStringSubmatch(out)
	if m == nil {
		b.t.Fatalf("no exposure level in:\n%s", out)
	}
	level, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		b.t.Fatal(err)
	}
	return level
}

// TestService runs the units as a user would, in one machine; each part begins
// where the one before has ended.
func TestService(t *testing.T) {
	b := newService(t)
	b.unit = "trainerd@digits"
	// Hangs must not take the minutes that they may take outside tests.
	b.dropIn("test.conf", "[Service]\nWatchdogSec=2s\nRestartSec=100ms\n[Unit]\nStartLimitIntervalSec=0\n")
	for _, part := range []struct {
		name string
		test func(*testing.T, *box)
	}{
		{"verify", testVerify},
		{"start", testStart},
		{"journal", testJournal},
		{"confinement", testConfinement},
		{"control", testControl},
		{"kill", testKill},
		{"hang", testHang},
		{"pause", testPause},
		{"reload", testReload},
		{"stop", testStop},
		{"reboot", testReboot},
		{"power cut", testPowerCut},
		{"target", testTarget},
		{"jobs", testJobs},
		{"odd name", testOddName},
		{"package scripts", testPackageScripts},
		{"drop-ins", testDropIns},
		{"listen", testListen},
		{"shared logdir", testSharedLogdir},
		{"ends", testEnds},
		{"child", testChild},
		{"cluster", testCluster},
		{"crash loop", testCrashLoop},
	} {
		if !t.Run(part.name, func(t *testing.T) {
			b.t = t
			part.test(t, b)
		}) {
			break
		}
		b.t = t
	}
}

func testVerify(t *testing.T, b *box) {
	if out := b.run("systemd-analyze", "verify", "--man=no", b.unit+".service", "trainerd.target"); out != "" {
		t.Errorf("systemd-analyze verify: %s", out)
	}
}

func testStart(t *testing.T, b *box) {
	b.run("systemctl", "start", b.unit) // returns after READY=1
	if state := b.property("SubState"); state != "running" {
		t.Errorf("is %s", state)
	}
	if _, ok := b.newest("", "training from the beginning"); !ok {
		t.Error("start has returned before the model was ready")
	}
	b.awaitSave()
	want := regexp.MustCompile(`^(training|saving), step \d+ of 1000000000, loss [0-9.e-]+, [0-9.e+]+ steps/s, ETA \S+, saved \d+$`)
	b.eventually("status text "+want.String(), func() bool { return want.MatchString(b.property("StatusText")) })
	t.Log(b.property("StatusText"))
}

func testJournal(t *testing.T, b *box) {
	e, ok := b.newest(b.property("MainPID"), "saved ")
	if !ok || e.step() <= 0 || e.Transport != "journal" || e.Priority != "6" || !strings.HasSuffix(e.Checkpoint, "model.ckpt-"+e.Step) {
		t.Errorf("entry %+v", e)
	}
}

func testConfinement(t *testing.T, b *box) {
	status := b.run("cat", "/proc/"+b.property("MainPID")+"/status")
	for _, want := range []string{`(?m)^Uid:\s+[1-9]`, `(?m)^NoNewPrivs:\s+1`, `(?m)^Seccomp:\s+2`, `(?m)^CapEff:\s+0+$`} {
		if !regexp.MustCompile(want).MatchString(status) {
			t.Errorf("%s is not in\n%s", want, status)
		}
	}
	level := b.exposure()
	t.Logf("systemd-analyze security: %.1f", level)
	if level > 1 {
		t.Errorf("exposure level %.1f, want 1.0 or less", level)
	}
}

func testControl(t *testing.T, b *box) {
	if out := b.run("trainerd", "status", "digits"); !strings.HasPrefix(out, "digits: ") {
		t.Errorf("status: %s", out)
	}
	out := b.run("trainerd", "save", "/var/lib/trainerd/digits")
	m := regexp.MustCompile(`^saved step \d+: (\S+)$`).FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("save: %s", out)
	}
	if _, err := os.Stat(b.path(m[1] + ".index")); err != nil {
		t.Error(err)
	}
	if mode := b.run("stat", "-L", "-c", "%a", "/var/lib/trainerd/digits/trainerd.sock"); mode != "600" {
		t.Errorf("the socket has mode %s", mode)
	}
}

func testKill(t *testing.T, b *box) {
	pid, announced := b.property("MainPID"), b.awaitSave()
	b.run("systemctl", "kill", "--signal", "KILL", "--kill-who", "main", b.unit)
	b.awaitResume(pid, announced)
}

func testHang(t *testing.T, b *box) {
	pid, announced := b.property("MainPID"), b.awaitSave()
	b.run("systemctl", "kill", "--signal", "STOP", "--kill-who", "main", b.unit)
	b.awaitResume(pid, announced)
	if _, ok := b.newest("", b.unit+".service: Watchdog timeout"); !ok {
		t.Error("not the watchdog has killed it")
	}
}

// A job that people let wait is not a hang.
func testPause(t *testing.T, b *box) {
	pid := b.property("MainPID")
	b.run("trainerd", "pause", "digits")
	time.Sleep(5 * time.Second) // twice what the watchdog waits, and more
	b.run("trainerd", "resume", "digits")
	if now := b.property("MainPID"); now != pid {
		t.Error("a paused job was killed")
	}
}

func testReload(t *testing.T, b *box) {
	changed := strings.Replace(digitsConfig, "save_model_steps = 2000", "save_model_steps = 1500", 1)
	b.put("/etc/trainerd/digits.toml", []byte(changed), 0o644)
	b.run("systemctl", "reload", b.unit)
	b.eventually("reload", func() bool {
		e, ok := b.newest("", "set on request")
		return ok && e.Key == "supervisor.save_model_steps"
	})
	b.eventually("the end of the reload", func() bool { return b.property("ActiveState") == "active" })

	b.put("/etc/trainerd/digits.toml", []byte("steps = nonsense"), 0o644)
	b.run("systemctl", "reload", b.unit)
	b.eventually("word of the wrong config", func() bool {
		e, ok := b.newest("", "config is invalid; the run keeps the previous one")
		return ok && e.Priority == "3"
	})
	b.eventually("the end of the reload", func() bool { return b.property("ActiveState") == "active" })
	b.put("/etc/trainerd/digits.toml", []byte(digitsConfig), 0o644)
}

func testStop(t *testing.T, b *box) {
	pid := b.property("MainPID")
	b.run("systemctl", "stop", b.unit)
	if state, result, code := b.property("ActiveState"), b.property("Result"), b.property("ExecMainStatus"); state != "inactive" || result != "success" || code != "0" {
		t.Errorf("%s, %s, exit code %s", state, result, code)
	}
	var end entry
	b.eventually("last words", func() (ok bool) {
		end, ok = b.newest(pid, "stopped at step ")
		return ok
	})
	saved, _ := b.newest(pid, "saved ")
	if want := "stopped at step " + saved.Step + " of 1000000000, and saved"; end.Message != want {
		t.Errorf("says %q, want %q", end.Message, want)
	}
}

func testReboot(t *testing.T, b *box) {
	b.run("systemctl", "enable", b.unit)
	b.run("systemctl", "start", b.unit)
	b.awaitSave()
	pid := b.property("MainPID")
	b.reboot()
	b.awaitResume(pid, 1)
}

func testPowerCut(t *testing.T, b *box) {
	announced := b.awaitSave()
	b.cut()
	b.awaitResume("", announced)
}

func testTarget(t *testing.T, b *box) {
	b.run("systemctl", "stop", "trainerd.target")
	b.eventually("stop with the target", func() bool { return b.property("ActiveState") == "inactive" })
	b.run("systemctl", "start", "trainerd.target")
	b.awaitResume("0", 1)
}

// shipped puts a drop-in in the place of the one before; "" is none.
func (b *box) shipped(name string) {
	b.t.Helper()
	text := "[Service]\n"
	if name != "" {
		text = string(read(b.t, "drop-ins/"+name))
	}
	b.dropIn("shipped.conf", text)
}

func testDropIns(t *testing.T, b *box) {
	dropIns, err := os.ReadDir("drop-ins")
	if err != nil || len(dropIns) == 0 {
		t.Fatalf("%d drop-ins, %v", len(dropIns), err)
	}
	b.run("systemctl", "stop", b.unit) // who goes by the name of the user that is to be made
	b.makeUser()
	for _, d := range dropIns {
		b.shipped(d.Name())
		if out := b.run("systemd-analyze", "verify", "--man=no", b.unit+".service"); out != "" {
			t.Errorf("%s: systemd-analyze verify: %s", d.Name(), out)
		}
		level := b.exposure()
		t.Logf("systemd-analyze security with %s: %.1f", d.Name(), level)
		if level > 1 {
			t.Errorf("%s: exposure level %.1f, want 1.0 or less", d.Name(), level)
		}
	}
	b.shipped("")
}

// makeUser does what a package does when it is installed.
func (b *box) makeUser() {
	b.t.Helper()
	b.put("/usr/lib/sysusers.d/trainerd.conf", read(b.t, "sysusers.conf"), 0o644)
	b.put("/usr/lib/tmpfiles.d/trainerd.conf", read(b.t, "tmpfiles.conf"), 0o644)
	b.run("systemd-sysusers", "trainerd.conf")
	b.run("systemd-tmpfiles", "--create", "trainerd.conf")
}

func testSharedLogdir(t *testing.T, b *box) {
	b.run("install", "-d", "-o", "trainerd", "-g", "trainerd", "-m", "2750", "/srv/runs")
	b.shipped("shared-logdir.conf")
	b.run("systemctl", "start", b.unit)
	b.awaitSave()
	if out := b.run("trainerd", "status", "/srv/runs/digits"); !strings.HasPrefix(out, "digits: ") {
		t.Errorf("status: %s", out)
	}
	if owner := b.run("stat", "-c", "%U:%G", "/srv/runs/digits/checkpoint"); owner != "trainerd:trainerd" {
		t.Errorf("the checkpoints are of %s", owner)
	}
	b.run("systemctl", "stop", b.unit)
	b.shipped("")
}

// With the drop-in for TCP the job answers there.
func testListen(t *testing.T, b *box) {
	b.shipped("listen.conf")
	b.run("systemctl", "start", b.unit)
	b.awaitResume("0", 1) // with files that belonged to the dynamic user before
	b.put("/usr/local/bin/get", read(t, "/proc/self/exe"), 0o755)
	if out := b.run("get", "http://127.0.0.1:9090/healthz"); !strings.Contains(out, `"healthy":true`) {
		t.Errorf("healthz: %s", out)
	}
	if out := b.run("get", "http://127.0.0.1:9090/metrics"); !strings.Contains(out, "\ntrainerd_steps_total ") {
		t.Errorf("metrics: %s", out)
	}
	b.run("systemctl", "stop", b.unit)
	b.shipped("")
}

const childConfig = `name = "child"
[child]
command = ["/bin/sh", "/etc/trainerd/train.sh"]
checkpoints = "ckpt-*"
`

const childProgram = `step=${TRAINERD_STEP:-0}
save() { echo weights >"$TRAINERD_LOGDIR/tmp" && mv "$TRAINERD_LOGDIR/tmp" "$TRAINERD_LOGDIR/ckpt-$step"; }
trap 'save; exit 0' TERM
while :; do
  step=$((step + 1))
  echo "step=$step loss=1"
  if [ $((step % 10)) = 0 ]; then save; fi
  sleep 0.01
done
`
