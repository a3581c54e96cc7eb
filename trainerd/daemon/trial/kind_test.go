package trial

import (
	"testing"

	"github.com/trainerd/trainerd/trainerd/recipe"
)

// TestKindOf has lines of one recipe, of one that includes another, and of several.
func TestKindOf(t *testing.T) {
	for _, tc := range []struct {
		lines map[string]int
		want  string
	}{
		{map[string]int{}, ""},
		{map[string]int{"plain": 9}, "plain"},
		{map[string]int{"torchrun": 2, "plain": 14}, "torchrun"}, // as fairseq's
		{map[string]int{"jax": 1, "plain": 3}, "jax"},
		{map[string]int{"keras": 30}, "keras"},
		{map[string]int{"keras": 30, "plain": 1}, recipe.Auto},
		{map[string]int{"torchrun": 2, "jax": 1, "plain": 3}, recipe.Auto},
	} {
		if got := kindOf(tc.lines); got != tc.want {
			t.Errorf("%v: %q, want %q", tc.lines, got, tc.want)
		}
		w := &witness{recipes: tc.lines}
		f := &Findings{}
		if w.tell(f); f.Recipe != tc.want {
			t.Errorf("%v: found %q, want %q", tc.lines, f.Recipe, tc.want)
		}
	}
}

// TestKindReads has the lines of fairseq, in a start that continues after three epochs: the
// recipe gives them the steps that the trial has seen.
func TestKindReads(t *testing.T) {
	text := []string{
		"2026-11-27 11:31:53 | INFO | train_inner | epoch 004:     5 / 10 loss=0.015, ppl=1.01, num_updates=35, lr=1e-05",
		"2026-11-27 11:31:54 | INFO | valid | epoch 004 | valid on 'valid' subset | loss 0.016 | ppl 1.01 | num_updates 35",
		"2026-11-27 11:31:54 | INFO | train | epoch 004 | loss 0.016 | ppl 1.01 | num_updates 40",
	}
	read := func(name string) (steps []int64, lines map[string]int) {
		r, err := recipe.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		lines = map[string]int{}
		reader := r.NewReader(3)
		for _, line := range text {
			if p := reader.Read(line); p != nil {
				lines[p.Recipe]++
				steps = append(steps, p.Step)
			}
		}
		return steps, lines
	}
	want, lines := read(recipe.Auto)
	got, _ := read(kindOf(lines))
	if len(want) != len(text) || len(got) != len(want) {
		t.Fatalf("%d and %d points", len(want), len(got))
	}
	for i := range want {
		if got[i] != want[i] || got[i] < 35 {
			t.Errorf("%s\nat step %d, want %d", text[i], got[i], want[i])
		}
	}
}
