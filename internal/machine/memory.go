// Package machine reports the resources of the machine.
package machine

import (
	"bufio"
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Memory returns how many bytes of memory this process may use: all of the machine's, or
// the limit of its control group; math.MaxInt64 if that is unknown.
func Memory() int64 {
	return min(machineMemory("/proc/meminfo"), cgroupMemory("/proc/self/cgroup", "/sys/fs/cgroup"))
}

// machineMemory returns the memory of the machine, or MaxInt64.
func machineMemory(meminfo string) int64 {
	data, err := os.ReadFile(meminfo)
	if err != nil {
		return math.MaxInt64
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		rest, ok := strings.CutPrefix(lines.Text(), "MemTotal:")
		if !ok {
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(rest, "kB")), 10, 64)
		if err != nil || kib <= 0 || kib > math.MaxInt64>>10 {
			break
		}
		return kib << 10
	}
	return math.MaxInt64
}

// cgroupMemory returns the least limit of the control groups, version 2 or 1, that the
// process is in, or MaxInt64.
func cgroupMemory(self, root string) int64 {
	least := int64(math.MaxInt64)
	for _, g := range memoryGroups(self, root) {
		least = min(least, limitUpwards(g.root, g.path, g.limit))
	}
	return least
}

// limitUpwards returns the least limit of a group and those that it is part of. In a
// container its path may be one of the host, whose folders are not there.
func limitUpwards(root, group, file string) int64 {
	least := int64(math.MaxInt64)
	for dir := filepath.Clean("/" + group); ; dir = filepath.Dir(dir) {
		if data, err := os.ReadFile(filepath.Join(root, dir, file)); err == nil {
			if n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64); err == nil && n > 0 {
				least = min(least, n)
			}
		}
		if dir == "/" {
			return least
		}
	}
}
