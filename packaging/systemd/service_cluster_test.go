//go:build linux

package systemd_test

import (
	"net"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/trainerd/master"
)

// serversAddress is where the server of the box has the model of a cluster's job.
const serversAddress = "127.0.0.1:2222"

// serveModel is a server as a cluster of TensorFlow has it. It ends with its process.
func serveModel() error {
	ln, err := net.Listen("tcp", serversAddress)
	if err != nil {
		return err
	}
	return master.New(nil).Serve(ln)
}

const serversUnit = `[Unit]
Description=Servers
[Service]
ExecStart=/usr/local/bin/servers
Environment=` + roleVar + `=servers
Restart=always
RestartSec=100ms
[Install]
WantedBy=multi-user.target
`

// clusterConfig is the job of a worker; the chief's with two words changed.
const clusterConfig = `name = "cluster"
master = "grpc://` + serversAddress + `"
[data]
file = "digits.csv.gz"
header = false
label = -1
scale = 16
[model]
family = "softmax"
[train]
steps = 1000000000
[cluster]
workers = 2
task = 1
[supervisor]
is_chief = false
recovery_wait_secs = 0.1
save_model_steps = 50
save_summaries_steps = 1000
`

// testCluster has the chief and a worker of a job as two services, and the model on a
// server that is a third. Whatever ends, all of it trains again by itself, and what was
// announced is not lost.
func testCluster(t *testing.T, b *box) {
	const chief, worker = "trainerd@chief", "trainerd@worker"
	before := b.unit
	b.run("systemctl", "disable", "--now", before) // the drop-in below would give it this logdir at the next boot
	defer func() {
		b.unit = before
		b.run("systemctl", "enable", before)
	}()
	b.unit = chief
	b.makeUser()
	b.run("install", "-d", "-o", "trainerd", "-g", "trainerd", "-m", "2750", "/srv/runs")
	b.put("/usr/local/bin/servers", read(t, "/proc/self/exe"), 0o755)
	b.put("/etc/systemd/system/servers.service", []byte(serversUnit), 0o644)
	b.put("/etc/trainerd/worker.toml", []byte(clusterConfig), 0o644)
	b.put("/etc/trainerd/chief.toml", []byte(strings.NewReplacer("task = 1", "task = 0", "is_chief = false", "is_chief = true").Replace(clusterConfig)), 0o644)
	shared := strings.Replace(string(read(t, "drop-ins/shared-logdir.conf")), "TRAINERD_LOGDIR=/srv/runs/%i", "TRAINERD_LOGDIR=/srv/runs/cluster", 1)
	b.dropIn("shipped.conf", shared+"PrivateNetwork=no\nRestrictAddressFamilies=AF_INET AF_INET6\nIPAddressAllow=localhost\n")
	defer b.shipped("")
	b.run("systemctl", "enable", "servers", chief, worker)
	b.run("systemctl", "start", "servers")
	b.run("systemctl", "start", "--no-block", chief, worker)
	b.awaitWorker(worker, b.awaitSave())

	for _, unit := range []string{chief, worker, "servers"} {
		b.mustContinue(worker, "kill of "+unit, func() { b.run("systemctl", "kill", "--signal", "KILL", unit) })
	}
	b.mustContinue(worker, "power cut", b.cut)

	b.run("systemctl", "stop", worker, chief)
	for _, unit := range []string{worker, chief} {
		b.unit = unit
		if result, code := b.property("Result"), b.property("ExecMainStatus"); result != "success" || code != "0" {
			t.Errorf("%s: %s, exit code %s", unit, result, code)
		}
	}
	b.run("systemctl", "disable", "--now", "servers", chief, worker)
}

// mustContinue does harm to a cluster, and waits until the chief has saved again and the
// worker has made a step after that. The chief begins at no step before the announced one.
func (b *box) mustContinue(worker, what string, harm func()) {
	b.t.Helper()
	saved, _ := b.newest("", "saved ")
	harm()
	b.eventually("save after the "+what, func() bool {
		e, ok := b.newest("", "saved ")
		return ok && e.step() > saved.step()+50 // one may have been under way
	})
	later, _ := b.newest("", "saved ")
	b.awaitWorker(worker, later.step())
	if e, ok := b.newest("", "restored; training continues"); ok && e.time() > saved.time() && e.step() < saved.step() {
		b.t.Errorf("%s: continues at step %d, although step %d was announced", what, e.step(), saved.step())
	}
}

var trainingStep = regexp.MustCompile(`^training, step (\d+)`)

// awaitWorker waits until a worker is at a later step.
func (b *box) awaitWorker(worker string, step int64) {
	b.t.Helper()
	b.eventually("step of "+worker, func() bool {
		status := trainingStep.FindStringSubmatch(b.run("systemctl", "show", "--property", "StatusText", "--value", worker))
		if status == nil {
			return false
		}
		now, err := strconv.ParseInt(status[1], 10, 64)
		return err == nil && now > step
	})
}
