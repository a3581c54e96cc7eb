package tfproto

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/proto/tbpb"
)

// goldenDir holds messages as TensorFlow's Python writes and prints them; its
// make_text_golden.py says how they were made.
var goldenDir = filepath.Join("..", "..", "fixtures", "proto", "text")

var newByType = map[string]func() proto.Message{
	"CheckpointState": func() proto.Message { return new(tfpb.CheckpointState) },
	"ConfigProto":     func() proto.Message { return new(tfpb.ConfigProto) },
	"Event":           func() proto.Message { return new(tfpb.Event) },
	"GraphDef":        func() proto.Message { return new(tfpb.GraphDef) },
	"MetaGraphDef":    func() proto.Message { return new(tfpb.MetaGraphDef) },
	"ProjectorConfig": func() proto.Message { return new(tbpb.ProjectorConfig) },
	"TensorProto":     func() proto.Message { return new(tfpb.TensorProto) },
}

type golden struct {
	name   string
	new    func() proto.Message
	binary []byte
	text   string
}

func (g golden) message(t testing.TB) proto.Message {
	t.Helper()
	m := g.new()
	if err := proto.Unmarshal(g.binary, m); err != nil {
		t.Fatalf("%s: %v", g.name, err)
	}
	return m
}

func goldens(t testing.TB) []golden {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(goldenDir, "*.pb"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden messages in %s (%v)", goldenDir, err)
	}
	var list []golden
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".pb")
		typ, _, _ := strings.Cut(name, "-")
		if newByType[typ] == nil {
			t.Fatalf("%s: unknown message type %q", file, typ)
		}
		list = append(list, golden{
			name:   name,
			new:    newByType[typ],
			binary: readFile(t, file),
			text:   string(readFile(t, strings.TrimSuffix(file, ".pb")+".pbtxt")),
		})
	}
	return list
}

func goldenNamed(t testing.TB, name string) golden {
	t.Helper()
	for _, g := range goldens(t) {
		if g.name == name {
			return g
		}
	}
	t.Fatalf("no golden message %q", name)
	return golden{}
}

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
