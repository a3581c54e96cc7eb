//go:build unix

package child_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/trainerd/child"
)

// A program is killed in the middle, and started again from its newest checkpoint.
func ExampleSupervisor() {
	logdir, err := os.MkdirTemp("", "logdir")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(logdir)
	const train = `
		step=${TRAINERD_STEP:-0}
		while [ $step -lt 4 ]; do
			step=$((step + 1))
			echo step=$step loss=0.$((9 - step))
			echo $step >$TRAINERD_LOGDIR/ckpt.tmp && mv $TRAINERD_LOGDIR/ckpt.tmp $TRAINERD_LOGDIR/ckpt-$step.txt
			[ $step != 2 ] || [ $TRAINERD_ATTEMPT != 1 ] || kill -9 $$
		done`
	sv := &child.Supervisor{
		Command:     []string{"sh", "-c", train},
		Logdir:      logdir,
		Checkpoints: "ckpt-*.txt",
		Retention:   []retention.Policy{retention.Last(1)},
	}
	exit, err := sv.Run(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(exit.Cause, "in start", exit.Attempt, "at step", exit.Step)
	kept, err := filepath.Glob(filepath.Join(logdir, sv.Checkpoints))
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range kept {
		fmt.Println(filepath.Base(name))
	}
	// Output:
	// completed in start 2 at step 4
	// ckpt-4.txt
}
