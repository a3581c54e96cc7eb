package checkpoint

import (
	"path/filepath"
	"slices"
	"strings"
)

// MoveTo changes the folder of the checkpoints that the Saver manages. Those that do not exist
// there are forgotten, and all of them if to is "".
func (s *Saver) MoveTo(from, to string) {
	s.mu.Lock()
	var prefixes []string
	for _, k := range slices.Concat(s.pendingDelete, s.kept) {
		if below, ok := strings.CutPrefix(k.prefix, from+string(filepath.Separator)); ok && to != "" {
			prefixes = append(prefixes, filepath.Join(to, below))
		}
	}
	s.pendingDelete, s.last, s.outside = nil, "", nil // by old names
	s.mu.Unlock()
	s.RecoverLastCheckpoints(prefixes)
}
