package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"
	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/cmd/internal/terminal"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/tfevents/summary/decode"
	"github.com/trainerd/trainerd/tfevents/tfrecord"
)

func catCommand() *cli.Command {
	return &cli.Command{
		Name:      "cat",
		Usage:     "print the events of files",
		ArgsUsage: "PATH...",
		Description: "With --json each event is one line of JSON, from which `tfevents write` makes the\n" +
			"same bytes again. The PATH - is the standard input.",
		Flags:  []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "print JSON lines"}},
		Action: cat,
	}
}

func cat(c *cli.Context) error {
	args, err := someArgs(c, "PATH")
	if err != nil {
		return err
	}
	screenOf(c).printsAsItReads()
	s, err := openSource(c, args...)
	if err != nil {
		return err
	}
	report := newFullReporter(c)
	for _, path := range s.files() {
		if err := catFile(c, s, path, report); err != nil {
			return err
		}
	}
	return report.result()
}

func catFile(c *cli.Context, s *source, path string, report *reporter) error {
	_, err := s.eachRecord(path, func(offset int64, data []byte) error {
		if c.Bool("json") {
			line, err := jsonLine(data)
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			_, err = c.App.Writer.Write(append(line, '\n'))
			return err
		}
		e := new(tfpb.Event)
		if err := proto.Unmarshal(data, e); err != nil {
			report.damaged(noEvent(path, offset, data, err))
			return nil
		}
		return printEvent(c.App.Writer, "", e)
	}, report.damaged)
	return err
}

// printEvent prints an event for people: one line, or one for each value, each
// with the prefix.
func printEvent(w io.Writer, prefix string, e *tfpb.Event) error {
	when := formatTime(e.GetWallTime(), "2006-01-02T15:04:05.000Z")
	head := fmt.Sprintf("%s%-24s %8d  ", prefix, when, e.GetStep())
	for _, line := range describe(e) {
		if _, err := fmt.Fprintln(w, head+terminal.Line(line)); err != nil {
			return err
		}
	}
	return nil
}

func describe(e *tfpb.Event) []string {
	switch what := e.GetWhat().(type) {
	case *tfpb.Event_FileVersion:
		return []string{"version " + what.FileVersion}
	case *tfpb.Event_GraphDef:
		return []string{fmt.Sprintf("graph, %d bytes", len(what.GraphDef))}
	case *tfpb.Event_MetaGraphDef:
		return []string{fmt.Sprintf("meta graph, %d bytes", len(what.MetaGraphDef))}
	case *tfpb.Event_SessionLog:
		l := what.SessionLog
		return []string{strings.TrimSpace(fmt.Sprintf("session %s %s %s", l.GetStatus(), l.GetCheckpointPath(), l.GetMsg()))}
	case *tfpb.Event_LogMessage:
		//lint:ignore SA1019 old files hold log messages
		m := what.LogMessage
		return []string{fmt.Sprintf("log %s %q", m.GetLevel(), m.GetMessage())}
	case *tfpb.Event_TaggedRunMetadata:
		m := what.TaggedRunMetadata
		return []string{fmt.Sprintf("run metadata %q, %d bytes", m.GetTag(), len(m.GetRunMetadata()))}
	case *tfpb.Event_Summary:
		var lines []string
		for _, v := range what.Summary.GetValue() {
			lines = append(lines, strconv.Quote(v.GetTag())+" "+describeValue(v))
		}
		return lines
	}
	return []string{"nothing"}
}

func describeValue(v *tfpb.Summary_Value) string {
	if x, ok := decode.Scalar(v); ok {
		return strconv.FormatFloat(x, 'g', -1, 32)
	}
	switch x := v.GetValue().(type) {
	case *tfpb.Summary_Value_Histo:
		h := x.Histo
		return fmt.Sprintf("histogram of %g values from %g to %g", h.GetNum(), h.GetMin(), h.GetMax())
	case *tfpb.Summary_Value_Image:
		return fmt.Sprintf("image %dx%d, %d bytes", x.Image.GetWidth(), x.Image.GetHeight(), len(x.Image.GetEncodedImageString()))
	case *tfpb.Summary_Value_Audio:
		return fmt.Sprintf("audio, %d frames at %g Hz", x.Audio.GetLengthFrames(), x.Audio.GetSampleRate())
	case *tfpb.Summary_Value_Tensor:
		return describeTensor(v.GetMetadata().GetPluginData().GetPluginName(), x.Tensor)
	}
	return "no value"
}

func describeTensor(plugin string, t *tfpb.TensorProto) string {
	if s := t.GetStringVal(); plugin == summary.PluginText && len(s) == 1 {
		return strconv.Quote(string(s[0]))
	}
	shape := make([]string, len(t.GetTensorShape().GetDim()))
	for i, d := range t.GetTensorShape().GetDim() {
		shape[i] = strconv.FormatInt(d.GetSize(), 10)
	}
	text := fmt.Sprintf("tensor %s [%s]", strings.TrimPrefix(t.GetDtype().String(), "DT_"), strings.Join(shape, ","))
	if plugin != "" {
		text = plugin + " " + text
	}
	return text
}

func writeCommand() *cli.Command {
	return &cli.Command{
		Name:        "write",
		Usage:       "make an events file of JSON lines",
		ArgsUsage:   "FILE",
		Description: "Reads from the standard input what `tfevents cat --json` printed. FILE must not exist.",
		Action: func(c *cli.Context) error {
			name, err := oneArg(c, "FILE")
			if err != nil {
				return err
			}
			return newRecords(c, name, func(w *tfrecord.Writer) error { return writeLines(c, w) })
		},
	}
}

func writeLines(c *cli.Context, w *tfrecord.Writer) error {
	lines := bufio.NewReaderSize(&interruptible{ctx: c.Context, r: c.App.Reader}, 1<<16)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return err
		}
		end := err == io.EOF
		if line = bytes.TrimSpace(line); len(line) > 0 {
			data, err := recordOf(line)
			if err != nil {
				return fmt.Errorf("standard input, line %d: not an event as `tfevents cat --json` prints it: %w", n, err)
			}
			if err := w.Write(data); err != nil {
				return err
			}
		}
		if end || c.Context.Err() != nil {
			return c.Context.Err()
		}
	}
}
