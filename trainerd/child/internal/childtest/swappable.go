package childtest

import "github.com/trainerd/trainerd/internal/atomicfile"

// Swappable is a disk that becomes another one.
type Swappable struct{ atomicfile.FS }

// Link lets it have links where that one has.
func (d *Swappable) Link(from, to string) error { return atomicfile.Link(d.FS, from, to) }
