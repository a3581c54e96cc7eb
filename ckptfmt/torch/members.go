package torch

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt/internal/zipdir"
)

// storageFolder begins the names of the members that are storages.
const storageFolder = "data/"

// members finds the members of an archive by their names within its folder. Storages are named by
// numbers from 0 on, so a list finds them; a map of a hundred thousand would take longer than all
// the rest.
type members struct {
	folder   string
	numbered []numbered // storages that are stored
	byName   map[string]*zipdir.Member
	twice    *zipdir.Member // the second one of a name, if there is one
	pickle   *zipdir.Member // the second pickle, if there is one
}

// numbered is a member that is stored, under a number.
type numbered struct {
	header, bytes int64
	crc           uint32
	isThere       bool
}

// readMembers reads the directory of an archive whose pickle is in a folder.
func readMembers(archive *zipdir.Archive, folder string) (members, error) {
	m := members{folder: folder, numbered: make([]numbered, 0, archive.Most()), byName: make(map[string]*zipdir.Member)}
	err := archive.Each(m.add)
	return m, err
}

// add adds a member, but does not keep its name.
func (m *members) add(member *zipdir.Member) {
	name, ok := strings.CutPrefix(member.Name, m.folder)
	if isPickle(member.Name) && (!ok || name != pickleName) && m.pickle == nil {
		m.pickle = member.Clone()
	}
	if !ok {
		return
	}
	n := m.number(name)
	if m.at(n, name) != nil && m.twice == nil {
		m.twice = member.Clone()
	}
	if n < 0 || member.Method != zipdir.Stored || member.Packed != member.Size {
		kept := member.Clone()
		m.byName[kept.Name[len(m.folder):]] = kept
		return
	}
	if n >= len(m.numbered) { // as a rule the next one
		m.numbered = m.numbered[:n+1]
	}
	m.numbered[n] = numbered{member.Header, member.Size, member.CRC32, true}
}

// at returns the member with a number, or with a name, or nil if there is none.
func (m *members) at(n int, name string) *zipdir.Member {
	if n < 0 || n >= len(m.numbered) || !m.numbered[n].isThere {
		return m.byName[name]
	}
	x := &m.numbered[n]
	return &zipdir.Member{Name: m.folder + name, Method: zipdir.Stored, CRC32: x.crc, Size: x.bytes, Packed: x.bytes, Header: x.header}
}

// find returns a member, or nil.
func (m *members) find(name string) *zipdir.Member {
	return m.at(m.number(name), name)
}

// script returns a member that only programs have, nil where there is none.
func (m *members) script() *zipdir.Member {
	return cmp.Or(m.byName["constants.pkl"], m.byName["archive_format"])
}

// storage returns the member that is a storage, or nil.
func (m *members) storage(key string) *zipdir.Member {
	return m.at(m.keyNumber(key), storageFolder+key)
}

// keys returns the keys of all storages.
func (m *members) keys() (keys []string) {
	for n := range m.numbered {
		if m.numbered[n].isThere {
			keys = append(keys, strconv.Itoa(n))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.byName)) {
		if key, ok := strings.CutPrefix(name, storageFolder); ok && !strings.HasSuffix(name, "/") {
			keys = append(keys, key)
		}
	}
	return keys
}

// bytes returns the size of a storage, -1 of one that has no number or is not stored.
func (m *members) bytes(key string) int64 {
	n := m.keyNumber(key)
	if n < 0 || n >= len(m.numbered) || !m.numbered[n].isThere {
		return -1
	}
	return m.numbered[n].bytes
}

// number returns the number of a storage by its name, or -1 if it has none.
func (m *members) number(name string) int {
	key, ok := strings.CutPrefix(name, storageFolder)
	if !ok {
		return -1
	}
	return m.keyNumber(key)
}

// keyNumber returns the number that a key is, as Python writes it.
func (m *members) keyNumber(key string) int {
	if key == "" || key[0] == '0' && len(key) > 1 {
		return -1
	}
	n := 0
	for i := range len(key) {
		if key[i] < '0' || key[i] > '9' {
			return -1
		}
		if n = 10*n + int(key[i]-'0'); n >= cap(m.numbered) {
			return -1
		}
	}
	return n
}
