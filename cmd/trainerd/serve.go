package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path"
	"path/filepath"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/cmd/internal/cliargs"
	"github.com/trainerd/trainerd/trainerd/child/system"
	"github.com/trainerd/trainerd/trainerd/predict"
	"github.com/trainerd/trainerd/trainerd/serve"
)

const serveHelp = `Answers predictions over HTTP, in the form of TensorFlow Serving's REST API:

   POST /v1/models/NAME:predict      {"instances": [...]} or {"inputs": ...}
   POST /v1/models/NAME:classify     {"examples": [{...}, ...]}; also :regress
   GET  /v1/models/NAME              status and version
   GET  /v1/models/NAME/metadata     signatures
   GET  /monitoring/prometheus/metrics, /healthz, /readyz

The model is that of a logdir (its best checkpoint by evaluation, else the
newest intact one), a SavedModel, or the highest number of a folder of
SavedModels. When a better checkpoint or a higher number appears it is loaded;
requests go to the current one until then. The version is the step, or the
number.

An instance is a row: a list of numbers, or an object with the columns' names;
other columns are left out. null is a missing value, a word that the training has
not seen counts as none, and one among numbers is an error. It listens on this
machine only, unless --listen says otherwise; there is no authentication. Ctrl-C
or SIGTERM ends it after the current requests.

EXAMPLES:
   trainerd serve logs/iris
   trainerd serve models/iris --name iris --listen 127.0.0.1:8501
   curl -d '{"instances": [[5.1, 3.5, 1.4, 0.2]]}' localhost:8501/v1/models/iris:predict`

// serveGrace is how long requests may take after a stop.
const serveGrace = 10 * time.Second

func serveCommand(stderr io.Writer) *cli.Command {
	return &cli.Command{
		Name:        "serve",
		Usage:       "answer predictions of a trained model over HTTP",
		UsageText:   "trainerd serve [options] CONFIG|LOGDIR|SAVEDMODEL",
		Description: serveHelp,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "listen", Value: "127.0.0.1:8501", Usage: "answer at `ADDR`; port 0 is any free one"},
			&cli.StringFlag{Name: "name", Usage: "call the model `NAME` (default: that of the folder)"},
			&cli.StringFlag{Name: "signature", Usage: "run the signature `KEY`, unless a request has a signature_name", Value: "serving_default"},
			&cli.DurationFlag{Name: "poll", Value: 2 * time.Second, Usage: "look for a better model every `TIME`; 0 for never"},
			maxMemoryFlag(),
			&cli.Int64Flag{Name: "max-body", DefaultText: "64, or 1/128 of the memory", Usage: "refuse requests of more than `MIB` MiB"},
			checkpointFlag(),
		},
		Action: func(c *cli.Context) error { return serveModel(c, stderr) },
	}
}

// modelArg returns the path and the name of the model that an argument means.
func modelArg(c *cli.Context) (path, name string, err error) {
	if c.NArg() != 1 || c.Args().First() == "" {
		return "", "", usagef("%s: want CONFIG|LOGDIR|SAVEDMODEL", c.Command.Name)
	}
	if path, err = logdirOf(c.Args().First()); err != nil {
		return "", "", err
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", "", err
	}
	name = filepath.Base(abs)
	if isVersion(name) {
		name = filepath.Base(filepath.Dir(abs)) // models/iris/1
	}
	return path, name, nil
}

// isInURL reports whether a name may be in the path of a URL as it is.
func isInURL(name string) bool { return name != "" && path.Clean("/"+name) == "/"+name }

// isVersion reports whether a folder's name is a version of the model that its
// parent is named after.
func isVersion(name string) bool {
	for _, r := range name {
		if r < '0' || r > '9' {
			return false
		}
	}
	return name != ""
}

func serveModel(c *cli.Context, stderr io.Writer) error {
	path, name, err := modelArg(c)
	if err != nil {
		return err
	}
	if c.IsSet("name") {
		name = c.String("name")
	}
	if !isInURL(name) {
		return usagef("serve: a model cannot be called %q, for its name is part of a URL; give --name", name)
	}
	if c.IsSet("max-body") && c.Int64("max-body") < 1 || c.Duration("poll") < 0 {
		return usagef("serve: --max-body must be 1 or more, --poll 0 or more")
	}
	memory, err := maxMemory(c)
	if err != nil {
		return err
	}
	defer system.KeepReaping()()
	outliveReaders()
	out := unheld(c.App.Writer, stderr, slog.DiscardHandler)
	ctx, release := stopOnSignal(c.Context, out.stderr, "stopping after the current requests")
	defer release()
	log := slog.New(slog.NewTextHandler(out.stderr, nil))
	source, err := serve.NewSource(ctx, path, predict.Options{Checkpoint: c.String("checkpoint"), Signature: c.String("signature"), MaxMemory: memory, MemoryOption: "--max-memory"}, log)
	if err != nil {
		return err
	}
	defer source.Close()
	ln, err := net.Listen("tcp", c.String("listen"))
	if err != nil {
		return cliargs.ListenError("--listen", err)
	}
	server := serve.NewServer(serve.Options{Source: source, Name: name, MaxBody: c.Int64("max-body") << 20, Log: log})
	fmt.Fprintf(out.stdout, "serving %s, version %d, at http://%s%s\n", path, source.Version(), ln.Addr(), serve.PredictPath(name))
	watch := c.Duration("poll")
	if c.IsSet("checkpoint") {
		watch = 0 // one model was asked for
	}
	return serveUntil(ctx, server, source, ln, watch)
}

// serveUntil serves until ctx is done.
func serveUntil(ctx context.Context, server *serve.Server, source *serve.Source, ln net.Listener, poll time.Duration) error {
	var running sync.WaitGroup
	watching, cancel := context.WithCancel(ctx)
	if poll > 0 {
		running.Go(func() { source.Watch(watching, poll) })
	}
	ended := make(chan error, 1)
	running.Go(func() { ended <- server.Serve(ln) })
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		grace, stop := context.WithTimeout(context.WithoutCancel(ctx), serveGrace)
		defer stop()
		if err = server.Shutdown(grace); errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("requests were cancelled %v after the stop: %w", serveGrace, os.ErrDeadlineExceeded)
		}
	}
	cancel()
	running.Wait()
	return err
}
