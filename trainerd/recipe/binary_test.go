package recipe

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// TestBinaryLines has a program write data to its output: no number is looked for in
// them. Text has a few control characters.
func TestBinaryLines(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	missed := 0
	for range 1000 {
		line := make([]byte, 256)
		for i := range line {
			line[i] = byte(random.UintN(256))
		}
		if !isBinary(string(line)) {
			missed++
		}
	}
	if missed > 0 {
		t.Errorf("%d of 1000 random lines are text", missed)
	}
	for _, line := range []string{
		"", "step 10 loss 0.5", "\x1b[32mstep 10\x1b(B\x0f loss 0.5\x07", "\x01\x1b[0m\x02step 10 loss 0.5", "\x00\x00\x00\x00\x00step 10 loss 0.5",
		"\b\b\b\b\bstep 10\tloss 0.5", "sch\xf6n: step 10 loss 0.5", "Schritt 10 \u2588\u2588\u2588 loss 0.5", strings.Repeat("\x1b[A\x1b[2K\r", 9) + "step 10 loss 0.5",
	} {
		if isBinary(line) {
			t.Errorf("%q is binary", line)
		}
	}
	if p := load1(t, Auto).NewReader(0).Read("\x01\x02\x03\x04 step 10 loss 0.5"); p != nil {
		t.Errorf("data have a point: %+v", p)
	}
}
