package hdf5

import (
	"errors"
	"fmt"

	"github.com/trainerd/trainerd/ckptfmt"
)

// errShared says that a message is stored separately.
var errShared = errors.New("messages that several objects share in a heap are not supported")

// shared replaces messages that are kept in the header of another object, as
// named datatypes are, by those.
//
//	version 1: 01 | type | 6 bytes | address
//	version 2: 02 | type | address
//	version 3: 03 | type | address, or for type 1 an identifier in a heap
func (s *store) shared(m *message) error {
	const inHeap = 1
	if !m.shared {
		return nil
	}
	c := s.over(m.body)
	version := c.version("a shared message", 1, 3)
	kind := c.u8()
	if version == 1 {
		c.skip(6)
	}
	if version == 3 && kind == inHeap {
		return fmt.Errorf("%w: %w", ckptfmt.ErrType, errShared)
	}
	at := c.addr()
	if c.err != nil {
		return s.corrupt(m.at, "shared message", c.err)
	}
	list, err := s.header(at)
	if err != nil {
		return err
	}
	own, ok := find(list, m.kind)
	if !ok || own.shared {
		return s.corrupt(at, "shared message", fmt.Errorf("there is no message of type %d", m.kind))
	}
	*m = *own
	return nil
}
