package integrity

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/trainerd/trainerd/internal/lazyregexp"
)

// checkIndexes looks for the shards that an index of transformers names.
func (x *checker) checkIndexes(dir string, own, all []string) error {
	for _, name := range own {
		if !strings.HasSuffix(name, ".index.json") {
			continue
		}
		b, err := x.read(path.Join(dir, name))
		if err != nil {
			return err
		}
		var index struct {
			Weights map[string]string `json:"weight_map"`
		}
		if err := unmarshal(b, &index); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for tensor, shard := range index.Weights {
			if !slices.Contains(all, path.Join(dir, shard)) {
				return fmt.Errorf("%s names %s for %s, which is missing", name, shard, tensor)
			}
		}
	}
	return nil
}

var numberedShard = lazyregexp.New(`^(.*?)-?(\d{5})-of-(\d{5})(\..*)$`)

// checkNumbered looks whether of shards 00001-of-00003 all are there, and the
// index that transformers writes after them.
func checkNumbered(_ string, own, _ []string) error {
	seen := map[string]int{}
	for _, name := range own {
		m := numberedShard().FindStringSubmatch(name)
		if m == nil || bundleFile().MatchString(name) {
			continue
		}
		seen[m[1]+"\x00"+m[3]+"\x00"+m[4]]++
	}
	for key, n := range seen {
		parts := strings.Split(key, "\x00")
		want, _ := strconv.Atoi(parts[1])
		if n < want {
			return fmt.Errorf("%d of %d files %s-NNNNN-of-%s%s are missing", want-n, want, parts[0], parts[1], parts[2])
		}
		if index := parts[0] + parts[2] + ".index.json"; (parts[0] == "model" || parts[0] == "pytorch_model") && !slices.Contains(own, index) {
			return fmt.Errorf("%s is missing, which is written after the shards", index)
		}
	}
	return nil
}
