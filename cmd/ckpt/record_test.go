package main

import (
	"context"
	"os"
	"strconv"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/trainerd/trainerd/ckptfmt/manifest"
)

// record DIR NAME STEP FORMAT FILES...: writes the record of a program's checkpoint,
// as trainerd does when it has verified it.
func record(ts *testscript.TestScript, neg bool, words []string) {
	if neg || len(words) < 5 {
		ts.Fatalf("usage: record DIR NAME STEP FORMAT FILES...")
	}
	dir := ts.MkAbs(words[0])
	root, err := os.OpenRoot(dir)
	ts.Check(err)
	defer root.Close()
	step, err := strconv.ParseInt(words[2], 10, 64)
	ts.Check(err)
	files, err := manifest.Describe(context.Background(), root, words[4:])
	ts.Check(err)
	parts := words[1:2]
	if _, err := root.Stat(words[1]); err != nil { // a prefix
		parts = words[4:]
	}
	r := &manifest.Record{Name: words[1], Step: step, Format: words[3], Verified: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Parts: parts, Files: files}
	ts.Check(r.Write(nil, dir))
}
