package cliargs

import (
	"fmt"
	"strconv"
	"strings"
)

// units are those of sizes, as the libraries of Hugging Face take them.
var units = []struct {
	name  string
	bytes int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}, {"", 1}}

// Size returns the bytes that a size such as 5GB or 500MiB means. It is never 0.
func Size(text string) (int64, error) {
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
	return 0, fmt.Errorf("want a size such as 5GB or 500MiB, not %q", text)
}
