package serve

import (
	"context"

	"github.com/trainerd/trainerd/internal/ctxmutex"
	"github.com/trainerd/trainerd/internal/machine"
)

// A body takes many times as much memory once it is read: one of 60 MiB with short numbers took
// 3.5 GiB.
const (
	largestBody = 64 << 20
	memoryShare = 128 // of the memory of the machine
)

// defaultMaxBody limits the body of a request where nothing else is said: to 64 MiB, or what a
// machine with little memory can read.
func defaultMaxBody() int64 { return min(max(machine.Memory()/memoryShare, smallBody), largestBody) }

// bodyRoom bounds the bytes of large bodies that are in memory at a time.
type bodyRoom struct {
	pieces chan struct{}
	size   int64          // of a piece
	taking ctxmutex.Mutex // during take: two callers would each wait for what the other has
}

// roomPieces is how many requests of the smallest large bodies are in memory at a time.
const roomPieces = 8

func newBodyRoom(total int64) *bodyRoom {
	return &bodyRoom{pieces: make(chan struct{}, roomPieces), size: max(total/roomPieces, 1)}
}

// take takes room for a body of n bytes, at most all, until leave is called. It reports false if
// there is none until ctx is done.
func (r *bodyRoom) take(ctx context.Context, n int64) (leave func(), ok bool) {
	if r.taking.Lock(ctx) != nil {
		return nil, false
	}
	defer r.taking.Unlock()
	taken := 0
	leave = func() {
		for range taken {
			<-r.pieces
		}
	}
	for range min(max((n+r.size-1)/r.size, 1), roomPieces) {
		if !take(ctx, r.pieces) {
			leave()
			return nil, false
		}
		taken++
	}
	return leave, true
}
