//go:build linux

package systemd_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A box is a machine for the tests: the installed systemd, as process 1 of
// namespaces of its own, on a root that is this machine's with a layer on top
// which takes all writes. Processes of this test binary make it:
//
//	machine   has the layer in a mount namespace, and boots; whenever process 1
//	          has ended it boots again, until its stdin is closed
//	boot      mounts the root in fresh namespaces and becomes systemd
//	probe     only mounts the root, to see whether that can be done here
//
// The layer is the machine's disk: it is there after a reboot, and gone with the
// test, however that ends. Process 1 sees only the units that the box gives it,
// so nothing of this machine's is started in it.
type box struct {
	t       *testing.T
	unit    string // that is looked at
	machine *exec.Cmd
	power   io.Closer // off when closed
	boots   chan int  // process 1 of each boot
	pid     int       // of process 1, as seen from outside
	log     bytes.Buffer
}

// roleVar is the environment variable that makes the test binary something else
// than a test.
const roleVar = "TRAINERD_SYSTEMD_ROLE"

// unitPath is where process 1 looks for units: what is enabled, and what the
// box has.
const unitPath = "/etc/systemd/system:/run/systemd/system:" + boxUnits

const (
	boxUnits    = "/usr/lib/box"
	systemdPath = "/lib/systemd/systemd"
)

func TestMain(m *testing.M) {
	var err error
	switch os.Getenv(roleVar) {
	case "machine":
		err = machine()
	case "boot":
		err = boot()
	case "probe":
		err = probe()
	case "servers":
		err = serveModel()
	case "get":
		err = get(os.Args[1])
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// needBox skips the test where a box cannot be.
func needBox(t *testing.T) {
	t.Helper()
	switch {
	case !*withSystemd:
		t.Skip("boots a systemd; type `make systemd`")
	case os.Geteuid() != 0:
		t.Skip("needs root, to make namespaces and mounts")
	}
	for _, tool := range []string{systemdPath, "systemctl", "systemd-analyze", "journalctl", "nsenter"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("needs %s; on Debian: apt-get install systemd util-linux", filepath.Base(tool))
		}
	}
	if dir, err := cgroupRoot(); err != nil {
		t.Skip(err)
	} else if probe, err := os.MkdirTemp(dir, "trainerd-probe-"); err != nil {
		t.Skipf("cannot make a control group: %v", err)
	} else if err := os.Remove(probe); err != nil {
		t.Fatal(err)
	}
	probe := exec.Command("/proc/self/exe")
	probe.Dir = t.TempDir()
	probe.Env = append(os.Environ(), roleVar+"=probe")
	probe.SysProcAttr = &syscall.SysProcAttr{Cloneflags: boxNamespaces}
	if out, err := probe.CombinedOutput(); err != nil {
		t.Skipf("cannot make namespaces and mounts: %v %s", err, bytes.TrimSpace(out))
	}
}

const boxNamespaces = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC | syscall.CLONE_NEWNET

// cgroupRoot returns where the second version of control groups is mounted.
func cgroupRoot() (string, error) {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); len(f) > 2 && f[2] == "cgroup2" {
			return f[1], nil
		}
	}
	return "", errors.New("needs cgroup2 to be mounted")
}

// newBox switches a machine on, and waits until it has booted. It is switched
// off when the test ends.
func newBox(t *testing.T) *box {
	needBox(t)
	b := &box{t: t, boots: make(chan int)}
	b.machine = exec.Command("/proc/self/exe")
	b.machine.Dir = t.TempDir()
	b.machine.Env = append(os.Environ(), roleVar+"=machine")
	b.machine.Stderr = &b.log
	b.machine.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	stdin, err := b.machine.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := b.machine.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	b.power = stdin
	if err := b.machine.Start(); err != nil {
		t.Skipf("cannot make a mount namespace: %v", err)
	}
	go func() {
		defer close(b.boots)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			pid, err := strconv.Atoi(lines.Text())
			if err != nil {
				return
			}
			b.boots <- pid
		}
	}()
	t.Cleanup(b.off)
	b.booted()
	return b
}

// off takes the power away.
func (b *box) off() {
	b.power.Close()
	for range b.boots { // one may be under way
	}
	if err := b.machine.Wait(); err != nil {
		b.t.Errorf("machine: %v\n%s", err, &b.log)
	}
}

// booted waits for the next boot.
func (b *box) booted() {
	b.t.Helper()
	pid, ok := <-b.boots
	if !ok {
		b.t.Fatalf("the machine did not boot:\n%s", &b.log)
	}
	b.pid = pid
	b.eventually("boot", func() bool {
		_, err := b.try("systemctl", "is-active", "multi-user.target")
		return err == nil
	})
}

// cut takes the power away for a moment: every process ends as it is.
func (b *box) cut() {
	b.t.Helper()
	if err := syscall.Kill(b.pid, syscall.SIGKILL); err != nil {
		b.t.Fatal(err)
	}
	b.booted()
}

// reboot stops all services in order, and boots again.
func (b *box) reboot() {
	b.t.Helper()
	b.run("systemctl", "isolate", "off.target")
	b.cut()
}

// patience is how long anything in a box may take.
const patience = 30 * time.Second

// try runs a command in the box, and returns what it prints.
func (b *box) try(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(b.t.Context(), patience)
	defer cancel()
	enter := []string{"--target", strconv.Itoa(b.pid), "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--"}
	cmd := exec.CommandContext(ctx, "nsenter", append(enter, args...)...)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", "TERM=dumb",
		"SYSTEMD_UNIT_PATH=" + unitPath, "SYSTEMD_PAGER=", "SYSTEMD_COLORS=0", roleVar + "=get"}
	cmd.WaitDelay = time.Second // what nsenter has started outlives it
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), err
}

func (b *box) run(args ...string) string {
	b.t.Helper()
	out, err := b.try(args...)
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

// path returns the name that a file of the box has outside.
func (b *box) path(name string) string {
	return filepath.Join("/proc", strconv.Itoa(b.pid), "root", name)
}

// put writes a file of the box.
func (b *box) put(name string, content []byte, mode fs.FileMode) {
	b.t.Helper()
	if err := os.MkdirAll(filepath.Dir(b.path(name)), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(b.path(name), content, mode); err != nil {
		b.t.Fatal(err)
	}
	if err := os.Chmod(b.path(name), mode); err != nil { // the umask is ours
		b.t.Fatal(err)
	}
}

// eventually waits until a condition holds.
func (b *box) eventually(what string, holds func() bool) {
	b.t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			journal, _ := b.try("journalctl", "--no-pager", "-n", "60")
			b.t.Fatalf("%s: not within %v\n%s\n%s", what, patience, journal, &b.log)
		}
	}
}

// machine is the process that boots again and again. Its working directory is
// where the disk is to be.
func machine() error {
	if _, err := newDisk(); err != nil {
		return err
	}
	off := make(chan struct{})
	go func() {
		defer close(off)
		io.Copy(io.Discard, os.Stdin)
	}()
	for {
		if err := bootOnce(off); err != nil {
			return err
		}
		select {
		case <-off:
			return nil
		default:
		}
	}
}

// newDisk makes a disk in the working directory, and returns its name.
func newDisk() (string, error) {
	disk, err := os.Getwd()
	if err != nil {
		return "", err
	}
	err = errors.Join(
		syscall.Mount("", "/", "", syscall.MS_PRIVATE|syscall.MS_REC, ""),
		syscall.Mount("tmpfs", disk, "tmpfs", 0, "mode=755"),
		os.Chdir(disk), // over the mount
	)
	for _, dir := range []string{"upper", "work", "root"} {
		err = errors.Join(err, os.Mkdir(dir, 0o755))
	}
	if err != nil {
		return "", fmt.Errorf("disk: %w", err)
	}
	return disk, nil
}

// probe is the process that finds out whether a box can be, by the mounts of
// one. They are gone with it.
func probe() error {
	runtime.LockOSThread()
	disk, err := newDisk()
	if err != nil {
		return err
	}
	return mountRoot(disk, filepath.Join(disk, "root"))
}

// bootOnce boots, and returns when process 1 has ended.
func bootOnce(off <-chan struct{}) error {
	root, err := cgroupRoot()
	if err != nil {
		return err
	}
	group, err := os.MkdirTemp(root, "trainerd-box-")
	if err != nil {
		return err
	}
	defer removeGroup(group)
	fd, err := os.Open(group)
	if err != nil {
		return err
	}
	defer fd.Close()
	init := exec.Command("/proc/self/exe")
	init.Env = append(os.Environ(), roleVar+"=boot")
	init.Stderr = os.Stderr
	init.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: boxNamespaces, Pdeathsig: syscall.SIGKILL, UseCgroupFD: true, CgroupFD: int(fd.Fd()),
	}
	if err := init.Start(); err != nil {
		return fmt.Errorf("boot: %w", err)
	}
	fmt.Println(init.Process.Pid)
	ended := make(chan struct{})
	go func() {
		select {
		case <-off:
			init.Process.Kill()
		case <-ended:
		}
	}()
	init.Wait() // however it ended
	close(ended)
	return nil
}

// removeGroup removes a control group and those in it, which have no processes
// any more, or soon.
func removeGroup(group string) {
	for range 100 {
		var dirs []string
		filepath.WalkDir(group, func(name string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append(dirs, name)
			}
			return nil
		})
		slices.Reverse(dirs) // those inside first
		for _, dir := range dirs {
			syscall.Rmdir(dir)
		}
		if _, err := os.Stat(group); err != nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}
