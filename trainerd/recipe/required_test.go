package recipe

import (
	"math/rand/v2"
	"regexp/syntax"
	"strings"
	"testing"
	"unicode"
)

// TestRequired makes lines that the forms of all recipes fit: each has what its form requires.
func TestRequired(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	matched, demanding := 0, 0
	for _, name := range Names() {
		r, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range r.Lines {
			re, err := syntax.Parse(expand(l.Form), syntax.Perl)
			if err != nil {
				t.Fatal(err)
			}
			if len(l.has) > 0 {
				demanding++
			}
			for range 200 {
				var text strings.Builder
				fit(&text, re, rnd)
				if !l.form.MatchString(text.String()) {
					continue // a word has no end where another begins
				}
				matched++
				if !l.has.in(text.String(), foldCase(text.String())) {
					t.Fatalf("%s fits %q, which lacks one of %v", l.Form, text.String(), l.has)
				}
			}
		}
	}
	if matched < 2000 || demanding < 50 {
		t.Errorf("%d lines were made, and %d forms require anything", matched, demanding)
	}
}

// fit writes a text that an expression fits, but for what comes before and after it.
func fit(text *strings.Builder, re *syntax.Regexp, rnd *rand.Rand) {
	times := 1
	switch re.Op {
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			for re.Flags&syntax.FoldCase != 0 && rnd.IntN(2) == 0 {
				r = unicode.SimpleFold(r)
			}
			text.WriteRune(r)
		}
		return
	case syntax.OpCharClass:
		at := 2 * rnd.IntN(len(re.Rune)/2)
		text.WriteRune(re.Rune[at] + rnd.Int32N(min(re.Rune[at+1]-re.Rune[at], 60)+1))
		return
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		text.WriteByte(" loss:0.5"[rnd.IntN(9)])
		return
	case syntax.OpAlternate:
		fit(text, re.Sub[rnd.IntN(len(re.Sub))], rnd)
		return
	case syntax.OpStar:
		times = rnd.IntN(4)
	case syntax.OpPlus:
		times = 1 + rnd.IntN(3)
	case syntax.OpQuest:
		times = rnd.IntN(2)
	case syntax.OpRepeat:
		times = re.Min + rnd.IntN(max(re.Max-re.Min, 0)+1)
	}
	for range times {
		for _, sub := range re.Sub {
			fit(text, sub, rnd)
		}
	}
}

// What may come in several ways is required in one of them.
func TestRequiredTexts(t *testing.T) {
	for _, tt := range []struct {
		form, text string
		want       bool
	}{
		{`(?i)epoch (\d+)`, "EPOCH 1", true},
		{`(?i)step (\d+)`, "ſtep 1", true},
		{`(?i)kl (\d+)`, "\u212aL 1", true},
		{`(?i)ς (\d+)`, "ς 1", true},
		{`(?i)ς (\d+)`, "σ 1", true},
		{`epoch (\d+)`, "EPOCH 1", false},
		{`(?:step|iter) \d+`, "iter 1", true},
		{`(?:step|iter) \d+`, "batch 1", false},
		{`(?:step|) \d+`, " 1", true},
		{`(?:loss)?x`, "x", true},
		{`(?:loss)*x`, "x", true},
		{`(?:loss){2,3}x`, "x", false},
		{`(?:loss){0,3}x`, "x", true},
		{`a.*\|`, "a b", false},
		{`.*`, "", true},
	} {
		if got := requiredBy(tt.form).in(tt.text, foldCase(tt.text)); got != tt.want {
			t.Errorf("%s may fit %q: %v, want %v", tt.form, tt.text, got, tt.want)
		}
	}
}
