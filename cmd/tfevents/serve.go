package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/cmd/internal/cliargs"
	"github.com/trainerd/trainerd/tfevents/dataserver"
	"github.com/trainerd/trainerd/trainerd/child/system"
)

// indexGCPercent keeps the memory of ten thousand runs below 300 MiB.
const indexGCPercent = 50

// defaultPort is that of TensorBoard's own data server.
const defaultPort = 6806

func serveCommand() *cli.Command {
	return &cli.Command{
		Name:      "serve",
		Usage:     "serve log directories to TensorBoard, as its data server",
		ArgsUsage: " ",
		Description: "TensorBoard starts it by itself, without the word serve, if\n" +
			"TENSORBOARD_DATA_SERVER_BINARY holds the path of tfevents; `tfevents tensorboard\n" +
			"LOGDIR` sets that. A server that runs already is asked with `tensorboard\n" +
			"--grpc_data_provider=localhost:PORT`. All points are served, restarts are shown as\n" +
			"intended, and every checksum is tested. It ends with 8 if it cannot serve\n" +
			"the log directory.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "logdir", Usage: "serve the runs below `DIR`"},
			&cli.StringFlag{Name: "reload", Value: "5", Usage: "look for what is new every so many `SECS`, or once; changes that the system reports are read at once"},
			&cli.StringFlag{Name: "samples-per-plugin", Usage: "serve at most so many points of a series: a list of `PLUGIN=N` with commas, such as scalars=500,images=all"},
			&cli.StringFlag{Name: "max-memory", Value: "1GiB", Usage: "keep the process below `SIZE`: past some 60 million points for 1GiB, the longest scalars are thinned out"},
			&cli.StringFlag{Name: "host", Value: "localhost", Usage: "listen on `ADDRESS`; nothing asks for a password"},
			&cli.IntFlag{Name: "port", Value: defaultPort, Usage: "listen on port `N`, or on a free one with 0"},
			&cli.StringFlag{Name: "port-file", Usage: "write the port to `FILE`"},
			&cli.StringFlag{Name: "error-file", Usage: "write why it cannot start to `FILE`"},
			&cli.BoolFlag{Name: "die-after-stdin", Usage: "end when the standard input does"},
			&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Count: new(int), Usage: "log what it does; twice for more"},
			&cli.BoolFlag{Name: "checksum", Usage: "accepted for compatibility with the other data server: checksums are always tested"},
			&cli.BoolFlag{Name: "no-checksum", Usage: "accepted for the same reason"},
		},
		Action: serve,
	}
}

// asDataServer returns the arguments of the command serve if TensorBoard has
// started this program, which passes flags alone.
func asDataServer(args []string) []string {
	if len(args) > 1 && (args[1] == "--logdir" || strings.HasPrefix(args[1], "--logdir=")) {
		return append([]string{args[0], "serve"}, args[1:]...)
	}
	return args
}

func serve(c *cli.Context) error {
	if c.Args().Present() {
		return usagef("serve: takes flags only, got %q: name the log directory with --logdir", c.Args().First())
	}
	if c.String("logdir") == "" {
		return usagef("serve: want --logdir DIR")
	}
	o, err := serveOptions(c)
	if err != nil {
		return err
	}
	server, err := dataserver.New(o)
	if err != nil {
		return startupError(c, err)
	}
	ln, err := net.Listen("tcp", net.JoinHostPort(c.String("host"), strconv.Itoa(c.Int("port"))))
	if err != nil {
		return startupError(c, cliargs.ListenError("--host, --port", err))
	}
	if err := announce(c, ln.Addr()); err != nil {
		ln.Close()
		return startupError(c, err)
	}
	defer runtime.KeepAlive(boundMemory(o.MaxMemory))
	// With every processor at work on files, Go would look for requests each 10 ms only.
	runtime.GOMAXPROCS(o.Readers + 1)
	ctx, cancel := context.WithCancel(c.Context)
	defer cancel()
	if c.Bool("die-after-stdin") {
		go func() { // ends with the process, if not before
			_, _ = io.Copy(io.Discard, c.App.Reader)
			cancel()
		}()
	}
	defer system.KeepReaping()()
	return server.Serve(ctx, ln)
}

// boundMemory leaves the garbage collector alone where the environment speaks to it. What
// it returns must stay: memory that is never touched, so that the system gives none for
// it, but that counts for the collector. Without it, a collector that may use little
// memory looks through the index again and again while that is still small.
func boundMemory(limit int64) (untouched []byte) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit)
	}
	if os.Getenv("GOGC") != "" {
		return nil
	}
	debug.SetGCPercent(indexGCPercent) // the index stays; what is read into it passes
	if limit < smallLimit {
		return nil
	}
	return make([]byte, untouchedSize)
}

const (
	untouchedSize = 32 << 20
	// smallLimit is a limit so low that untouchedSize is a large part of it.
	smallLimit = 16 * untouchedSize
)

func serveOptions(c *cli.Context) (*dataserver.Options, error) {
	o := &dataserver.Options{Logdir: c.String("logdir"), Reload: -1, Readers: runtime.GOMAXPROCS(0), Logger: serveLogger(c)}
	if text := c.String("reload"); text != "once" {
		secs, err := strconv.ParseFloat(text, 64)
		if err != nil || !(secs >= 0) || secs > 1e9 {
			return nil, usagef("serve: --reload %s: want a number of seconds, or once", text)
		}
		// TensorBoard asks for 0 seconds where it means without a pause.
		o.Reload = max(time.Duration(secs*float64(time.Second)), 100*time.Millisecond)
	}
	var err error
	if o.MaxMemory, err = cliargs.Size(c.String("max-memory")); err != nil {
		return nil, usagef("serve: --max-memory: %w", err)
	}
	o.Samples, err = parseSamples(c.String("samples-per-plugin"))
	return o, err
}

// parseSamples reads a list like scalars=500,images=all.
func parseSamples(text string) (map[string]int, error) {
	samples := make(map[string]int)
	for pair := range strings.SplitSeq(text, ",") {
		if pair == "" {
			continue
		}
		plugin, number, ok := strings.Cut(pair, "=")
		n := -1
		var err error
		if number != "all" {
			n, err = strconv.Atoi(number)
		}
		if !ok || err != nil || number != "all" && n < 0 {
			return nil, usagef("serve: --samples-per-plugin %s: want PLUGIN=N or PLUGIN=all", pair)
		}
		samples[plugin] = n
	}
	return samples, nil
}

func serveLogger(c *cli.Context) *slog.Logger {
	level := slog.LevelWarn
	switch c.Count("verbose") {
	case 0:
	case 1:
		level = slog.LevelInfo
	default:
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(c.App.ErrWriter, &slog.HandlerOptions{Level: level}))
}

// announce prints where the server listens.
func announce(c *cli.Context, addr net.Addr) error {
	file := c.String("port-file")
	if file == "" {
		fmt.Fprintf(c.App.ErrWriter, "listening on %s\n", addr)
		return nil
	}
	port := addr.(*net.TCPAddr).Port
	return os.WriteFile(file, []byte(strconv.Itoa(port)+"\n"), 0o600)
}

// startupError leaves the reason where TensorBoard looks for it.
func startupError(c *cli.Context, err error) error {
	if file := c.String("error-file"); file != "" {
		if writeErr := os.WriteFile(file, []byte(err.Error()+"\n"), 0o600); writeErr != nil {
			return errors.Join(err, writeErr)
		}
	}
	return err
}
