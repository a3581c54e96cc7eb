package trainerd_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/session"
	"github.com/trainerd/trainerd/trainerd/target"
)

// What follows is the examples of TensorFlow's guide to the Supervisor, each as
// one function, and how it is called. doc/use-from-go.md shows them with their
// line counts.

func verySimple(ctx context.Context, meta *tfpb.MetaGraphDef, logdir string) error {
	sv := &trainerd.Supervisor{MetaGraph: meta, Open: target.Open, Logdir: logdir}
	return sv.Run(ctx, func(ctx context.Context, sess trainerd.Session) (err error) {
		for step := 0; step < 1000 && err == nil && !sv.ShouldStop(); step++ {
			err = trainerd.RunOps(ctx, sess, "train")
		}
		return err
	})
}

func Example_verySimple() {
	meta, logdir := exampleGraph()
	defer os.RemoveAll(logdir)
	fmt.Println(verySimple(context.Background(), meta, logdir), newest(logdir))
	// Output: <nil> model.ckpt-1000
}

func largerModel(ctx context.Context, meta *tfpb.MetaGraphDef, logdir string) error {
	sv := &trainerd.Supervisor{MetaGraph: meta, Open: target.Open, Logdir: logdir,
		SummaryOp: trainerd.None()} // do not run the summary service
	return sv.Run(ctx, func(ctx context.Context, sess trainerd.Session) (err error) {
		for step := 0; step < 1000 && err == nil && !sv.ShouldStop(); step++ {
			if step%100 == 0 {
				err = sv.Summarize(ctx, sess, "summaries/loss:0", "train")
			} else {
				err = trainerd.RunOps(ctx, sess, "train")
			}
		}
		return err
	})
}

func Example_largerModel() {
	meta, logdir := exampleGraph()
	defer os.RemoveAll(logdir)
	fmt.Println(largerModel(context.Background(), meta, logdir), newest(logdir))
	fmt.Println(exampleSteps(logdir, "loss"))
	// Output:
	// <nil> model.ckpt-1000
	// [1 101 201 301 401 501 601 701 801 901]
}

func pretrained(ctx context.Context, meta *tfpb.MetaGraphDef, logdir, checkpoint string, train trainFunc) error {
	saver := &trainerd.Saver{Variables: trainerd.VariableList("w")} // restores the pre-trained variables
	sv := &trainerd.Supervisor{MetaGraph: meta, Open: target.Open, Logdir: logdir,
		InitFunc: func(ctx context.Context, sess trainerd.Session) error { return saver.Restore(ctx, sess, checkpoint) }}
	return sv.Run(ctx, train)
}

func Example_pretrained() {
	meta, logdir := exampleGraph()
	defer os.RemoveAll(logdir)
	before := filepath.Join(logdir, "before")
	if err := verySimple(context.Background(), meta, before); err != nil {
		log.Fatal(err)
	}
	err := pretrained(context.Background(), meta, filepath.Join(logdir, "after"), filepath.Join(before, newest(before)), printW)
	fmt.Println(err)
	// Output:
	// w begins at 4
	// <nil>
}

func ownServices(ctx context.Context, meta *tfpb.MetaGraphDef, logdir string, additional serviceFunc, train trainFunc) error {
	sv := &trainerd.Supervisor{MetaGraph: meta, Open: target.Open, Logdir: logdir}
	return sv.Run(ctx, func(ctx context.Context, sess trainerd.Session) error {
		sv.Loop("additional summaries", 20*time.Minute, func(ctx context.Context) error { return additional(ctx, sv, sess) })
		return train(ctx, sess)
	})
}

func additionalSummaries(ctx context.Context, sv *trainerd.Supervisor, sess trainerd.Session) error {
	return sv.Summarize(ctx, sess, "summaries/loss:0")
}

func Example_ownServices() {
	meta, logdir := exampleGraph()
	defer os.RemoveAll(logdir)
	written := make(chan struct{})
	additional := func(ctx context.Context, sv *trainerd.Supervisor, sess trainerd.Session) error {
		defer close(written) // the service runs at once, then every 20 minutes
		return additionalSummaries(ctx, sv, sess)
	}
	fmt.Println(ownServices(context.Background(), meta, logdir, additional, func(ctx context.Context, _ trainerd.Session) error {
		<-written
		return nil
	}))
	fmt.Println("has losses:", len(exampleSteps(logdir, "loss")) > 0)
	// Output:
	// <nil>
	// has losses: true
}

func lossLoop(ctx context.Context, meta *tfpb.MetaGraphDef, master, logdir string, printLoss trainFunc) error {
	sv := &trainerd.Supervisor{MetaGraph: meta, Open: target.Open, Master: master, Logdir: logdir}
	return sv.Run(ctx, func(ctx context.Context, sess trainerd.Session) error {
		sv.Loop("loss", 60*time.Second, func(ctx context.Context) error { return printLoss(ctx, sess) })
		return sv.UntilStop(func() error { return trainerd.RunOps(ctx, sess, "train") })
	})
}

func Example_lossLoop() {
	meta, logdir := exampleGraph()
	defer os.RemoveAll(logdir)
	ctx, stop := context.WithCancel(context.Background())
	printLoss := func(ctx context.Context, sess trainerd.Session) error {
		loss, err := trainerd.FetchScalar[float32](ctx, sess, "loss:0")
		fmt.Println("loss is at most 16:", loss <= 16)
		stop() // the example is over
		return err
	}
	fmt.Println(lossLoop(ctx, meta, "", logdir, printLoss))
	// Output:
	// loss is at most 16: true
	// <nil>
}

func customSaver(ctx context.Context, meta *tfpb.MetaGraphDef, logdir string, train trainFunc) error {
	saver := &trainerd.Saver{Variables: trainerd.VariableList("w", "global_step")} // only some variables
	sv := &trainerd.Supervisor{MetaGraph: meta, Open: target.Open, Logdir: logdir,
		Saver: saver, SaveModelEvery: 30 * time.Second}
	return sv.Run(ctx, train)
}

func Example_customSaver() {
	meta, logdir := exampleGraph()
	defer os.RemoveAll(logdir)
	err := customSaver(context.Background(), meta, logdir, printW)
	fmt.Println(err, keys(filepath.Join(logdir, newest(logdir))))
	// Output:
	// w begins at 0
	// <nil> [global_step w]
}

func replica(ctx context.Context, meta *tfpb.MetaGraphDef, master, logdir string, isChief bool) error {
	sv := &trainerd.Supervisor{MetaGraph: meta, Open: target.Open, Master: master, Logdir: logdir, NonChief: !isChief}
	return sv.Run(ctx, func(ctx context.Context, sess trainerd.Session) error {
		return sv.UntilStop(func() error { return trainerd.RunOps(ctx, sess, "train") })
	})
}

func Example_replicas() {
	meta, logdir := exampleGraph()
	defer os.RemoveAll(logdir)
	server, err := (&target.Options{}).Serve(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	ctx, stop := context.WithCancel(context.Background())
	chief := make(chan error)
	go func() { chief <- replica(ctx, meta, server.Master(), logdir, true) }()
	for newest(logdir) != "model.ckpt-0" && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond) // the chief makes the model
	}
	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	fmt.Println("worker:", replica(short, meta, server.Master(), logdir, false))
	stop()
	fmt.Println("chief:", <-chief)
	// Output:
	// worker: <nil>
	// chief: <nil>
}

// trainFunc is what Supervisor.Run takes.
type trainFunc = func(ctx context.Context, sess trainerd.Session) error

// serviceFunc is a service of a program's own.
type serviceFunc = func(ctx context.Context, sv *trainerd.Supervisor, sess trainerd.Session) error

// printW is a training that looks where it begins.
func printW(ctx context.Context, sess trainerd.Session) error {
	w, err := trainerd.FetchScalar[float32](ctx, sess, "w/Read/ReadVariableOp:0")
	fmt.Println("w begins at", w)
	return err
}

// exampleGraph returns a graph as any program makes it, and a new logdir.
func exampleGraph() (*tfpb.MetaGraphDef, string) {
	meta, err := plainGraph()
	if err != nil {
		log.Fatal(err)
	}
	logdir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	return meta, logdir
}

// newest returns the newest checkpoint of a logdir.
func newest(logdir string) string {
	prefix, err := ckptdir.LatestCheckpoint(logdir, nil)
	if err != nil {
		return err.Error()
	}
	return filepath.Base(prefix)
}

// exampleSteps returns the steps of a logdir's points with a tag.
func exampleSteps(logdir, tag string) (steps []int64) {
	names, err := filepath.Glob(filepath.Join(logdir, "events.out.tfevents.*"))
	if err != nil || len(names) != 1 {
		log.Fatal(names, err)
	}
	f, err := os.Open(names[0])
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	for e, err := range tfevents.NewReader(f).Events() {
		if err != nil {
			log.Fatal(err)
		}
		for _, v := range e.GetSummary().GetValue() {
			if v.GetTag() == tag {
				steps = append(steps, e.GetStep())
			}
		}
	}
	return steps
}

// keys returns what a checkpoint has, without the session's own state.
func keys(prefix string) (names []string) {
	r, err := ckptfmt.OpenBundle(prefix, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	for info, err := range r.Tensors() {
		if err != nil {
			log.Fatal(err)
		}
		if !strings.HasPrefix(info.Name, session.StatePrefix) {
			names = append(names, info.Name)
		}
	}
	return names
}
