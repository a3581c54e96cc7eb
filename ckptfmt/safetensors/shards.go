package safetensors

import (
	"fmt"
	"slices"

	"github.com/trainerd/trainerd/ckptfmt"
)

// SplitShards splits a list of tensors into files of at most size bytes of elements,
// in their order. A larger tensor gets its own file.
func SplitShards(parts []ckptfmt.Part, size int64) ([][]ckptfmt.Part, error) {
	var shards [][]ckptfmt.Part
	left := int64(0)
	for _, p := range parts {
		n, err := p.Size()
		if err != nil {
			return nil, err
		}
		if len(shards) == 0 || n > left {
			shards, left = append(shards, nil), size
		}
		last := len(shards) - 1
		shards[last] = append(shards[last], p)
		left -= n
	}
	return shards, nil
}

// Index returns the content of the index of shards, each of which is in the file of
// that name.
func Index(shards [][]ckptfmt.Part, files []string) ([]byte, error) {
	total := int64(0)
	where := make(map[string]string)
	var names []string
	for i, shard := range shards {
		for _, p := range shard {
			n, err := p.Size()
			if err != nil {
				return nil, err
			}
			if _, twice := where[p.Name]; twice {
				return nil, fmt.Errorf("%w: %q", ckptfmt.ErrExists, p.Name)
			}
			total += n
			where[p.Name] = files[i]
			names = append(names, p.Name)
		}
	}
	slices.Sort(names)
	b := fmt.Appendf(nil, "{\n  \"metadata\": {\n    \"total_size\": %d\n  },\n  \"weight_map\": {", total)
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(append(b, "\n    "...), name), ": "...)
		b = appendString(b, where[name])
	}
	return append(b, "\n  }\n}\n"...), nil
}
