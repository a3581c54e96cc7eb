package runtime_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime"
	"github.com/trainerd/trainerd/trainerd/session"
)

func textAttr(s string) *tfpb.AttrValue {
	return &tfpb.AttrValue{Value: &tfpb.AttrValue_S{S: []byte(s)}}
}

func intAttr(n int64) *tfpb.AttrValue { return &tfpb.AttrValue{Value: &tfpb.AttrValue_I{I: n}} }

// printing is a graph whose ops print to every stream. Nothing uses what they give.
func printing(file string) *tfpb.GraphDef {
	text := nodeDef("text", "StringFormat", "c")
	text.Attr = map[string]*tfpb.AttrValue{"T": typesAttr(tfpb.DataType_DT_FLOAT), "template": textAttr("c is {}"), "placeholder": textAttr("{}"), "summarize": intAttr(3)}
	def := &tfpb.GraphDef{Node: []*tfpb.NodeDef{constant("c", 1, 2), text}}
	for name, stream := range map[string]string{"out": "stdout", "err": "stderr", "warn": "log(warning)", "file": "file://" + file} {
		n := nodeDef(name, "PrintV2", "text")
		n.Attr = map[string]*tfpb.AttrValue{"output_stream": textAttr(stream)}
		def.Node = append(def.Node, n)
	}
	first := nodeDef("first", "Print", "c", "c", "text")
	first.Attr = map[string]*tfpb.AttrValue{"T": typeAttr(tfpb.DataType_DT_FLOAT), "U": typesAttr(tfpb.DataType_DT_FLOAT, tfpb.DataType_DT_STRING),
		"message": textAttr("100%: "), "first_n": intAttr(2), "summarize": intAttr(1)}
	def.Node = append(def.Node, first)
	return def
}

// TestPrinting runs ops that print, thrice: each to its own stream, and Print as often
// as first_n says.
func TestPrinting(t *testing.T) {
	var out, errs, log bytes.Buffer
	file := filepath.Join(t.TempDir(), "lines")
	s, err := runtime.New(printing(file), &runtime.Options{Stdout: &out, Stderr: &errs, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, op := range []string{"out", "err", "warn", "file", "first"} {
		for range 3 {
			if _, err := s.Run(context.Background(), nil, nil, []string{op}); err != nil {
				t.Fatal(err)
			}
		}
	}
	lines, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const line = "c is [1 2]\n"
	if want := strings.Repeat(line, 3); out.String() != want || string(lines) != want {
		t.Errorf("stdout %q, file %q; want %q", out.String(), lines, want)
	}
	if want := strings.Repeat(line, 3) + strings.Repeat("100%: [1...][c is [1 2]]\n", 2); errs.String() != want {
		t.Errorf("stderr %q, want %q", errs.String(), want)
	}
	if n := strings.Count(log.String(), `level=WARN msg="c is [1 2]"`); n != 3 {
		t.Errorf("%d lines in the log, want 3:\n%s", n, log.String())
	}
}

// TestPrintingIsBound prints where there is no stream, and to a file that the session
// may not write.
func TestPrintingIsBound(t *testing.T) {
	s, err := runtime.New(printing("/elsewhere/lines"), &runtime.Options{FilesWithin: []string{t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Run(context.Background(), nil, nil, []string{"out", "err", "warn", "first"}); err != nil {
		t.Error(err)
	}
	var op *session.OpError
	if _, err := s.Run(context.Background(), nil, nil, []string{"file"}); !errors.As(err, &op) || op.Code != tfpb.Code_PERMISSION_DENIED || op.Node != "file" {
		t.Errorf("%v; want PERMISSION_DENIED of node file", err)
	}
	other := nodeDef("odd", "PrintV2", "text")
	other.Attr = map[string]*tfpb.AttrValue{"output_stream": textAttr("printer")}
	if err := s.Extend(&tfpb.GraphDef{Node: []*tfpb.NodeDef{other}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Check(nil, nil, []string{"odd"}); err == nil || !strings.Contains(err.Error(), `"printer"`) {
		t.Errorf("%v; want an error about the stream", err)
	}
}
