//go:build unix

package world

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/trainerd/trainerd/internal/atomicfile"
)

// A saving is a way in which programs save: none of them syncs anything.
type saving struct {
	name, pattern string
	files         func(step int64) map[string]string // below the logdir
	rename        bool                               // under a temporary name first
	partial       bool                               // the first one may be there in part, which only the program can tell
	counted       bool                               // the names have the number of the save
	turns         int64                              // how many names take turns, 0 for no such
	epochs        bool                               // the numbers begin again with each epoch
}

var savings = []*saving{
	{name: "a file", pattern: "ckpt-*.safetensors", files: func(step int64) map[string]string {
		return map[string]string{fmt.Sprintf("ckpt-%d.safetensors", step): tensorsOf(step)}
	}},
	{name: "a file, renamed", pattern: "ckpt-*.safetensors", rename: true, files: func(step int64) map[string]string {
		return map[string]string{fmt.Sprintf("ckpt-%d.safetensors", step): tensorsOf(step)}
	}},
	{name: "a folder", pattern: "checkpoint-*", files: folderOf, partial: true},
	{name: "a folder, renamed", pattern: "checkpoint-*", files: folderOf, rename: true},
	{name: "a folder in a folder", pattern: "out/checkpoint-*", partial: true, files: func(step int64) map[string]string {
		files := map[string]string{}
		for name, text := range folderOf(step) {
			files["out/"+name] = text
		}
		return files
	}},
	{name: "one name, renamed", pattern: "last.safetensors", rename: true, files: func(step int64) map[string]string {
		return map[string]string{"last.safetensors": tensorsOf(step)}
	}},
}

// poison is what the weights have added once the loss is NaN.
const poison = 90_000_000

// tensorsOf returns a .safetensors file whose every sector tells its step.
func tensorsOf(step int64) string {
	data := strings.Repeat(fmt.Sprintf("%08d", step), 160)
	header := fmt.Sprintf(`{"w":{"dtype":"U8","shape":[%d],"data_offsets":[0,%d]}}`, len(data), len(data))
	return string(append(fmt.Appendf(nil, "%c\x00\x00\x00\x00\x00\x00\x00", len(header)), header+data...))
}

func folderOf(step int64) map[string]string {
	dir := fmt.Sprintf("checkpoint-%d/", step)
	return map[string]string{dir + "model.safetensors": tensorsOf(step), dir + "optim/optimizer.safetensors": tensorsOf(step + 1000),
		dir + "trainer_state.json": fmt.Sprintf(`{"step": %d}`, step)}
}

// hasSteps reports whether the names have the step.
func (s *saving) hasSteps() bool { return strings.Contains(s.pattern, "*") }

// filesOf returns the files of a save, by its number.
func (s *saving) filesOf(number, step int64) map[string]string {
	if !s.counted {
		return s.files(step)
	}
	files := map[string]string{}
	for name, text := range s.files(step) {
		if s.epochs {
			name = strings.Replace(name, fmt.Sprint("ckpt-", step), s.label(number), 1)
		} else {
			name = strings.Replace(name, fmt.Sprint("-", step), "-"+s.label(number), 1)
		}
		files[name] = text
	}
	return files
}

// topOf returns the name of a checkpoint that has files: that of the only one, or of their folder.
func topOf(files map[string]string) string {
	first := slices.Sorted(maps.Keys(files))[0]
	if !strings.Contains(first, "/") {
		return first
	}
	return filepath.Dir(strings.TrimSuffix(first, "/model.safetensors") + "/x")
}

// A share is which of the files of a checkpoint a part of a program writes.
type share struct{ rank, of int }

var whole = share{0, 1}

// save writes the files of the checkpoint of a step into a logdir, or a share of it, and takes
// its time for it. What it has is of another step when the training has gone wrong.
func (s *saving) save(p *process, dir string, files map[string]string, step, has int64, share share, pause func() error) error {
	top := topOf(files)
	to := top
	if s.rename {
		to += ".tmp"
	}
	if share == whole {
		if err := removeAll(p, filepath.Join(dir, to)); err != nil {
			return err
		}
	}
	for i, name := range slices.Sorted(maps.Keys(files)) {
		if i%share.of != share.rank {
			continue
		}
		if err := removeAll(p, filepath.Join(dir, to+strings.TrimPrefix(name, top))); err != nil {
			return err
		}
		text := files[name]
		if has != step {
			text = strings.ReplaceAll(text, fmt.Sprintf("%08d", step), fmt.Sprintf("%08d", has))
		}
		if err := writeSlowly(p, filepath.Join(dir, to+strings.TrimPrefix(name, top)), text, pause); err != nil {
			return err
		}
	}
	if !s.rename {
		return nil
	}
	return p.do(func(disk atomicfile.FS) error {
		if len(files) > 1 {
			if err := removeTree(disk, filepath.Join(dir, top)); err != nil {
				return err
			}
		}
		return disk.Rename(filepath.Join(dir, to), filepath.Join(dir, top))
	})
}

// removeAll removes what an earlier save has left under a name.
func removeAll(p *process, name string) error {
	return p.do(func(disk atomicfile.FS) error { return removeTree(disk, name) })
}

func removeTree(disk atomicfile.FS, top string) error {
	var names []string
	filepath.WalkDir(top, func(name string, _ fs.DirEntry, err error) error {
		if err == nil {
			names = append(names, name)
		}
		return nil
	})
	for _, name := range slices.Backward(names) {
		if err := disk.Remove(name); err != nil {
			return err
		}
	}
	return nil
}

// writeSlowly writes a file in two parts.
func writeSlowly(p *process, name, text string, pause func() error) error {
	var f atomicfile.File
	err := p.do(func(disk atomicfile.FS) (err error) {
		if err := mkdirAll(disk, filepath.Dir(name)); err != nil {
			return err
		}
		if f, err = disk.Create(name); err != nil {
			return err
		}
		return write(f, name, text[:len(text)/2])
	})
	if f == nil {
		return err
	}
	if err == nil {
		err = pause()
	}
	if err == nil {
		err = p.do(func(atomicfile.FS) error { return write(f, name, text[len(text)/2:]) })
	}
	return errors.Join(err, f.Close())
}

// write writes a part of a file, whose time is that of the history's clock, and so is
// that of its folders.
func write(f atomicfile.File, name, text string) error {
	_, err := f.Write([]byte(text))
	now := time.Now()
	dir := filepath.Dir(name)
	return errors.Join(err, os.Chtimes(name, now, now), os.Chtimes(dir, now, now), os.Chtimes(filepath.Dir(dir), now, now))
}

func mkdirAll(disk atomicfile.FS, dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := mkdirAll(disk, filepath.Dir(dir)); err != nil {
		return err
	}
	if err := disk.Mkdir(dir); !errors.Is(err, fs.ErrExist) { // another part of the program may have made it
		return err
	}
	return nil
}

// stepInFile returns the step that a checkpoint has.
func stepInFile(name string) (step int64, err error) {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		name = filepath.Join(name, "model.safetensors")
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	_, err = fmt.Sscanf(string(text[max(len(text)-8, 0):]), "%08d", &step)
	return step, err
}

var errPartial = errors.New("the checkpoint is there in part")

// load reads the step of a checkpoint, and wants all of its bytes.
func (s *saving) load(name, logdir string) (step int64, err error) {
	file := name
	if info, err := os.Stat(name); err != nil {
		return 0, err
	} else if info.IsDir() {
		file = filepath.Join(name, "model.safetensors")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, errPartial
	}
	if len(text) < 8 {
		return 0, broke("%s has %d bytes", file, len(text))
	}
	if _, err := fmt.Sscanf(string(text[len(text)-8:]), "%08d", &step); err != nil {
		return 0, broke("%s is damaged: %w", file, err)
	}
	if step >= poison {
		return 0, broke("%s was saved after the loss was NaN", file)
	}
	for name, want := range s.filesOf(s.numberOf(name), step) {
		got, err := os.ReadFile(filepath.Join(logdir, name))
		if errors.Is(err, fs.ErrNotExist) {
			return 0, errPartial
		}
		if err != nil || string(got) != want {
			return 0, broke("%s is damaged: %v", name, err)
		}
	}
	return step, nil
}
