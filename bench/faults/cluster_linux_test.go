package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"

	"github.com/trainerd/trainerd/trainerd/daemon"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/master"
)

const viaEnv = "TRAINERD_FAULTS_VIA"

// ofServers is the chief of a job whose model is on a server. The one or the other
// writes the checkpoints.
func ofServers(via string) peer {
	return peer{name: "a job on servers, saved by the " + via, restart: true, start: func(dir string, _ int) *exec.Cmd {
		cmd := exec.Command("/proc/self/exe", "-test.run", "^TestChief$")
		cmd.Env = append(os.Environ(), writerEnv+"="+dir, viaEnv+"="+via)
		return cmd
	}}
}

// TestChief is the process whose power is cut: the chief, and its server.
func TestChief(t *testing.T) {
	dir := os.Getenv(writerEnv)
	if dir == "" {
		t.Skip("is run by TestPowerCutsOfServers")
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	go master.New(nil).Serve(ln) // until this process ends
	var set []config.Override
	for _, assignment := range []string{
		"master=grpc://" + ln.Addr().String(), "logdir=" + dir, "cluster.checkpoint_via=" + os.Getenv(viaEnv), "train.steps=100000000",
		"train.eval_steps=10", "eval.keep_best=1", "supervisor.save_model_steps=5", "supervisor.max_to_keep=2",
	} {
		set = append(set, config.Override{Flag: "--set " + assignment, Assignment: assignment})
	}
	c, err := config.Load("../../examples/digits/digits.toml", set)
	must(t, err)
	if err := daemon.Run(t.Context(), c, daemon.RunOptions{Stdout: io.Discard, Stderr: savesOf{os.Stderr}}); err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

var savedLine = regexp.MustCompile(`msg=saved step=([1-9][0-9]*) `)

// savesOf is a log that prints the saves alone.
type savesOf struct{ log io.Writer }

func (s savesOf) Write(b []byte) (int, error) {
	for line := range bytes.Lines(b) {
		if m := savedLine.FindSubmatch(line); m != nil {
			step, _ := strconv.ParseInt(string(m[1]), 10, 64) // it has digits only
			fmt.Printf("saved %d\n", step)
		}
	}
	return s.log.Write(b)
}

// No checkpoint of a job on servers that was announced is lost when a real file system
// loses its power, no matter which process has written it.
func TestPowerCutsOfServers(t *testing.T) {
	for _, kind := range []string{"ext4", "xfs"} {
		for _, via := range []string{"server", "client"} {
			t.Run(kind+"/"+via, func(t *testing.T) {
				if lost, promised := newLoopDisk(t, kind).cuts(t, ofServers(via), (*powercuts+15)/16, false); lost > 0 {
					t.Errorf("%d lost of %d", lost, promised)
				}
			})
		}
	}
}
