//go:build unix

package world

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/trainerd/trainerd/proto/tbdata"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/tfevents/dataserver"
)

// A dataView is the data server of TensorBoard, which looks at a logdir from the first
// life of its training to the last, over a network in memory.
type dataView struct {
	dir     string
	server  *dataserver.Server
	conn    *grpc.ClientConn
	stop    context.CancelFunc
	serving sync.WaitGroup
	failed  error // of Serve
	stale   bool  // a planted defect: it does not look again

	mu sync.Mutex // held by the one that looks
}

// viewData starts a data server for half of the histories.
func (p *place) viewData(ctx context.Context, rnd *rand.Rand) (err error) {
	if rnd.IntN(2) == 0 {
		p.view, err = newDataView(ctx, p.dir)
	}
	return err
}

// lookAtData looks now and then, and ever more rarely, until a life has ended.
func (p *place) lookAtData(ctx context.Context, every time.Duration, ended <-chan struct{}) error {
	for ; p.view != nil; every *= 2 {
		select {
		case <-ended:
			return nil
		case <-time.After(every):
		}
		if err := p.view.judge(context.WithoutCancel(ctx), true); err != nil {
			return err
		}
	}
	return nil
}

func newDataView(ctx context.Context, dir string) (*dataView, error) {
	server, err := dataserver.New(&dataserver.Options{Logdir: dir, Reload: -1})
	if err != nil {
		return nil, err
	}
	v := &dataView{dir: dir, server: server}
	ln := newMemoryListener()
	dial := func(ctx context.Context, _ string) (net.Conn, error) { return ln.dial(ctx, "", "") }
	v.conn, err = grpc.NewClient("passthrough:///data", grpc.WithContextDialer(dial), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	ctx, v.stop = context.WithCancel(ctx)
	v.serving.Go(func() { v.failed = server.Serve(ctx, ln) })
	return v, nil
}

// close ends the server.
func (v *dataView) close() error {
	if v == nil {
		return nil
	}
	v.conn.Close()
	v.stop()
	v.serving.Wait()
	return v.failed
}

// curve is what is known of a tag of a run: the bits of values by their steps.
type curve map[int64]uint32

// judge wants the server to have the points of the events files, no others and each
// once. While the training writes it may lack those that it writes at that moment.
func (v *dataView) judge(ctx context.Context, writes bool) error {
	if v == nil {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	before, err := scalarsOf(v.dir)
	if err != nil {
		return err
	}
	if !v.stale {
		v.server.Load(ctx)
	}
	got, err := v.read(ctx)
	if err != nil {
		return broke("the data server: %w", err)
	}
	after, err := scalarsOf(v.dir)
	if err != nil {
		return err
	}
	if same(got, before) || same(got, after) {
		return v.judgeFiles(writes)
	}
	if !writes {
		return broke("the data server differs from the events files: %s", difference(got, after))
	}
	for name, points := range got {
		for step, value := range points {
			if _, is := after[name][step]; !is && before[name][step] != value {
				return broke("the data server has a point of step %d of %s, %v, which no file has", step, name, math.Float32frombits(value))
			}
		}
	}
	return v.judgeFiles(writes)
}

// judgeFiles wants no file of the logdir to be open when no training is.
func (v *dataView) judgeFiles(writes bool) error {
	if writes {
		return nil
	}
	for _, name := range openFiles() {
		if strings.HasPrefix(name, v.dir+string(filepath.Separator)) {
			return broke("the data server has %s open", name)
		}
	}
	return nil
}

// scalarsOf reads the scalars of a logdir as the data server should. Of several points
// of a step in a row it has the last.
func scalarsOf(dir string) (map[string]curve, error) {
	fsys := os.DirFS(dir)
	runs, err := tfevents.FindRuns(fsys, ".")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // it was removed
	}
	if err != nil {
		return nil, err
	}
	all := map[string]curve{}
	for _, run := range runs {
		for _, series := range tfevents.ReadRun(fsys, run, &tfevents.RunOptions{Purge: tfevents.PurgeExact}).Series {
			points := curve{}
			for p := range series.Points() {
				if value, ok := p.Scalar(); ok {
					points[p.Step] = math.Float32bits(float32(value))
				}
			}
			if len(points) > 0 && series.Plugin() == "scalars" {
				all[path.Join(run.Name, series.Tag)] = points
			}
		}
	}
	return all, nil
}

// read asks the server for all scalars.
func (v *dataView) read(ctx context.Context) (map[string]curve, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	answer := new(tbdata.ReadScalarsResponse)
	req := &tbdata.ReadScalarsRequest{PluginFilter: &tbdata.PluginFilter{PluginName: "scalars"}, Downsample: &tbdata.Downsample{NumPoints: 1 << 20}}
	if err := v.conn.Invoke(ctx, "/"+dataserver.ServiceName+"/ReadScalars", req, answer, grpc.WaitForReady(true)); err != nil {
		return nil, err
	}
	all := map[string]curve{}
	for _, run := range answer.GetRuns() {
		for _, tag := range run.GetTags() {
			points, last := curve{}, int64(-1)
			for i, step := range tag.GetData().GetStep() {
				if step <= last {
					return nil, fmt.Errorf("%s of run %s: a point of step %d comes after one of step %d", tag.GetTagName(), run.GetRunName(), step, last)
				}
				points[step], last = math.Float32bits(tag.GetData().GetValue()[i]), step
			}
			if len(points) > 0 {
				all[path.Join(run.GetRunName(), tag.GetTagName())] = points
			}
		}
	}
	return all, nil
}

func same(a, b map[string]curve) bool {
	return maps.EqualFunc(a, b, func(x, y curve) bool { return maps.Equal(x, y) })
}

// difference names the first curve that differs.
func difference(got, want map[string]curve) string {
	names := slices.Collect(maps.Keys(want))
	names = slices.AppendSeq(names, maps.Keys(got))
	slices.Sort(names)
	for _, name := range names {
		if !maps.Equal(got[name], want[name]) {
			return fmt.Sprintf("%s has the points %v, the files %v", name, got[name], want[name])
		}
	}
	return "no curve"
}
