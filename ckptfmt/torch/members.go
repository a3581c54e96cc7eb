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
	byNumber []*zipdir.Member // storages
	byName   map[string]*zipdir.Member
	twice    *zipdir.Member // the second one of a name, if there is one
}

func newMembers(archive *zipdir.Archive, folder string) members {
	m := members{byNumber: make([]*zipdir.Member, len(archive.Members)), byName: make(map[string]*zipdir.Member)}
	for i := range archive.Members {
		member := &archive.Members[i]
		name, ok := strings.CutPrefix(member.Name, folder)
		if !ok {
			continue
		}
		if m.find(name) != nil && m.twice == nil {
			m.twice = member
		}
		if n := m.number(name); n >= 0 {
			m.byNumber[n] = member
		} else {
			m.byName[name] = member
		}
	}
	return m
}

// find returns a member, or nil.
func (m *members) find(name string) *zipdir.Member {
	if n := m.number(name); n >= 0 {
		return m.byNumber[n]
	}
	return m.byName[name]
}

// script returns a member that only programs have, nil where there is none.
func (m *members) script() *zipdir.Member {
	return cmp.Or(m.byName["constants.pkl"], m.byName["archive_format"])
}

// storage returns the member that is a storage, or nil.
func (m *members) storage(key string) *zipdir.Member {
	if n := m.keyNumber(key); n >= 0 {
		return m.byNumber[n]
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
	if n >= len(m.byNumber) {
		return -1
	}
	return n
}
