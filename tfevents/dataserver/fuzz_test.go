package dataserver

import (
	"context"
	"image"
	"math"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/proto/tbdata"
	"github.com/trainerd/trainerd/tfevents/summary"
)

// loaded returns a server that has read a directory with a series of each class.
func loaded(t testing.TB) *Server {
	t.Helper()
	dir := t.TempDir()
	histogram, err := summary.Histogram("histogram", []float64{1, 2}, 3)
	if err != nil {
		t.Fatal(err)
	}
	png, err := summary.EncodePNG(image.NewGray(image.Rect(0, 0, 2, 2)))
	if err != nil {
		t.Fatal(err)
	}
	images, err := summary.Images("image", png)
	if err != nil {
		t.Fatal(err)
	}
	for step := range int64(20) {
		e := &tfpb.Event{WallTime: 1, Step: step, What: &tfpb.Event_Summary{Summary: summary.New(histogram, images, summary.Scalar("loss", 1))}}
		appendEvents(t, filepath.Join(dir, "run", "1.tfevents"), e)
	}
	s, err := New(&Options{Logdir: dir, Reload: -1})
	if err != nil {
		t.Fatal(err)
	}
	s.store.scan(context.Background())
	return s
}

// request is a call of a method with what is decoded of the wire.
type request func(s *Server, wire []byte) (points []int, most int64, err error)

// decoded calls a method that takes such a request; points finds out how many points
// each series of the answer has.
func decoded[Q any, A any, P interface {
	*Q
	proto.Message
}](call func(*Server, context.Context, P, *budget) (A, error), most func(P) int64, points func(A) []int) request {
	return func(s *Server, wire []byte) ([]int, int64, error) {
		req := P(new(Q))
		if proto.Unmarshal(wire, req) != nil {
			return nil, math.MaxInt64, nil // gRPC refuses it
		}
		answer, err := call(s, context.Background(), req, &budget{left: maxAnswer})
		if err != nil {
			return nil, 0, err
		}
		return points(answer), most(req), nil
	}
}

func lengths[R any, T any, D interface{ GetStep() []int64 }](runs []R, tags func(R) []T, data func(T) D) (n []int) {
	for _, r := range runs {
		for _, t := range tags(r) {
			n = append(n, len(data(t).GetStep()))
		}
	}
	return n
}

func all[P any](P) int64  { return math.MaxInt64 }
func none[A any](A) []int { return nil }

var requests = []request{
	decoded(func(s *Server, ctx context.Context, req *tbdata.GetExperimentRequest, _ *budget) (*tbdata.GetExperimentResponse, error) {
		return s.getExperiment(ctx, req)
	}, all, none),
	decoded((*Server).listPlugins, all, none),
	decoded((*Server).listRuns, all, none),
	decoded((*Server).listScalars, all, none),
	decoded((*Server).listTensors, all, none),
	decoded((*Server).listBlobSequences, all, none),
	decoded((*Server).readScalars, func(q *tbdata.ReadScalarsRequest) int64 { return q.GetDownsample().GetNumPoints() },
		func(a *tbdata.ReadScalarsResponse) []int {
			return lengths(a.Runs, (*tbdata.ReadScalarsResponse_RunEntry).GetTags, (*tbdata.ReadScalarsResponse_TagEntry).GetData)
		}),
	decoded((*Server).readTensors, func(q *tbdata.ReadTensorsRequest) int64 { return q.GetDownsample().GetNumPoints() },
		func(a *tbdata.ReadTensorsResponse) []int {
			return lengths(a.Runs, (*tbdata.ReadTensorsResponse_RunEntry).GetTags, (*tbdata.ReadTensorsResponse_TagEntry).GetData)
		}),
	decoded((*Server).readBlobSequences, func(q *tbdata.ReadBlobSequencesRequest) int64 { return q.GetDownsample().GetNumPoints() },
		func(a *tbdata.ReadBlobSequencesResponse) []int {
			return lengths(a.Runs, (*tbdata.ReadBlobSequencesResponse_RunEntry).GetTags, (*tbdata.ReadBlobSequencesResponse_TagEntry).GetData)
		}),
}

// FuzzRequests sends each method whatever a client may: it answers with no more
// points than were asked for, or says what is wrong with the request.
func FuzzRequests(f *testing.F) {
	s := loaded(f)
	for method := range requests {
		for _, plugin := range []string{summary.PluginScalars, summary.PluginHistograms, summary.PluginImages, ""} {
			for _, points := range []int64{0, 1, 7, math.MaxInt64, -1} {
				// The requests for lists have the same fields, but for the last.
				wire, err := proto.Marshal(&tbdata.ReadScalarsRequest{
					PluginFilter: &tbdata.PluginFilter{PluginName: plugin}, Downsample: &tbdata.Downsample{NumPoints: points},
				})
				if err != nil {
					f.Fatal(err)
				}
				f.Add(method, wire)
			}
		}
	}
	f.Fuzz(func(t *testing.T, method int, wire []byte) {
		if method < 0 || method >= len(requests) {
			return
		}
		points, most, err := requests[method](s, wire)
		if err != nil && status.Code(err) != codes.InvalidArgument {
			t.Fatalf("%v", err)
		}
		for _, n := range points {
			if int64(n) > most {
				t.Fatalf("%d points; want %d at most", n, most)
			}
		}
	})
}

// TestStrangers speaks something else than gRPC, and opens more connections than there
// may be: the server answers those who do as before.
func TestStrangers(t *testing.T) {
	dir := t.TempDir()
	appendEvents(t, filepath.Join(dir, "1.tfevents"), point("loss", 1, 2))
	c := serve(t, &Options{Logdir: dir, Reload: -1})
	c.waitForSteps(".", "loss", 1)
	for i := range maxConns + 5 {
		conn, err := net.DialTimeout("tcp", c.conn.Target()[len("passthrough:///"):], time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if i%2 == 0 {
			if _, err := conn.Write([]byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n")); err != nil && !os.IsTimeout(err) {
				t.Log(err) // the server may have closed it
			}
		}
	}
	c.waitForSteps(".", "loss", 1)
}
