package runtime_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime"
	"github.com/trainerd/trainerd/trainerd/session"
)

// TestFilesWithin lets each op on files at a directory, at another one, and at
// the other one by links in the first.
func TestFilesWithin(t *testing.T) {
	inside, outside := t.TempDir(), t.TempDir()
	for _, dir := range []string{inside, outside} {
		if err := os.WriteFile(filepath.Join(dir, "file"), recordsOf(1), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(inside, "dir")); err != nil {
		t.Fatal(err)
	}
	linked := t.TempDir() // its checkpoint is a link
	for _, name := range []string{"link", "ckpt.index", "ckpt.data-00000-of-00001"} {
		if err := os.Symlink(filepath.Join(outside, "file"), filepath.Join(linked, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(outside, "nothing"), filepath.Join(inside, "dangling")); err != nil {
		t.Fatal(err)
	}
	save := func(p *pipe, op, name string) string {
		x := p.long(3)
		if op == "SaveV2" {
			return p.node(op, []string{p.text(name), p.names("x"), p.names(""), x}, "dtypes", oneLong)
		}
		return p.node(op, []string{p.text(name), p.names("x"), x}, "T", oneLong)
	}
	read := func(p *pipe, op, name string) string {
		q := p.queueNode("FIFOQueueV2", "q", dtString, 3)
		enqueue := p.node("QueueEnqueueV2", []string{q, p.text(name)})
		return p.node("ReaderReadV2", []string{p.node(op, nil), q, "^" + enqueue})
	}
	next := func(p *pipe, ds string) string {
		it := p.node("IteratorV2", nil, "output_types", types(dtString))
		return p.node("IteratorGetNext", []string{it, "^" + p.node("MakeIterator", []string{ds, it})}, "output_types", types(dtString))
	}
	ops := map[string]func(p *pipe, name string) string{
		"ReadFile":      func(p *pipe, name string) string { return p.node("ReadFile", []string{p.text(name)}) },
		"WriteFile":     func(p *pipe, name string) string { return p.node("WriteFile", []string{p.text(name), p.text("x")}) },
		"MatchingFiles": func(p *pipe, name string) string { return p.node("MatchingFiles", []string{p.text(name + "*")}) },
		"SaveV2":        func(p *pipe, name string) string { return save(p, "SaveV2", name) },
		"Save":          func(p *pipe, name string) string { return save(p, "Save", name) },
		"RestoreV2": func(p *pipe, name string) string {
			return p.node("RestoreV2", []string{p.text(name), p.names("x"), p.names("")}, "dtypes", oneLong)
		},
		"Restore": func(p *pipe, name string) string {
			return p.node("Restore", []string{p.text(name), p.text("x")}, "dt", dtInt64)
		},
		"MergeV2Checkpoints": func(p *pipe, name string) string {
			return p.node("MergeV2Checkpoints", []string{p.names(name), p.text(filepath.Join(inside, "merged"))})
		},
		"TFRecordReader":  func(p *pipe, name string) string { return read(p, "TFRecordReaderV2", name) },
		"WholeFileReader": func(p *pipe, name string) string { return read(p, "WholeFileReaderV2", name) },
		"TFRecordDataset": func(p *pipe, name string) string {
			return next(p, p.node("TFRecordDataset", []string{p.text(name), p.text(""), p.long(0)}))
		},
		"MatchingFilesDataset": func(p *pipe, name string) string {
			return next(p, p.node("MatchingFilesDataset", []string{p.text(name + "*")}))
		},
	}
	denied := &session.OpError{Code: tfpb.Code_PERMISSION_DENIED}
	for op, make := range ops {
		for _, name := range []string{filepath.Join(outside, "file"), filepath.Join(inside, "dir", "file"), filepath.Join(inside, "dir", "new"),
			filepath.Join(inside, "..", filepath.Base(outside), "file"), filepath.Join(inside, "dangling")} {
			p := newPipe(t)
			target := make(p, name)
			err := runWithin(t, p, target, inside)
			// The pattern of a link to nothing matches nothing that is allowed.
			if matches := op == "MatchingFiles" || op == "MatchingFilesDataset"; matches && filepath.Base(name) == "dangling" {
				continue
			}
			if !errors.Is(err, denied) {
				t.Errorf("%s of %s: %v, want PERMISSION_DENIED", op, name, err)
			}
		}
		p := newPipe(t)
		if err := runWithin(t, p, make(p, filepath.Join(inside, "file")), inside); errors.Is(err, denied) {
			t.Errorf("%s inside: %v", op, err)
		}
	}
	for _, op := range []string{"RestoreV2", "Restore", "SaveV2", "MergeV2Checkpoints"} {
		p := newPipe(t)
		if err := runWithin(t, p, ops[op](p, filepath.Join(linked, "ckpt")), linked); !errors.Is(err, denied) {
			t.Errorf("%s of a checkpoint that is a link: %v, want PERMISSION_DENIED", op, err)
		}
	}
	for name := range map[string]bool{"new": true, "nothing": true} {
		if _, err := os.Lstat(filepath.Join(outside, name)); err == nil {
			t.Errorf("%s was written outside", name)
		}
	}
}

func runWithin(t *testing.T, p *pipe, target string, dirs ...string) error {
	t.Helper()
	s, err := runtime.New(p.def, &runtime.Options{FilesWithin: dirs})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, err = s.Run(context.Background(), nil, nil, []string{target})
	return err
}

// TestMaxMemory bounds what the steps of a session take together.
func TestMaxMemory(t *testing.T) {
	p := newPipe(t)
	var targets []string
	for range 4 {
		targets = append(targets, p.node("Fill", []string{p.node("Identity", []string{"n"}, "T", tfpb.DataType_DT_INT32), "x"}, "T", tfpb.DataType_DT_FLOAT, "index_type", tfpb.DataType_DT_INT32))
	}
	p.def.Node = append(p.def.Node, constant("x", 1), &tfpb.NodeDef{Name: "n", Op: "Const", Attr: attrs("dtype", tfpb.DataType_DT_INT32,
		"value", &tfpb.TensorProto{Dtype: tfpb.DataType_DT_INT32, TensorShape: &tfpb.TensorShapeProto{Dim: []*tfpb.TensorShapeProto_Dim{{Size: 1}}}, IntVal: []int32{1 << 20}})})
	s, err := runtime.New(p.def, &runtime.Options{MaxMemory: 10 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i, target := range targets {
		_, err := s.Run(context.Background(), nil, nil, []string{target})
		if full := i >= 2; full != errors.Is(err, exhausted) || !full && err != nil {
			t.Errorf("value %d of 4 MiB each: %v", i, err)
		}
	}
	if _, err := s.Run(context.Background(), nil, nil, targets[:1]); err != nil {
		t.Errorf("a step that has its memory already: %v", err)
	}
}

// A relative pattern is looked for in the folder of the graph, also where the name
// of that looks like a pattern.
func TestMatchingFilesInFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "lr=[0.1]")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, within := range [][]string{nil, {dir}} {
		p := newPipe(t)
		found := p.node("MatchingFiles", []string{p.text("*.txt")})
		s, err := runtime.New(p.def, &runtime.Options{Dir: dir, FilesWithin: within})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		out, err := s.Run(t.Context(), nil, []string{found}, nil)
		if err != nil || len(out[0].Strings) != 1 || string(out[0].Strings[0]) != "./a.txt" {
			t.Errorf("within %q: %v, %v", within, out, err)
		}
	}
}
