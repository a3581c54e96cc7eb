package machine

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// memoryGroup is a control group, of version 2 or 1, that bounds the memory of this process.
type memoryGroup struct {
	root, path    string // of the groups, and of this one below it
	limit, events string // names of its files
}

// memoryGroups returns those that the file self, as /proc/self/cgroup, names.
func memoryGroups(self, root string) (all []memoryGroup) {
	data, _ := os.ReadFile(self)
	for line := range strings.Lines(string(data)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(parts) != 3:
		case parts[0] == "0" && parts[1] == "":
			all = append(all, memoryGroup{root, parts[2], "memory.max", "memory.events"})
		case parts[1] == "memory":
			all = append(all, memoryGroup{filepath.Join(root, "memory"), parts[2], "memory.limit_in_bytes", "memory.oom_control"})
		}
	}
	return all
}

// OOMKills returns how many processes of this one's control group the kernel has ended so far
// because memory ran out, there or on the whole machine; 0 where that is not known.
func OOMKills() int64 { return oomKills("/proc/self/cgroup", "/sys/fs/cgroup") }

func oomKills(self, root string) (most int64) {
	for _, g := range memoryGroups(self, root) {
		most = max(most, killsOf(g))
	}
	return most
}

// killsOf returns the count of a group, or of the nearest one above it that has one: in a container
// its path may be one of the host, whose folders are not there.
func killsOf(g memoryGroup) int64 {
	for dir := filepath.Clean("/" + g.path); ; dir = filepath.Dir(dir) {
		data, _ := os.ReadFile(filepath.Join(g.root, dir, g.events))
		for line := range strings.Lines(string(data)) {
			if count, ok := strings.CutPrefix(strings.TrimSpace(line), "oom_kill "); ok {
				n, _ := strconv.ParseInt(count, 10, 64) // 0 where it is not a number
				return n
			}
		}
		if dir == "/" {
			return 0
		}
	}
}
