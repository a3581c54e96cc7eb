package data_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kerneltest"
)

// TestTextLineReader reads the lines of two files that a queue names, one at a
// time and several, and counts them, with the ops of both forms.
func TestTextLineReader(t *testing.T) {
	for _, version := range []string{"", "V2"} {
		t.Run("ops"+version, func(t *testing.T) { readLines(t, version) })
	}
}

func readLines(t *testing.T, version string) {
	t.Helper()
	dir := t.TempDir()
	a, b := file(t, dir, "a", "one\ntwo\n"), file(t, dir, "b", "three\nfour\nfive\n")
	g := kerneltest.New(t)
	queue := g.Node("FIFOQueue"+version, nil, "component_types", []tfpb.DataType{exec.String}, "shapes", anyShape)
	fill := g.Node("QueueEnqueueMany"+version, []string{queue, kerneltest.Vector(g, a, b)})
	end := g.Node("QueueClose"+version, []string{queue})
	reader := g.Node("TextLineReader"+version, nil)
	read := g.Node("ReaderRead"+version, []string{reader, queue})
	readMore := g.Node("ReaderReadUpTo"+version, []string{reader, queue, kerneltest.Scalar[int64](g, 2)})
	count := g.Node("ReaderNumRecordsProduced"+version, []string{reader})

	g.Run(nil, fill)
	g.Run(nil, end)
	got := g.Run([]string{read + ":0", read + ":1"})
	kerneltest.Want(t, got[0], a+":1")
	kerneltest.Want(t, got[1], "one")
	// A call takes the records of one file only.
	kerneltest.Want(t, g.Run([]string{readMore + ":1"})[0], "two")
	kerneltest.Want(t, g.Run([]string{readMore + ":1"})[0], "three", "four")
	kerneltest.Want(t, g.Run([]string{readMore + ":0"})[0], b+":3")
	kerneltest.Want[int64](t, g.Run([]string{count})[0], 5)
	if _, err := g.Try([]string{read + ":1"}); err == nil || kerneltest.Code(err) != tfpb.Code_OUT_OF_RANGE {
		t.Errorf("got %v, want OUT_OF_RANGE", err)
	}
}

// TestCloseEndsReading: a session that is closed in the middle of a file has it open
// no longer.
func TestCloseEndsReading(t *testing.T) {
	a := file(t, t.TempDir(), "a", "one\ntwo\n")
	g := kerneltest.New(t)
	queue := g.Node("FIFOQueueV2", nil, "component_types", []tfpb.DataType{exec.String}, "shapes", anyShape)
	fill := g.Node("QueueEnqueueManyV2", []string{queue, kerneltest.Vector(g, a)})
	read := g.Node("ReaderReadV2", []string{g.Node("TextLineReaderV2", nil), queue})
	g.Run(nil, fill)
	g.Run([]string{read + ":1"})
	if runtime.GOOS == "linux" && !isOpen(t, a) {
		t.Fatal("the file is not open while it is read")
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	if isOpen(t, a) {
		t.Error("the file is open after the end of the session")
	}
}

// isOpen reports whether the process has a file open, where the system tells.
func isOpen(t *testing.T, name string) bool {
	t.Helper()
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && target == name {
			return true
		}
	}
	return false
}
