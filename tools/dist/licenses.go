package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// licensesFile is where, below share, the licenses of what is linked into the commands
// are: most require that a program is passed on with their text.
const licensesFile = "doc/trainerd/third-party-licenses.txt"

var licenseName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|copyright|notice|patents)(\.(txt|md)|-[a-z0-9]+)?$`)

// writeLicenses writes the licenses of the Go library and of the modules that are
// linked into the commands of a target, each text once.
func (t *target) writeLicenses() error {
	holders, err := t.licenseFiles()
	if err != nil {
		return err
	}
	byText := map[string][]string{}
	var texts []string // in the order of their first holders
	for _, h := range holders {
		text, err := os.ReadFile(h.file)
		if err != nil {
			return err
		}
		key := string(bytes.TrimSpace(text))
		if byText[key] == nil {
			texts = append(texts, key)
		}
		byText[key] = append(byText[key], h.what)
	}
	var out strings.Builder
	out.WriteString("What is linked into trainerd, ckpt and tfevents, and under which licenses.\n")
	for _, text := range texts {
		fmt.Fprintf(&out, "\n=== %s\n\n%s\n", strings.Join(byText[text], "\n=== "), text)
	}
	file := filepath.Join(t.stage, "share", filepath.FromSlash(licensesFile))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(out.String()), 0o644)
}

// licenseFile is a file, and what it is the license of.
type licenseFile struct{ what, file string }

// licenseFiles returns those of all packages, sorted by what they are of. A folder
// within a module may have its own.
func (t *target) licenseFiles() ([]licenseFile, error) {
	const format = "{{with .Module}}{{if not .Main}}{{.Path}}@{{.Version}}\t{{.Dir}}\t{{$.Dir}}{{end}}{{end}}"
	packages, err := t.golang("list", "-deps", "-f", format, "./cmd/...")
	if err != nil {
		return nil, err
	}
	goroot, err := t.golang("env", "GOROOT")
	if err != nil {
		return nil, err
	}
	all := []licenseFile{{"the library of Go", filepath.Join(strings.TrimSpace(goroot), "LICENSE")}}
	licensed, roots := map[string]bool{}, map[string]string{}
	for line := range strings.Lines(packages) {
		parts := strings.Split(strings.TrimSpace(line), "\t")
		if len(parts) != 3 {
			continue // of the library, or ours
		}
		module, root, dir := parts[0], parts[1], parts[2]
		roots[module] = root
		for ; strings.HasPrefix(dir, root); dir = filepath.Dir(dir) {
			files, err := licensesIn(dir)
			if err != nil {
				return nil, err
			}
			rel, err := filepath.Rel(root, dir)
			if err != nil {
				return nil, err
			}
			for _, name := range files {
				all = append(all, licenseFile{path.Join(module, filepath.ToSlash(rel), name), filepath.Join(dir, name)})
			}
			licensed[module] = licensed[module] || len(files) > 0
		}
	}
	for module, ok := range licensed {
		if ok {
			continue
		}
		readme := filepath.Join(roots[module], "README.md") // some name their license nowhere else
		if text, err := os.ReadFile(readme); err != nil || !bytes.Contains(text, []byte("License")) {
			return nil, fmt.Errorf("%s has no license", module)
		}
		all = append(all, licenseFile{path.Join(module, "README.md"), readme})
	}
	slices.SortFunc(all, func(a, b licenseFile) int { return strings.Compare(a.what, b.what) })
	return slices.Compact(all), nil
}

func licensesIn(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !e.IsDir() && licenseName.MatchString(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// golang returns what the go command prints for the target.
func (t *target) golang(args ...string) (string, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Stderr = t.root, os.Stderr
	cmd.Env = environment(t.os, t.arch)
	text, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return string(text), nil
}
