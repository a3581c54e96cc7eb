package torch

import (
	"cmp"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt/internal/zipdir"
)

// storageFolder begins the names of the members that are storages.
const storageFolder = "data/"

// members finds those of an archive by their names within its folder. Storages have
// numbers for names, from 0 on: a list finds them, where a map of a hundred thousand
// would take longer than all the rest.
type members struct {
	list     []zipdir.Member
	byNumber []int32 // places of storages, from 1 on; 0 where there is none
	byName   map[string]*zipdir.Member
	twice    *zipdir.Member // the second one of a name, if there is one
}

func newMembers(archive *zipdir.Archive, folder string) members {
	list := archive.Members
	m := members{list: list, byNumber: make([]int32, 0, len(list)), byName: make(map[string]*zipdir.Member)}
	for i := range list {
		member := &list[i]
		name, ok := strings.CutPrefix(member.Name, folder)
		if !ok {
			continue
		}
		n := m.number(name)
		if m.at(n, name) != nil && m.twice == nil {
			m.twice = member
		}
		if n < 0 {
			m.byName[name] = member
			continue
		}
		if n >= len(m.byNumber) { // as a rule the next one
			m.byNumber = m.byNumber[:n+1]
		}
		m.byNumber[n] = int32(i + 1)
	}
	return m
}

// at returns the member with a number, or with a name if that is none; nil where there is none.
func (m *members) at(n int, name string) *zipdir.Member {
	switch {
	case n < 0:
		return m.byName[name]
	case n >= len(m.byNumber) || m.byNumber[n] == 0:
		return nil
	}
	return &m.list[m.byNumber[n]-1]
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
	if n := m.keyNumber(key); n >= 0 {
		return m.at(n, "")
	}
	return m.byName[storageFolder+key]
}

// number returns the number of a storage by its name, -1 of what has none.
func (m *members) number(name string) int {
	key, ok := strings.CutPrefix(name, storageFolder)
	if !ok {
		return -1
	}
	return m.keyNumber(key)
}

// keyNumber returns the number that a key is, as Python writes it.
func (m *members) keyNumber(key string) int {
	const most = 9 // digits of an int32
	if len(key) == 0 || len(key) > most || key[0] == '0' && len(key) > 1 {
		return -1
	}
	n := 0
	for i := range len(key) {
		if key[i] < '0' || key[i] > '9' {
			return -1
		}
		n = 10*n + int(key[i]-'0')
	}
	if n >= len(m.list) {
		return -1
	}
	return n
}
