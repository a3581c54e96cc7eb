package state

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

var ioOps = exec.OpTable{
	"ReadFile":      {Flags: exec.Stateful, Build: exec.WithoutAttrs(readFile)},
	"WriteFile":     {Flags: exec.Stateful, Build: exec.WithoutAttrs(writeFile)},
	"MatchingFiles": {Flags: exec.Stateful, Build: exec.WithoutAttrs(matchingFiles)},
}

func readFile(c *exec.KernelContext) error {
	name, err := c.StringScalar(0, "the file name")
	if err != nil {
		return err
	}
	path, err := c.ResolvePath(name)
	if err != nil {
		return c.FileError(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return c.FileError(err)
	}
	c.Out(0, exec.String).Strings[0] = data
	return nil
}

func writeFile(c *exec.KernelContext) error {
	name, err := c.StringScalar(0, "the file name")
	if err != nil {
		return err
	}
	data, err := c.StringScalar(1, "the contents")
	if err != nil {
		return err
	}
	path, err := c.ResolvePath(name)
	if err != nil {
		return c.FileError(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return c.FileError(err)
	}
	if err := os.WriteFile(path, []byte(data), 0o666); err != nil {
		return c.FileError(err)
	}
	return nil
}

func matchingFiles(c *exec.KernelContext) error {
	var found []string
	for _, p := range c.In(0).Strings {
		names, err := c.MatchingFiles(string(p))
		if err != nil {
			return err
		}
		found = append(found, names...)
	}
	slices.Sort(found)
	d := c.Out(0, exec.String, len(found))
	for i, name := range found {
		d.Strings[i] = []byte(name)
	}
	return nil
}
