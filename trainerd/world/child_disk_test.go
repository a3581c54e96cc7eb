//go:build unix

package world

import (
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
)

// watchedDisk is the disk as a machine has it: at a power cut all dies.
type watchedDisk struct {
	*faultfs.FS
	l    *childLife
	host *machine
}

func (d watchedDisk) see(err error) error {
	if errors.Is(err, faultfs.ErrKilled) {
		d.l.dieAll()
	}
	return err
}

// FreeSpace returns how much room the disk has.
func (d watchedDisk) FreeSpace(string) (int64, error) {
	if d.l.isFull() {
		return 0, nil
	}
	return 1 << 40, nil
}

// isFull reports whether the disk has no room left.
func (l *childLife) isFull() bool {
	return l.fault.Lasting && errors.Is(l.fault.Err, syscall.ENOSPC) && !l.healed.Load() && l.fs.Failed() != ""
}

// makesNoFolder reports whether the disk is full, as far as new folders go.
func (l *childLife) makesNoFolder() bool {
	return l.fault.Lasting && !l.healed.Load() && l.fs.FailedKind() == "mkdir"
}

func (d watchedDisk) Create(name string) (atomicfile.File, error) {
	d.l.unsynced.remove(name)
	f, err := d.FS.Create(name)
	if err != nil {
		return nil, d.see(err)
	}
	return watchedFile{f, d, name}, nil
}

func (d watchedDisk) Rename(from, to string) error {
	err := d.FS.Rename(from, to)
	if err == nil {
		d.l.unsynced.rename(from, to)
	}
	return d.see(err)
}

func (d watchedDisk) Remove(name string) error {
	d.l.unsynced.remove(name)
	return d.see(d.FS.Remove(name))
}

func (d watchedDisk) SyncFile(name string) error {
	if d.l.isFull() && d.l.unsynced.isDurable(name) {
		return nil // it takes no room
	}
	err := d.FS.SyncFile(name)
	if err == nil {
		d.l.unsynced.sync(name)
	}
	return d.see(err)
}

func (d watchedDisk) Mkdir(name string) error   { return d.see(d.FS.Mkdir(name)) }
func (d watchedDisk) SyncDir(name string) error { return d.see(d.FS.SyncDir(name)) }

// watchedFile is a file of a watchedDisk.
type watchedFile struct {
	atomicfile.File
	disk watchedDisk
	name string
}

func (f watchedFile) Write(b []byte) (int, error) {
	n, err := f.File.Write(b)
	f.disk.l.unsynced.write(f.name, f.disk.host, n)
	return n, f.disk.see(err)
}

func (f watchedFile) Sync() error {
	err := f.File.Sync()
	if err == nil {
		f.disk.l.unsynced.sync(f.name)
	}
	return f.disk.see(err)
}

// killableDisk is the disk as a trainerd has it, which may be killed at an operation, or
// have to wait, or be refused.
type killableDisk struct {
	watchedDisk
	n *childNode
}

// next counts an operation.
func (d killableDisk) next(name string) error {
	if d.n.ops.Add(1) == d.n.killAt {
		d.n.die()
	}
	time.Sleep(d.host.frozenFor())
	if d.n.isDead() {
		return faultfs.ErrKilled
	}
	return d.n.refuses(name)
}

func (d killableDisk) Create(name string) (atomicfile.File, error) {
	if err := d.next(name); err != nil {
		return nil, err
	}
	f, err := d.watchedDisk.Create(name)
	if err != nil {
		return nil, err
	}
	return killableFile{f, d, name}, nil
}

func (d killableDisk) Rename(from, to string) error {
	err := cmpErr(d.next(to), func() error { return d.watchedDisk.Rename(from, to) })
	if err == nil && isJobFile(to) {
		d.n.published(to)
	}
	return err
}

func (d killableDisk) Remove(name string) error {
	return cmpErr(d.next(name), func() error { return d.watchedDisk.Remove(name) })
}

func (d killableDisk) Mkdir(name string) error {
	return cmpErr(d.next(name), func() error { return d.watchedDisk.Mkdir(name) })
}

func (d killableDisk) SyncDir(name string) error {
	return cmpErr(d.next(name), func() error { return d.watchedDisk.SyncDir(name) })
}

func (d killableDisk) SyncFile(name string) error {
	return cmpErr(d.next(name), func() error { return d.watchedDisk.SyncFile(name) })
}

type killableFile struct {
	atomicfile.File
	disk killableDisk
	name string
}

func (f killableFile) Write(b []byte) (n int, err error) {
	return n, cmpErr(f.disk.next(f.name), func() error { n, err = f.File.Write(b); return err })
}

func (f killableFile) Sync() error { return cmpErr(f.disk.next(f.name), f.File.Sync) }

// cmpErr returns an error, or that of what is done without one.
func cmpErr(err error, do func() error) error {
	if err != nil {
		return err
	}
	return do()
}

// unflushed says how much of each file only the machine which has written it has: what was
// not synced is lost with its power, as on a share.
type unflushed struct {
	mu    sync.Mutex
	files map[string]*written
}

// A written is what is known of a file.
type written struct {
	host         *machine
	size, synced int
}

// at returns what is known of a file. The caller holds mu.
func (u *unflushed) at(name string) *written {
	if u.files == nil {
		u.files = map[string]*written{}
	}
	if u.files[name] == nil {
		u.files[name] = &written{}
	}
	return u.files[name]
}

// write says that a machine has written to a file.
func (u *unflushed) write(name string, host *machine, n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	f := u.at(name)
	f.host, f.size = host, f.size+n
}

// sync says that a file was synced.
func (u *unflushed) sync(name string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	f := u.at(name)
	f.synced = f.size
}

// isDurable reports whether all of a file was synced.
func (u *unflushed) isDurable(name string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	f := u.at(name)
	return f.synced == f.size
}

// forget forgets all files: what is left of them is durable.
func (u *unflushed) forget() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.files = nil
}

// remove forgets a file.
func (u *unflushed) remove(name string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.files, name)
}

// rename gives a file, or those in a folder, another name.
func (u *unflushed) rename(from, to string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.files, to)
	for name, f := range maps.Clone(u.files) {
		if below, is := strings.CutPrefix(name, from); is && (below == "" || below[0] == '/') {
			delete(u.files, name)
			u.files[to+below] = f
		}
	}
}

// of returns the files that only a machine has a part of, and how much others have.
func (u *unflushed) of(host *machine) map[string]int {
	u.mu.Lock()
	defer u.mu.Unlock()
	synced := map[string]int{}
	for name, f := range u.files {
		if f.host == host && f.synced < f.size {
			synced[name] = f.synced
		}
	}
	return synced
}

// losePower has a machine lose what was not synced of its files: all of it, all but a
// prefix, or all but zeros.
func (n *childNode) losePower() error {
	rnd, synced := n.plan.source("power of a node"), n.unsynced.of(n.host)
	n.set(func() { n.unsure = true })
	for _, name := range slices.Sorted(maps.Keys(synced)) {
		info, err := os.Stat(name)
		if err != nil {
			continue // it was removed meanwhile
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		kept, lost := text[:min(synced[name], len(text))], text[min(synced[name], len(text)):]
		left := [][]byte{nil, lost[:rnd.IntN(len(lost)+1)], make([]byte, len(lost))}[rnd.IntN(3)]
		err = atomicfile.WriteFile(n.fs, name, slices.Concat(kept, left))
		if err != nil && n.fs.Failed() != "" {
			continue // a disk that is full, or fails, has it as it is
		}
		if err != nil {
			return err
		}
		n.unsynced.sync(name)
		os.Chtimes(name, info.ModTime(), info.ModTime())
	}
	return nil
}
