//go:build linux

package systemd_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// boot turns this process, the first of its namespaces, into systemd. Its
// working directory is the disk.
func boot() error {
	// The control group namespace below is that of the thread which execs.
	runtime.LockOSThread()
	disk, err := os.Getwd()
	if err != nil {
		return err
	}
	root := filepath.Join(disk, "root")
	if err := mountRoot(disk, root); err != nil {
		return fmt.Errorf("mounting the root: %w", err)
	}
	if err := install(root); err != nil {
		return fmt.Errorf("installing: %w", err)
	}
	if err := changeRoot(root); err != nil {
		return fmt.Errorf("changing the root: %w", err)
	}
	null, err := os.Open("/dev/null")
	if err != nil {
		return err
	}
	if err := syscall.Dup3(int(null.Fd()), 0, 0); err != nil {
		return err
	}
	return syscall.Exec(systemdPath, []string{"systemd", "--system", "--unit=multi-user.target", "--log-target=journal", "--show-status=0"},
		[]string{"container=box", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", "SYSTEMD_UNIT_PATH=" + unitPath})
}

func mountRoot(disk, root string) error {
	layers := fmt.Sprintf("lowerdir=/,upperdir=%s/upper,workdir=%s/work", disk, disk)
	if err := syscall.Mount("overlay", root, "overlay", 0, layers); err != nil {
		return fmt.Errorf("overlay: %w", err)
	}
	if err := syscall.Unshare(syscall.CLONE_NEWCGROUP); err != nil {
		return err
	}
	const quiet = syscall.MS_NOSUID | syscall.MS_NODEV | syscall.MS_NOEXEC
	for _, m := range []struct {
		kind, dir string
		flags     uintptr
		data      string
	}{
		{"proc", "proc", quiet, ""},
		{"sysfs", "sys", quiet | syscall.MS_RDONLY, ""},
		{"cgroup2", "sys/fs/cgroup", quiet, ""},
		{"tmpfs", "dev", syscall.MS_NOSUID, "mode=755"},
		{"tmpfs", "run", syscall.MS_NOSUID | syscall.MS_NODEV, "mode=755"},
		{"tmpfs", "tmp", syscall.MS_NOSUID | syscall.MS_NODEV, "mode=1777"},
	} {
		if err := syscall.Mount(m.kind, filepath.Join(root, m.dir), m.kind, m.flags, m.data); err != nil {
			return fmt.Errorf("%s: %w", m.dir, err)
		}
	}
	return makeDevices(filepath.Join(root, "dev"))
}

// makeDevices gives the box only devices that cannot harm, and no terminal of
// this machine that something in it could wait for.
func makeDevices(dev string) error {
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		target := filepath.Join(dev, name)
		if err := os.WriteFile(target, nil, 0o666); err != nil {
			return err
		}
		if err := syscall.Mount("/dev/"+name, target, "", syscall.MS_BIND, ""); err != nil {
			return fmt.Errorf("%s: %w", target, err)
		}
	}
	for name, target := range map[string]string{"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2", "ptmx": "pts/ptmx"} {
		if err := os.Symlink(target, filepath.Join(dev, name)); err != nil {
			return err
		}
	}
	for _, name := range []string{"pts", "shm"} {
		if err := os.Mkdir(filepath.Join(dev, name), 0o755); err != nil {
			return err
		}
	}
	return errors.Join(
		syscall.Mount("devpts", filepath.Join(dev, "pts"), "devpts", syscall.MS_NOSUID|syscall.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620"),
		syscall.Mount("tmpfs", filepath.Join(dev, "shm"), "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV, "mode=1777"))
}

// journaldUnits are taken from this machine.
var journaldUnits = []string{"systemd-journald.service", "systemd-journald.socket", "systemd-journald-dev-log.socket"}

// install gives a new disk a machine of its own: no unit but those that the box
// needs.
func install(root string) error {
	units := filepath.Join(root, boxUnits)
	if _, err := os.Stat(units); err == nil {
		return nil // booted before
	}
	etc := filepath.Join(root, "etc/systemd/system")
	err := errors.Join(os.RemoveAll(etc), os.MkdirAll(etc, 0o755), os.MkdirAll(units, 0o755))
	write := func(name, text string) {
		name = filepath.Join(root, name)
		err = errors.Join(err, os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644))
	}
	write("etc/machine-id", "b0c50000000000000000000000000001\n")
	write("etc/systemd/journald.conf", "[Journal]\nStorage=volatile\nForwardToConsole=no\nReadKMsg=no\nAudit=no\nRateLimitIntervalSec=0\n")
	for _, name := range journaldUnits {
		err = errors.Join(err, os.Symlink(filepath.Join("/lib/systemd/system", name), filepath.Join(units, name)))
	}
	for name := range strings.FieldsSeq("sysinit basic sockets timers paths slices local-fs remote-fs network network-online shutdown umount") {
		write(filepath.Join(boxUnits, name+".target"), "[Unit]\nDescription=Nothing\nDefaultDependencies=no\n")
	}
	write(filepath.Join(boxUnits, "multi-user.target"),
		"[Unit]\nDescription=Up\nWants="+strings.Join(journaldUnits, " ")+"\nAfter="+strings.Join(journaldUnits, " ")+"\nAllowIsolate=yes\n")
	write(filepath.Join(boxUnits, "off.target"),
		"[Unit]\nDescription=Down but for the journal\nWants=systemd-journald.service\nAllowIsolate=yes\n")
	return err
}

func changeRoot(root string) error {
	const old = "run/old"
	if err := os.Chdir(root); err != nil {
		return err
	}
	if err := os.Mkdir(old, 0o700); err != nil {
		return err
	}
	if err := syscall.PivotRoot(".", old); err != nil {
		return err
	}
	return errors.Join(
		os.Chdir("/"),
		syscall.Unmount("/"+old, syscall.MNT_DETACH),
		os.Remove("/"+old),
		// Mounts that systemd makes for a service in a namespace of its own can be
		// seen there.
		syscall.Mount("", "/", "", syscall.MS_SHARED|syscall.MS_REC, ""))
}

// get prints what a URL gives.
func get(url string) error {
	w, err := http.Get(url)
	if err != nil {
		return err
	}
	defer w.Body.Close()
	_, err = io.Copy(os.Stdout, w.Body)
	return err
}
