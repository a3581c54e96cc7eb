//go:build linux

// Package slurm_test runs the batch scripts of examples/slurm under a real Slurm.
package slurm_test

import (
	"bytes"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

var withSlurm = flag.Bool("slurm", false, "start a Slurm of two nodes on this machine, and run jobs in it")

// A cluster is a Slurm of its own: munged, slurmctld, and a slurmd for each of two
// nodes. A node has a host name and process IDs of its own, so that it dies with
// all that runs on it, and shares files and network with the others.
type cluster struct {
	t     *testing.T
	dir   string // of the daemons
	work  string // where jobs are submitted
	env   []string
	nodes map[string]*exec.Cmd
}

// patience is how long anything may take: a job of one minute gets two from Slurm.
const patience = 4 * time.Minute

// config is that of Slurm. A requeued job may begin again after the lifetime of a
// credential, which is two minutes by default.
const config = `ClusterName=trainerd
SlurmctldHost=%[1]s(127.0.0.1)
SlurmctldPort=%[3]d
AuthType=auth/munge
AuthInfo=socket=%[2]s/munge/socket,cred_expire=5
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation=%[2]s/state
SlurmdSpoolDir=%[2]s/%%n
SlurmctldPidFile=%[2]s/slurmctld.pid
SlurmdPidFile=%[2]s/%%n.pid
SlurmctldLogFile=%[2]s/slurmctld.log
SlurmdLogFile=%[2]s/%%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
ReturnToService=2
SlurmdTimeout=10
KillWait=5
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SchedulerParameters=bf_interval=5,sched_interval=5,batch_sched_delay=1
NodeName=n0 NodeHostname=n0 NodeAddr=127.0.0.1 Port=%[4]d CPUs=2
NodeName=n1 NodeHostname=n1 NodeAddr=127.0.0.1 Port=%[5]d CPUs=2
PartitionName=main Nodes=n0,n1 Default=YES MaxTime=INFINITE PriorityTier=1 GraceTime=30
PartitionName=urgent Nodes=n0,n1 MaxTime=INFINITE PriorityTier=10
`

// needSlurm skips the test where there is no Slurm.
func needSlurm(t *testing.T) {
	t.Helper()
	switch {
	case !*withSlurm:
		t.Skip("starts a Slurm; type `make slurm`")
	case os.Geteuid() != 0:
		t.Skip("needs root, to make nodes with names and processes of their own")
	}
	for _, tool := range []string{"slurmctld", "slurmd", "sbatch", "munged", "unshare", "python3"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("needs %s; on Debian: apt-get install slurmctld slurmd slurm-client munge util-linux python3", tool)
		}
	}
}

// newCluster starts a Slurm, which ends with the test.
func newCluster(t *testing.T) *cluster {
	needSlurm(t)
	dir, err := os.MkdirTemp("", "slurm-") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	c := &cluster{t: t, dir: dir, work: filepath.Join(dir, "work"), nodes: make(map[string]*exec.Cmd)}
	for _, name := range []string{"munge", "state", "n0", "n1", "work", "bin"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	c.env = append(os.Environ(), "SLURM_CONF="+filepath.Join(dir, "slurm.conf"), "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
	c.configure()
	c.build()
	c.munge()
	c.start("slurmctld", "-D", "-c")
	c.startNode("n0")
	c.startNode("n1")
	c.eventually("two idle nodes", func() bool { return strings.Count(c.try("sinfo", "-h", "-N", "-p", "main", "-o", "%T"), "idle") == 2 })
	return c
}

func (c *cluster) configure() {
	c.t.Helper()
	host, err := os.Hostname()
	if err != nil {
		c.t.Fatal(err)
	}
	var ports [3]int
	for i := range ports {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			c.t.Fatal(err)
		}
		defer ln.Close() // after all have been chosen
		ports[i] = ln.Addr().(*net.TCPAddr).Port
	}
	c.write("slurm.conf", fmt.Sprintf(config, host, c.dir, ports[0], ports[1], ports[2]), 0o644)
}

func (c *cluster) write(name, text string, mode os.FileMode) {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), mode); err != nil {
		c.t.Fatal(err)
	}
}

// build makes the command that the jobs run.
func (c *cluster) build() {
	c.t.Helper()
	build := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(c.dir, "bin"), "../../cmd/trainerd")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		c.t.Fatalf("%v\n%s", err, out)
	}
}

// munge starts the daemon by which the others know each other.
func (c *cluster) munge() {
	c.write("munge/key", strings.Repeat("of a test only: ", 8), 0o400)
	in := func(name string) string { return filepath.Join(c.dir, "munge", name) }
	c.start("munged", "--foreground", "--force", "--key-file="+in("key"), "--socket="+in("socket"), "--pid-file="+in("pid"),
		"--log-file="+in("log"), "--seed-file="+in("seed"))
	c.eventually("munged", func() bool {
		_, err := os.Stat(in("socket"))
		return err == nil
	})
}

// start starts a daemon, which ends with the test.
func (c *cluster) start(name string, args ...string) *exec.Cmd {
	c.t.Helper()
	daemon := exec.Command(name, args...)
	daemon.Env = c.env
	daemon.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := daemon.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { c.kill(daemon) })
	return daemon
}

// kill ends a daemon; a second time it does nothing.
func (c *cluster) kill(daemon *exec.Cmd) {
	if daemon.ProcessState == nil {
		syscall.Kill(-daemon.Process.Pid, syscall.SIGKILL)
		daemon.Wait()
	}
}

// startNode switches a node on.
func (c *cluster) startNode(name string) {
	c.t.Helper()
	c.nodes[name] = c.start("unshare", "--uts", "--pid", "--fork", "--mount-proc", "--kill-child",
		"sh", "-c", "hostname "+name+" && exec slurmd -D -N "+name)
}

// killNode switches a node off: all its processes end.
func (c *cluster) killNode(name string) {
	c.t.Helper()
	c.kill(c.nodes[name])
}

// try runs a command of Slurm, and returns what it has printed, whether it fails or not.
func (c *cluster) try(name string, args ...string) string {
	cmd := exec.Command(name, args...)
	cmd.Env, cmd.Dir = c.env, c.work
	out, _ := cmd.CombinedOutput()
	return string(out)
}

var submitted = regexp.MustCompile(`Submitted batch job (\d+)`)

// submit hands a job in, and returns its ID.
func (c *cluster) submit(args ...string) string {
	c.t.Helper()
	out := c.try("sbatch", args...)
	found := submitted.FindStringSubmatch(out)
	if found == nil {
		c.t.Fatalf("sbatch %q: %s", args, out)
	}
	return found[1]
}

// property returns what Slurm says of a job, such as its JobState.
func (c *cluster) property(id, name string) string {
	for field := range strings.FieldsSeq(c.try("scontrol", "-o", "show", "job", id)) {
		if value, is := strings.CutPrefix(field, name+"="); is {
			return value
		}
	}
	return ""
}

// restarts returns how often a job was requeued and has begun again.
func (c *cluster) restarts(id string) int {
	n, err := strconv.Atoi(c.property(id, "Restarts"))
	if err != nil {
		return 0
	}
	return n
}

// awaitState waits until a job is in a state.
func (c *cluster) awaitState(id, state string) {
	c.t.Helper()
	c.eventually("job "+id+" is "+state, func() bool { return c.property(id, "JobState") == state })
}

// output returns what the jobs of a name have printed.
func (c *cluster) output(name string) string {
	files, _ := filepath.Glob(filepath.Join(c.work, name+"-*.log"))
	var all bytes.Buffer
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err == nil {
			all.Write(text)
		}
	}
	return all.String()
}

// eventually waits until a condition holds.
func (c *cluster) eventually(what string, holds func() bool) {
	c.t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(deadline) {
			c.t.Fatalf("%s: not within %v\n%s\n%s", what, patience, c.try("squeue"), c.output("*"))
		}
	}
}
