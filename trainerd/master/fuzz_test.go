package master

import (
	"context"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	tfpb "github.com/trainerd/trainerd/proto"
)

// FuzzServer sends any bytes to any method, before and after a session is
// there: every answer is a message or an error, and the server lives.
func FuzzServer(f *testing.F) {
	graph := &tfpb.GraphDef{Node: []*tfpb.NodeDef{{Name: "a", Op: "NoOp"}, {Name: "x", Op: "Placeholder",
		Attr: map[string]*tfpb.AttrValue{"dtype": {Value: &tfpb.AttrValue_Type{Type: tfpb.DataType_DT_FLOAT}}}}}}
	for i, m := range []proto.Message{
		&tfpb.CreateSessionRequest{GraphDef: graph},
		&tfpb.ExtendSessionRequest{GraphDef: graph},
		&tfpb.RunStepRequest{Fetch: []string{"x:0"}, Target: []string{"a"}},
		&tfpb.PartialRunSetupRequest{Feed: []string{"x:0"}},
		&tfpb.MakeCallableRequest{Options: &tfpb.CallableOptions{Feed: []string{"x:0"}, Fetch: []string{"x:0"}}},
		&tfpb.RunCallableRequest{Handle: 1},
		&tfpb.ReleaseCallableRequest{Handle: 1},
		&tfpb.ListDevicesRequest{},
		&tfpb.CloseSessionRequest{},
		&tfpb.ResetRequest{},
	} {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(i), b)
	}
	f.Fuzz(func(t *testing.T, which uint8, b []byte) {
		s := New(&Options{MaxSessions: 3, AllowReset: true})
		defer s.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		opened, err := s.createSession(ctx, &tfpb.CreateSessionRequest{GraphDef: graph})
		if err != nil {
			t.Fatal(err)
		}
		m := service.Methods[int(which)%len(service.Methods)]
		decode := func(req any) error {
			msg := req.(proto.Message)
			if err := proto.Unmarshal(b, msg); err != nil {
				return err
			}
			addressTo(msg, opened.SessionHandle)
			return nil
		}
		if resp, err := m.Handler(s, ctx, decode, nil); err == nil && resp == nil {
			t.Errorf("%s: neither an answer nor an error", m.MethodName)
		}
	})
}

// addressTo lets a request speak of a session, so that it gets somewhere.
func addressTo(m proto.Message, session string) {
	r := m.ProtoReflect()
	if field := r.Descriptor().Fields().ByName("session_handle"); field != nil {
		r.Set(field, protoreflect.ValueOfString(session))
	}
}
