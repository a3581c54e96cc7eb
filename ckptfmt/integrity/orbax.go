package integrity

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// checkOrbax looks for the marks of a checkpoint of orbax that is complete.
func (x *checker) checkOrbax(dir string, own, all []string) error {
	if slices.Contains(own, "_CHECKPOINT_METADATA") {
		b, err := x.read(path.Join(dir, "_CHECKPOINT_METADATA"))
		if err != nil {
			return err
		}
		var meta map[string]any
		if err := unmarshal(b, &meta); err != nil {
			return fmt.Errorf("_CHECKPOINT_METADATA: %w", err)
		}
		if at, ok := meta["commit_timestamp_nsecs"]; ok && at == nil {
			return errors.New("_CHECKPOINT_METADATA has no time of a commit: orbax has not finished writing it")
		}
	}
	ocdbt := slices.ContainsFunc(all, func(name string) bool { return strings.HasPrefix(name, dir+"/ocdbt.process_") })
	if ocdbt && !slices.Contains(own, "manifest.ocdbt") {
		return errors.New("manifest.ocdbt is missing, which orbax writes last")
	}
	if slices.Contains(own, "manifest.ocdbt") && slices.Contains(own, "_sharding") && !slices.Contains(own, "_METADATA") {
		return errors.New("_METADATA is missing")
	}
	return nil
}
