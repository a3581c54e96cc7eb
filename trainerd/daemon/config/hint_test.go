package config

import "testing"

// What a shell takes for the home folder is none in a config.
func TestAfterHome(t *testing.T) {
	for text, want := range map[string]string{"~/a/b": "/a/b", "$HOME": "", "${HOME}/a": "/a", "~/": "/", "~": ""} {
		if rest, ok := afterHome(text); !ok || rest != want {
			t.Errorf("after the home folder in %q comes %q, %v; want %q", text, rest, ok, want)
		}
	}
	for _, text := range []string{"", "~ada/a", "./~/a", "$HOMES/a", "a/$HOME"} {
		if rest, ok := afterHome(text); ok {
			t.Errorf("%q is taken for the home folder, followed by %q", text, rest)
		}
	}
}
