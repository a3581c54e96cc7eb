package recipe

import (
	"os"
	"path/filepath"
	"strings"
)

// maxSource bounds the size of a script that is looked into.
const maxSource = 1 << 20

// Source returns the words of a command, and the text of the scripts among
// them, which say how the program resumes.
func Source(dir string, command []string) string {
	text := strings.Join(command, " ")
	for _, word := range command {
		if !filepath.IsAbs(word) {
			word = filepath.Join(dir, word)
		}
		info, err := os.Stat(word)
		if err != nil || !info.Mode().IsRegular() || info.Size() > maxSource {
			continue
		}
		if b, err := os.ReadFile(word); err == nil && isText(b) {
			text += "\n" + string(b)
		}
	}
	return text
}

// isText reports whether a file is a script, and not the program itself.
func isText(b []byte) bool { return !strings.Contains(string(b[:min(len(b), 512)]), "\x00") }
