package recipe

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// BenchmarkRead reads lines that say nothing of a training, and one that does.
func BenchmarkRead(b *testing.B) {
	noise := make([]byte, 256)
	for i := range noise {
		noise[i] = byte(rand.IntN(256))
	}
	lines := map[string]string{
		"words":  "INFO: the quick brown fox jumps over the lazy dog and then some more of it",
		"digits": "2026-11-28 05:28:21,123 DEBUG worker-3 fetched shard 00017-of-00128 from cache in 12.5 ms",
		"bytes":  strings.ReplaceAll(string(noise), "\n", " "),
		"step":   "step 100 | loss 0.123 | lr 1e-4",
	}
	auto, err := Load("auto")
	if err != nil {
		b.Fatal(err)
	}
	for name, line := range lines {
		b.Run(name, func(b *testing.B) {
			r := auto.NewReader(0)
			for b.Loop() {
				r.Read(line)
			}
		})
	}
}
