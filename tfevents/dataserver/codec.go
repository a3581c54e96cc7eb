package dataserver

import (
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// largeAnswer is an answer with its slot, which ends when the last byte is on the wire.
type largeAnswer struct {
	m proto.Message
	t *slot
}

// codec encodes messages as gRPC does, and large answers into memory that the transport gives back
// when it no longer needs it.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2("proto")} }

func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	a, ok := v.(*largeAnswer)
	if !ok {
		return c.CodecV2.Marshal(v)
	}
	b, err := proto.MarshalOptions{}.MarshalAppend(make([]byte, 0, max(proto.Size(a.m), notPooled)), a.m)
	if err != nil {
		a.t.end()
		return nil, err
	}
	a.t.sent(len(b))
	return mem.BufferSlice{mem.NewBuffer(&b, memory{a.t})}, nil
}

// notPooled is above the size below which the transport does not give buffers back.
const notPooled = 4 << 10

// memory is a pool of one buffer, for a large answer.
type memory struct{ of *slot }

// Get is part of mem.BufferPool.
func (m memory) Get(length int) *[]byte {
	b := make([]byte, length)
	return &b
}

// Put is called when the transport no longer needs the buffer.
func (m memory) Put(*[]byte) { m.of.end() }
