//go:build unix

package world

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/trainerd/trainerd/internal/atomicfile"
)

// A secondName is how a program names its newest checkpoint once more, next to it.
type secondName int

const (
	noSecondName secondName = iota
	pointerName             // a file that has the name
	symbolicName            // a link to it
	hardName                // a link to its only file, or its weights
	pathName                // a file that has the whole path
	numberName              // a file that has the number in the name
	copyName                // a copy of its only file, which a kill may cut short
)

// nameOtherwise has some programs number their checkpoints by saves, or give the newest a
// second name.
func (p *childPlan) nameOtherwise(rnd *rand.Rand) {
	if p.way == nil || !p.way.hasSteps() {
		return
	}
	if rnd.IntN(4) == 0 {
		way := *p.way
		way.counted, way.name = true, way.name+", numbered by saves"
		p.way, p.signal = &way, ""
		p.every = 5 + rnd.Int64N(8) // else the numbers look like steps
	}
	if rnd.IntN(3) == 0 {
		p.second = secondName(1 + rnd.IntN(3))
	}
	if p.second == pointerName {
		p.second = []secondName{pointerName, pathName, numberName}[p.source("pointers").IntN(3)]
	}
}

// copyNewest has some programs keep a copy of their newest checkpoint, as Lightning's last.ckpt.
func (p *childPlan) copyNewest(rnd *rand.Rand) {
	if p.way == nil || !p.way.hasSteps() || len(p.way.files(1)) != 1 || rnd.IntN(2) == 0 {
		return
	}
	p.second = copyName
	for i := range p.lives {
		if rnd.IntN(2) == 0 {
			p.lives[i].event = together(p.lives[i].event, tornCopy)
		}
	}
}

// tornCopy has a program be killed while it makes its next copy.
var tornCopy = &event{name: "program is killed in a copy", fails: true, program: func(p *program) error { p.tears = true; return nil }}

// secondFile is the second name in a logdir.
func (p *childPlan) secondFile(dir string) string {
	name := "latest"
	switch p.second {
	case pathName:
		name = "last.txt"
	case numberName:
		name = "latest_checkpointed_iteration.txt"
	case copyName:
		name = "last.safetensors"
	}
	return filepath.Join(dir, filepath.Dir(p.way.pattern), name)
}

// leadsTo returns what the second name in a logdir leads to.
func (p *childPlan) leadsTo(dir string) (string, error) {
	name := p.secondFile(dir)
	if p.second == symbolicName {
		text, err := os.Readlink(name)
		return filepath.Join(filepath.Dir(name), text), err
	}
	if p.second == hardName || p.second == copyName {
		return name, nil
	}
	b, err := os.ReadFile(name)
	switch text := strings.TrimSpace(string(b)); p.second {
	case pathName:
		return text, err
	case numberName:
		return filepath.Join(dir, strings.Replace(p.way.pattern, "*", text, 1)), err
	default:
		return filepath.Join(filepath.Dir(name), text), err
	}
}

// nameAgain gives a checkpoint that is whole the second name.
func (p *program) nameAgain(top string) error {
	if p.plan.second == noSecondName {
		return nil
	}
	to, name := filepath.Join(p.dir, top), p.plan.secondFile(p.dir)
	if p.plan.second == copyName {
		return p.copyTo(name, to)
	}
	temp := name + ".part"
	err := p.do(func(disk atomicfile.FS) error {
		if err := disk.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := p.plan.second.make(disk, to, temp); err != nil {
			return err
		}
		return disk.Rename(temp, name)
	})
	if err == nil {
		p.set(func() { p.named, p.unsure = p.has, p.poisoned })
	}
	return err
}

// copyTo copies a checkpoint that is one file. From when it is there in part, it is trainerd's to
// mend.
func (p *program) copyTo(name, from string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	p.set(func() { p.named, p.unsure = p.has, true })
	if err := removeAll(p.process, name); err != nil {
		return err
	}
	return writeSlowly(p.process, name, string(text), func() error {
		p.set(func() { p.unsure = false })
		if p.tears {
			return &programEnd{code: -1, sig: sigKill}
		}
		return p.sleep(p.plan.saveTime)
	})
}

// make makes a file that is a name of a checkpoint.
func (s secondName) make(disk atomicfile.FS, to, name string) error {
	switch s {
	case symbolicName:
		return os.Symlink(filepath.Base(to), name)
	case hardName:
		return atomicfile.Link(disk, weightsOf(to), name)
	}
	f, err := disk.Create(name)
	if err != nil {
		return err
	}
	text := filepath.Base(to)
	switch s {
	case pathName:
		text = to
	case numberName:
		text = fmt.Sprint(stepOfName(to))
	}
	return errors.Join(write(f, name, text+"\n"), f.Close())
}

// weightsOf returns the file of a checkpoint that has its weights.
func weightsOf(name string) string {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return filepath.Join(name, "model.safetensors")
	}
	return name
}

// judgeSecondName wants the second name to be that of an intact checkpoint when the program
// begins: not older than the program has named, or is given.
func (p *program) judgeSecondName() error {
	name := p.plan.secondFile(p.dir)
	if p.plan.second == noSecondName || p.lossy || p.isUnsure() || p.isKilled() {
		return nil
	}
	if _, err := os.Lstat(name); err != nil && (p.plan.second != copyName || p.lastNamed() <= 0) {
		return nil
	}
	if p.plan.second == copyName && p.env["TRAINERD_CHECKPOINT"] == "" {
		return nil // it may be cut short, and there is nothing to make another of
	}
	to, err := p.plan.leadsTo(p.dir)
	if err != nil {
		return broke("the second name of a checkpoint: %w", err)
	}
	step, err := p.loadNamed(to)
	if p.isKilled() || errors.Is(err, errPartial) && p.plan.way.partial && p.mayBePart() {
		return nil
	}
	if err != nil {
		return broke("the second name leads to %s: %w", to, err)
	}
	least := p.lastNamed()
	if given := p.env["TRAINERD_CHECKPOINT"]; given != "" {
		if has, err := stepInFile(given); err == nil {
			least = min(least, has)
		}
	}
	if step < least {
		return broke("the second name leads to step %d; the program had named step %d", step, least)
	}
	return nil
}

// loadNamed returns the step of a checkpoint that has a second name.
func (p *program) loadNamed(name string) (step int64, err error) {
	if p.plan.second != hardName && p.plan.second != copyName {
		return p.plan.way.load(name, p.dir)
	}
	step, err = stepInFile(name)
	switch text, _ := os.ReadFile(name); {
	case err != nil:
		return 0, err
	case string(text) != tensorsOf(step):
		return 0, broke("it is damaged")
	case step >= poison:
		return 0, broke("it was saved after the loss was NaN")
	}
	return step, nil
}

func (l *childLife) isUnsure() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.unsure
}

func (l *childLife) lastNamed() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.named
}

// namesOlder reports whether the second name is that of an older checkpoint than the newest.
func (h *childHistory) namesOlder(newest int64) bool {
	to, err := h.plan.leadsTo(h.dir)
	if err != nil {
		return false
	}
	step, err := stepInFile(to)
	return err == nil && step%poison != newest
}
