package machine

import (
	"math"
	"os"
	"path/filepath"
	"testing"
)

// TestMachineMemory reads how much memory there is from files as Linux has them.
func TestMachineMemory(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return name
	}
	file("v2/memory.max", "max\n")
	file("v2/a/memory.max", "3000\n")
	file("v2/a/b/memory.max", "4000\n")
	file("v1/memory/memory.limit_in_bytes", "5000\n")
	file("v2/a/memory.events", "oom 9\noom_kill 3\noom_group_kill 0\n")
	file("v1/memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n")
	const unknown = math.MaxInt64
	for _, test := range []struct {
		what      string
		got, want int64
	}{
		{"meminfo", machineMemory(file("meminfo", "MemFree: 1 kB\nMemTotal:       24 kB\n")), 24 << 10},
		{"no number", machineMemory(file("bad", "MemTotal: x kB\n")), unknown},
		{"no file", machineMemory(filepath.Join(dir, "none")), unknown},
		{"the least of a group and its parents", cgroupMemory(file("self2", "0::/a/b\n"), filepath.Join(dir, "v2")), 3000},
		{"a path of the host", cgroupMemory(file("self1", "4:memory:/docker/x\n1:cpu:/\n"), filepath.Join(dir, "v1")), 5000},
		{"no limit", cgroupMemory(file("self0", "0::/\n"), filepath.Join(dir, "v2")), unknown},
		{"no group", cgroupMemory(filepath.Join(dir, "none"), dir), unknown},
		{"kills in a group, by the one above it", oomKills(file("self3", "0::/a/b\n"), filepath.Join(dir, "v2")), 3},
		{"kills in a group of version 1", oomKills(file("self4", "4:memory:/docker/x\n"), filepath.Join(dir, "v1")), 5},
		{"no kills", oomKills(filepath.Join(dir, "none"), dir), 0},
	} {
		if test.got != test.want {
			t.Errorf("%s: %d, want %d", test.what, test.got, test.want)
		}
	}
}
