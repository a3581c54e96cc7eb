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
