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
	for _, word := range scripts(command) {
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

// scripts returns the words of a command that may be scripts, with the files of the modules
// that Python runs by -m.
func scripts(command []string) (words []string) {
	for i, word := range command {
		words = append(words, word)
		if i > 0 && command[i-1] == "-m" {
			module := filepath.Join(strings.Split(word, ".")...)
			words = append(words, module+".py", filepath.Join(module, "__main__.py"))
		}
	}
	return words
}

// isText reports whether a file is a script, and not the program itself.
func isText(b []byte) bool { return !strings.Contains(string(b[:min(len(b), 512)]), "\x00") }
