package faultfs

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// sector is the piece of a file that a disk writes whole or not at all.
const sector = 512

// Disk is a model of a disk: what is on it for certain, and what may be.
type Disk struct {
	root    string
	names   map[string]*node // as the system shows them, below root
	durable map[string]*node
	// pending are the changes of names since the last sync of each directory.
	pending []change
	open    map[*handle]*node
	marked  int64
}

// node is a file or a directory.
type node struct {
	dir          bool
	data, synced []byte
	everSynced   bool
	foreign      bool // written by another process: what is known of it is what was synced
}

// change is one change of a name: it gives a file the name or, with a nil file, takes the name
// away. A rename is a change of two names at once; a directory's rename includes its contents.
type change struct {
	dir   string
	apply map[string]*node
	moved [2]string // a directory's old and new name, "" for none
}

// NewDisk returns a disk on which the files of a state are durable, below the
// directory root. The zero State has none.
func NewDisk(root string, s State) *Disk {
	d := &Disk{root: root, names: map[string]*node{}, durable: map[string]*node{}, open: map[*handle]*node{}, marked: s.Marked}
	for _, dir := range s.Dirs {
		d.durable[filepath.Join(root, dir)] = &node{dir: true}
	}
	for name, data := range s.Files {
		d.durable[filepath.Join(root, name)] = &node{data: data, synced: data, everSynced: true}
	}
	d.names = maps.Clone(d.durable)
	return d
}

// Killed returns the disk below another root, as it is when only the process
// was killed: what was not synced still is not.
func (d *Disk) Killed(root string) *Disk {
	copies := make(map[*node]*node)
	move := func(names map[string]*node) map[string]*node {
		moved := make(map[string]*node, len(names))
		for name, n := range names {
			if n != nil && copies[n] == nil {
				c := *n
				copies[n] = &c
			}
			moved[root+strings.TrimPrefix(name, d.root)] = copies[n]
		}
		return moved
	}
	k := &Disk{root: root, names: move(d.names), durable: move(d.durable), open: map[*handle]*node{}, marked: d.marked}
	for _, c := range d.pending {
		other := func(name string) string {
			if name == "" {
				return ""
			}
			return root + strings.TrimPrefix(name, d.root)
		}
		k.pending = append(k.pending, change{other(c.dir), move(c.apply), [2]string{other(c.moved[0]), other(c.moved[1])}})
	}
	return k
}

// Marked returns the last number of [FS.Mark].
func (d *Disk) Marked() int64 { return d.marked }

// Replay carries out the operations of a file system on the disk, and yields
// the number of each that changed something.
func (f *FS) Replay(d *Disk) iter.Seq[int] {
	f.mu.Lock()
	log := slices.Clone(f.log)
	f.mu.Unlock()
	return func(yield func(int) bool) {
		for i, o := range log {
			if o.void {
				continue
			}
			d.do(o)
			if !yield(i + 1) {
				return
			}
		}
	}
}

func (d *Disk) do(o op) {
	dir := filepath.Dir(o.name)
	switch o.kind {
	case create:
		n := new(node)
		d.open[o.file] = n
		d.change(dir, map[string]*node{o.name: n})
	case mkdir:
		d.change(dir, map[string]*node{o.name: {dir: true}})
	case write:
		n := d.file(o)
		n.data = slices.Concat(n.data, o.data)
	case syncFile:
		n := d.file(o)
		if n.data == nil || n.foreign {
			n.data, n.foreign = o.data, true
		}
		n.synced, n.everSynced = n.data, true
	case rename:
		c := change{dir: filepath.Dir(o.newName), apply: map[string]*node{o.newName: d.at(o.name), o.name: nil}}
		if d.at(o.name).dir {
			d.movePending(o.name, o.newName)
			c.moved = [2]string{o.name, o.newName}
		}
		d.enter(c)
	case link:
		d.change(filepath.Dir(o.newName), map[string]*node{o.newName: d.at(o.name)})
	case remove:
		d.change(dir, map[string]*node{o.name: nil})
	case syncDir:
		d.syncDir(o.name)
	case mark:
		d.marked = o.mark
	}
}

// file returns the file of a write or sync, whose name may be another's by now.
func (d *Disk) file(o op) *node {
	if n := d.open[o.file]; n != nil {
		return n
	}
	return d.at(o.name)
}

// at returns the file of a name. One that the file system did not make was
// there before, and nothing is known of it.
func (d *Disk) at(name string) *node {
	if d.names[name] == nil {
		n := &node{everSynced: true}
		d.names[name], d.durable[name] = n, n
	}
	return d.names[name]
}

func (d *Disk) change(dir string, names map[string]*node) { d.enter(change{dir: dir, apply: names}) }

func (d *Disk) enter(c change) {
	c.on(d.names)
	d.pending = append(d.pending, c)
}

// movePending moves the pending changes in a directory to its new name.
func (d *Disk) movePending(from, to string) {
	for i, c := range d.pending {
		if c.dir != from && !strings.HasPrefix(c.dir, from+"/") {
			continue
		}
		moved := make(map[string]*node, len(c.apply))
		for name, n := range c.apply {
			moved[to+strings.TrimPrefix(name, from)] = n
		}
		d.pending[i].dir, d.pending[i].apply = to+strings.TrimPrefix(c.dir, from), moved
	}
}

func (d *Disk) syncDir(dir string) {
	d.pending = slices.DeleteFunc(d.pending, func(c change) bool {
		if c.dir == dir {
			c.on(d.durable)
		}
		return c.dir == dir
	})
}

// on makes the change.
func (c change) on(names map[string]*node) {
	if from, to := c.moved[0], c.moved[1]; from != "" {
		for name, n := range maps.Clone(names) {
			if below, ok := strings.CutPrefix(name, from+"/"); ok {
				delete(names, name)
				names[to+"/"+below] = n
			}
		}
	}
	for name, n := range c.apply {
		if n == nil {
			delete(names, name)
		} else {
			names[name] = n
		}
	}
}

// State is what may be on a disk after a crash. Names are relative to its root.
type State struct {
	What   string
	Files  map[string][]byte
	Dirs   []string
	Marked int64
}

// States yields what may be on the disk if the system stops now:
//
//	kill    everything done so far: only the process was killed
//	strict  only what was synced
//	meta    every name, and of the bytes that were not synced zeros
//	empty   every name, and files never synced are empty
//	random  so many mixtures: of the changes of names a prefix or any of them;
//	        of each file's unsynced bytes all, none, zeros, or a prefix that
//	        ends in the middle of a write, at the end of a sector
func (d *Disk) States(rnd *rand.Rand, random int) iter.Seq[State] {
	return func(yield func(State) bool) {
		if !yield(d.state("kill", d.names, func(n *node) []byte { return n.data })) ||
			!yield(d.state("strict", d.durable, func(n *node) []byte { return n.synced })) ||
			!yield(d.state("meta", d.names, (*node).zeros)) ||
			!yield(d.state("empty", d.names, (*node).empty)) {
			return
		}
		for i := range random {
			if !yield(d.state(fmt.Sprintf("random %d", i), d.someNames(rnd), func(n *node) []byte { return n.some(rnd) })) {
				return
			}
		}
	}
}

func (d *Disk) someNames(rnd *rand.Rand) map[string]*node {
	names := maps.Clone(d.durable)
	prefix, any := rnd.IntN(len(d.pending)+1), rnd.IntN(2) == 0
	for i, c := range d.pending {
		if any && rnd.IntN(2) == 0 || !any && i < prefix {
			c.on(names)
		}
	}
	return names
}

func (n *node) zeros() []byte {
	return append(slices.Clone(n.synced), make([]byte, len(n.data)-len(n.synced))...)
}

func (n *node) empty() []byte {
	if !n.everSynced {
		return nil
	}
	return n.synced
}

func (n *node) some(rnd *rand.Rand) []byte {
	unsynced := len(n.data) - len(n.synced)
	switch rnd.IntN(4) {
	case 0:
		return n.data
	case 1:
		return n.synced
	case 2:
		return n.zeros()
	}
	end := len(n.synced) + rnd.IntN(unsynced+1)
	if torn := end / sector * sector; torn > len(n.synced) {
		end = torn
	}
	return n.data[:end]
}

// state collects the names that can be reached from the root, in the order of
// names so that the same random numbers give the same state.
func (d *Disk) state(what string, names map[string]*node, bytes func(*node) []byte) State {
	s := State{What: what, Files: make(map[string][]byte), Marked: d.marked}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		rel, ok := strings.CutPrefix(name, d.root+string(filepath.Separator))
		if !ok || !d.reachable(name, names) {
			continue
		}
		if n := names[name]; n.dir {
			s.Dirs = append(s.Dirs, rel)
		} else {
			s.Files[rel] = bytes(n)
		}
	}
	return s
}

// reachable reports whether all directories above a name are there, as far as
// they were made under this file system.
func (d *Disk) reachable(name string, names map[string]*node) bool {
	for dir := filepath.Dir(name); len(dir) > len(d.root); dir = filepath.Dir(dir) {
		if names[dir] == nil && d.names[dir] != nil {
			return false
		}
	}
	return true
}

// Sum identifies a state, with what was marked before it. With an alias, which
// may be nil, files go by that instead of their names: for names that hold
// random numbers.
func (s State) Sum(alias func(name string) string) [sha256.Size]byte {
	type file struct {
		alias string
		data  []byte
	}
	files, size := make([]file, 0, len(s.Files)), 1000
	for name, data := range s.Files {
		size += len(name) + 30 + len(data)
		if alias != nil {
			name = alias(name)
		}
		files = append(files, file{name, data})
	}
	slices.SortFunc(files, func(a, b file) int { return cmp.Or(strings.Compare(a.alias, b.alias), bytes.Compare(a.data, b.data)) })
	sum := strconv.AppendInt(make([]byte, 0, size), s.Marked, 10)
	for _, dir := range s.Dirs {
		sum = strconv.AppendQuote(sum, dir)
	}
	for _, f := range files {
		sum = strconv.AppendQuote(sum, f.alias)
		sum = append(strconv.AppendInt(sum, int64(len(f.data)), 10), '\n')
		sum = append(sum, f.data...)
	}
	return sha256.Sum256(sum)
}

// LayOut makes the directory dst what the state says. See [Tree] for many.
func (s State) LayOut(dst string) error { return NewTree(dst).LayOut(s) }

// Crashes lays out, one after the other, the states in which a power cut may
// leave the disk after the first n operations, under the directory dst, which
// represents root: the changes of names, none, all, each alone and each left
// out, with each the synced bytes, all bytes, or zeros. The directory is
// emptied between states. There are none after an operation that changes
// nothing, unless it is the last one.
func (f *FS) Crashes(n int, root, dst string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		d := NewDisk(root, State{})
		last := 0
		if n > 0 {
			for last = range f.Replay(d) {
				if last >= n {
					break
				}
			}
		}
		if last != n && n < f.Ops() {
			return
		}
		seen := make(map[[sha256.Size]byte]bool)
		for _, mask := range subsets(len(d.pending)) {
			for kind, bytes := range map[string]func(*node) []byte{
				"synced": func(n *node) []byte { return n.synced },
				"all":    func(n *node) []byte { return n.data },
				"zeros":  (*node).zeros,
			} {
				what := fmt.Sprintf("after operation %d, name changes %b of %d, bytes: %s", n, mask, len(d.pending), kind)
				s := d.state(what, d.after(mask), bytes)
				sum := s.Sum(nil)
				if seen[sum] {
					continue
				}
				seen[sum] = true
				if !yield(what, s.LayOut(dst)) {
					return
				}
			}
		}
	}
}

// subsets returns bit masks of n changes: none, all, each alone and each left
// out.
func subsets(n int) []int {
	all := 1<<n - 1
	masks := []int{0, all}
	if n == 0 {
		return masks[:1]
	}
	for i := 0; i < n && n > 1; i++ {
		masks = append(masks, 1<<i, all&^(1<<i))
	}
	return masks
}

// after returns the names when those of the pending changes that mask has bits
// for have reached the disk.
func (d *Disk) after(mask int) map[string]*node {
	names := maps.Clone(d.durable)
	for i, c := range d.pending {
		if mask>>i&1 == 1 {
			c.on(names)
		}
	}
	return names
}
