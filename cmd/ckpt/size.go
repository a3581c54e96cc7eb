package main

import (
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"
)

// units are those of sizes, as the libraries of Hugging Face take them.
var units = []struct {
	name  string
	bytes int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}, {"", 1}}

// sizeFlag returns the bytes of a flag such as 5GB, or 0 where it is not given.
func sizeFlag(c *cli.Context, name string) (int64, error) {
	text := c.String(name)
	if text == "" {
		return 0, nil
	}
	for _, u := range units {
		number, ok := strings.CutSuffix(strings.ToLower(text), strings.ToLower(u.name))
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
		if err != nil || n <= 0 || n > 1<<62/u.bytes {
			break
		}
		return n * u.bytes, nil
	}
	return 0, usagef("--%s takes a size such as 5GB or 500MiB, not %q", name, text)
}
