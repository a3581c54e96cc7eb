package hdf5

import (
	"io"
	"sync"

	"github.com/trainerd/trainerd/ckptfmt/internal/openfile"
)

// pager reads through a few pages: blocks of metadata are small, and next to each
// other as a rule. It is safe for concurrent use, unless it is for one goroutine alone.
type pager struct {
	from  io.ReaderAt
	size  int64 // of the file
	alone bool

	mu      sync.Mutex
	pages   [8]page
	last    int   // that was read from
	next    int   // to be replaced
	end     int64 // of what was read last
	ahead   int64 // size of what is read next
	touched byte  // which keeps touch from being left out
}

// Sizes of pages: larger ones while requests follow the order of the file.
const (
	leastPage = 4 << 10
	pageSize  = 64 << 10
)

type page struct {
	at int64
	b  []byte
}

// from returns the bytes of a page from an offset on, or nil if that is not in it.
func (p *page) from(at int64) []byte {
	if at < p.at || at-p.at >= int64(len(p.b)) {
		return nil
	}
	return p.b[at-p.at:]
}

func (p *pager) read(b []byte, at int64) error {
	if !p.alone {
		p.mu.Lock()
		defer p.mu.Unlock()
	}
	for len(b) > 0 {
		from, err := p.page(at)
		if err != nil {
			return err
		}
		n := copy(b, from)
		b, at = b[n:], at+int64(n)
	}
	return nil
}

// window returns bytes from an offset on, as page does; nil of a file that cannot be read,
// and of a pager for several goroutines.
func (p *pager) window(at int64) []byte {
	if !p.alone {
		return nil
	}
	b, err := p.page(at)
	if err != nil {
		return nil // read has the same error
	}
	return b
}

// touch brings a part of a mapped file into the processor's caches, all of it at once: decoding
// reads bytes all over it, and waiting for one cache line after the other takes longer than a copy
// would.
func (p *pager) touch(b []byte) {
	const line = 64 // bytes, of a cache
	sum := byte(0)
	for i := 0; i < len(b); i += line {
		sum += b[i]
	}
	p.touched = sum
}

// page returns bytes from an offset on, to the end of its page. They are valid until
// another page is read.
func (p *pager) page(at int64) ([]byte, error) {
	if b := p.pages[p.last].from(at); b != nil {
		return b, nil
	}
	for i := range p.pages {
		if b := p.pages[i].from(at); b != nil {
			p.last = i
			return b, nil
		}
	}
	begin := at &^ (leastPage - 1)
	if 0 <= begin-p.end && begin-p.end < pageSize {
		p.ahead = min(max(2*p.ahead, leastPage), pageSize)
	} else {
		p.ahead = max(p.ahead/2, leastPage)
	}
	to := &p.pages[p.next]
	p.last, p.next = p.next, (p.next+1)%len(p.pages)
	n := min(p.ahead, p.size-begin)
	p.end = begin + n
	if p.alone {
		if b := openfile.View(p.from, begin, int(n)); b != nil {
			to.at, to.b = begin, b
			p.touch(b)
			return to.from(at), nil
		}
	}
	if int64(cap(to.b)) < n {
		to.b = make([]byte, n, min(pageSize, p.size))
	}
	b := to.b[:n]
	to.b = b[:0]
	if n, err := p.from.ReadAt(b, begin); n < len(b) {
		if err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	to.at, to.b = begin, b
	return to.from(at), nil
}
