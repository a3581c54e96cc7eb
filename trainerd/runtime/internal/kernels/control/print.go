package control

import (
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// The ops that print. They write to the session's streams, and a message in one
// piece, so that those of concurrent runs do not mix.
var printOps = exec.OpTable{
	"Print":   {Flags: exec.Stateful | exec.AliasesFirst, Build: buildPrint},
	"PrintV2": {Flags: exec.Stateful, Build: buildPrintV2},
}

// buildPrint builds the op that prints its message and its further inputs, at its
// first first_n runs, and passes its first input on.
func buildPrint(b *exec.OpConstruction) (exec.Kernel, error) {
	message, firstN, n := b.String("message"), b.Int("first_n"), b.Int("summarize")
	runs := new(atomic.Int64)
	return func(c *exec.KernelContext) error {
		c.Alias(0, c.In(0), c.In(0).Shape)
		if firstN >= 0 && runs.Add(1) > int64(firstN) {
			return nil
		}
		text := []byte(message)
		for i := 1; i < c.NumInputs(); i++ {
			text = append(text, summarize(c.In(i), n)...)
		}
		c.Printer().Print(c.Printer().Stderr, append(text, '\n'))
		return nil
	}, nil
}

// levels are the output streams that are levels of a log.
var levels = map[string]slog.Level{"log(info)": slog.LevelInfo, "log(warning)": slog.LevelWarn, "log(error)": slog.LevelError}

// fileScheme begins an output stream that is a file.
const fileScheme = "file://"

// buildPrintV2 builds the op that prints a string to a stream, a log or the end of a
// file.
func buildPrintV2(b *exec.OpConstruction) (exec.Kernel, error) {
	stream, end := b.StringOr("output_stream", "stderr"), b.StringOr("end", "\n")
	file, toFile := strings.CutPrefix(stream, fileScheme)
	level, toLog := levels[stream]
	if !toFile && !toLog && !slices.Contains([]string{"stdout", "stderr"}, stream) {
		b.Fail("attribute output_stream is %q, not stdout, stderr, log(info), log(warning), log(error) or %sNAME", stream, fileScheme)
	}
	return func(c *exec.KernelContext) error {
		text, err := c.StringScalar(0, "the text")
		if err != nil {
			return err
		}
		switch {
		case toFile:
			return appendToFile(c, file, text+end)
		case toLog:
			c.Printer().Logger.Log(c.Context(), level, text+strings.TrimSuffix(end, "\n"))
		default:
			c.Printer().Print(streamOf(c, stream), []byte(text+end))
		}
		return nil
	}, nil
}

func streamOf(c *exec.KernelContext, name string) io.Writer {
	if name == "stdout" {
		return c.Printer().Stdout
	}
	return c.Printer().Stderr
}

func appendToFile(c *exec.KernelContext, name, text string) error {
	path, err := c.ResolvePath(name)
	if err != nil {
		return c.FileError(err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return c.FileError(err)
	}
	_, err = f.WriteString(text)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return c.FileError(err)
	}
	return nil
}
