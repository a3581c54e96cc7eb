package terminal

import "testing"

func TestShown(t *testing.T) {
	for name, want := range map[string]string{
		"logs/a b": "logs/a b", "größe": "größe", "": `""`, "new\nline": `"new\nline"`, "\x1b[2Jgone": `"\x1b[2Jgone"`,
		"old\xff": `"old\xff"`, " blank": `" blank"`, `quote"`: `quote"`,
	} {
		if got := Shown(name); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
}

func TestPlain(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "größe: \"x\"\n\tb": "größe: \"x\"\n\tb", "a\x1b[2Jb\r": `a\x1b[2Jb\r`, "old\xff.": `old\xff.`, "\u009b2J": `\u009b2J`, "\u202eabc": `\u202eabc`,
	} {
		if got := Plain(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
