// Command plainchief trains a graph that nobody has prepared for a supervisor,
// at any master, with hooks around each step:
//
//	plainchief GRAPH.meta MASTER LOGDIR STEPS
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/trainerd/trainerd/ckptfmt/metagraph"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/hook"
	"github.com/trainerd/trainerd/trainerd/session"
	"github.com/trainerd/trainerd/trainerd/target"
)

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: plainchief GRAPH.meta MASTER LOGDIR STEPS")
		os.Exit(2)
	}
	if err := train(os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func train(file, master, logdir, steps string) error {
	meta, err := metagraph.Read(file)
	if err != nil {
		return err
	}
	last, err := strconv.ParseInt(steps, 10, 64)
	if err != nil {
		return err
	}
	sv := &trainerd.Supervisor{MetaGraph: meta, Open: target.Open, Master: master, Logdir: logdir,
		SaveModelSteps: 2, SaveSummariesEvery: -1, Hooks: []trainerd.Hook{
			&trainerd.StopAtStep{LastStep: last},
			&hook.SummarySaver{Trigger: trainerd.Trigger{Steps: 2}},
			&hook.Profiler{Trigger: trainerd.Trigger{Steps: 2}},
		}}
	return sv.Run(context.Background(), func(ctx context.Context, sess session.Session) error {
		return sv.UntilStop(func() error { return trainerd.RunOps(ctx, sess, "train") })
	})
}
