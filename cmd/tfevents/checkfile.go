package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/trainerd/trainerd/internal/lazyregexp"
	tfpb "github.com/trainerd/trainerd/proto"

	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/tfevents/tfrecord"
)

// usualName matches the names that TensorFlow and its kin give their files.
var usualName = lazyregexp.New(`^events\.out\.tfevents\.\d{10}\..*[^~]$`)

var backupSuffix = lazyregexp.New(`\.(bak|tmp|swp|old|orig|gz|zip|part)$`)

// fileTimes is when the events of a file happened, as they say. Zero times and
// such that are not numbers do not count.
type fileTimes struct {
	name        string
	first, last float64
	events      int
	back        int  // times that the clock went back by more than leap
	starts      int  // SessionLog START
	untimed     bool // an event's time is NaN or infinite
	usual       bool // it begins with version 2, has no other, and each event has a time
}

// leap is how far behind the event before it an event may be: programs with
// several threads write them a little out of order.
const leap = 5.0

// Times beyond are not seconds since 1970: the one is the year 1985, the other,
// in milliseconds, still 1973.
const (
	earliest = 5e8
	latest   = 1e11
)

func (t *fileTimes) add(wall float64) {
	if !(wall > 0) || math.IsInf(wall, 0) {
		return
	}
	if t.events > 0 && wall < t.last-leap {
		t.back++
	}
	if t.events == 0 {
		t.first = wall
	}
	t.last = wall
	t.events++
}

// checkFile checks one file for what makes a loader stop or misunderstand it.
func (k *runChecker) checkFile(run tfevents.Run, name string) (*fileTimes, error) {
	seen := fileTimes{name: name}
	add := func(damage bool, format string, args ...any) {
		k.findings = append(k.findings, finding{Run: run.Name, File: name, Damage: damage, Problem: fmt.Sprintf(format, args...)})
	}
	if base := filepath.Base(name); !tfevents.IsEventsFile(name) {
		add(false, "is not read: its name does not contain \"tfevents\"")
	} else if !usualName().MatchString(base) || backupSuffix().MatchString(base) {
		add(false, "is read too, in the order of its name, because that contains \"tfevents\"; move copies out of the log directory")
	}
	f := fileChecker{seen: &seen, add: add}
	in, err := k.source.open(name)
	if err == nil {
		f.compression = in.compression
		in.Close()
		_, err = k.source.eachRecord(name, f.record, func(err error) { add(true, "%s", damageProblem(err)) })
	}
	if k.source.ctx.Err() != nil {
		return nil, k.source.ctx.Err()
	}
	if err != nil {
		add(false, "cannot be read: %v", err)
		return &seen, nil
	}
	f.finish()
	seen.usual, seen.untimed = f.usual(), f.noTime+f.infinite > 0
	if info, err := os.Stat(name); err == nil && info.Size() == 0 {
		k.findings = append(k.findings, finding{Run: run.Name, File: name, Note: true, Problem: "is empty"})
	}
	return &seen, nil
}

// fileChecker looks at the events of one file.
type fileChecker struct {
	seen             *fileTimes
	heads            tfevents.HeadScanner
	add              func(damage bool, format string, args ...any)
	compression      compression
	behindFirst      bool
	noTime, infinite int
	versions         int
	first            bool // the first event says version 2
}

// version2 is what every current writer puts into the first event.
const version2 = "brain.Event:2"

// usual reports whether loaders take the file for what it is: only then is it
// certain that they drop no more than what is overtaken.
func (f *fileChecker) usual() bool {
	return f.first && f.versions == 1 && f.noTime == 0 && f.infinite == 0 && !strings.HasSuffix(f.seen.name, ".profile-empty")
}

func (f *fileChecker) record(_ int64, data []byte) error {
	e, err := f.heads.Scan(data)
	if err != nil {
		f.add(true, "holds a record that is not an event: the Python loader stops loading, also other runs; the data server gives up this file")
		return nil
	}
	if !f.behindFirst && e.Version == "" {
		f.add(false, "does not begin with a version: the Python loader takes every step back for a restart and drops points")
	}
	if e.Version != "" {
		f.versions++
		f.first = f.first || !f.behindFirst && e.Version == version2
	}
	if e.Session == tfpb.SessionLog_START {
		f.seen.starts++
	}
	f.behindFirst = true
	switch wall := e.WallTime; {
	case math.IsNaN(wall):
		if f.noTime++; f.noTime == 1 {
			f.add(false, "holds an event at step %d without a time: the data server gives up the file there", e.Step)
		}
	case math.IsInf(wall, 0):
		if f.infinite++; f.infinite == 1 {
			f.add(false, "holds an event at step %d with an infinite time: the data server does not show it", e.Step)
		}
	default:
		f.seen.add(wall)
	}
	return nil
}

func (f *fileChecker) finish() {
	if f.compression != tfrecord.Uncompressed {
		f.add(false, "is compressed (%s): TensorBoard reads no compressed files; `tfevents repair` makes a plain one", f.compression)
	}
	if f.seen.back > 0 {
		f.add(false, "the clock went back %s: the horizontal axes \"relative\" and \"wall\" run back there", times(f.seen.back))
	}
	if f.seen.events > 0 && (f.seen.last > latest || f.seen.last < earliest && f.seen.last > 1e6) {
		f.add(false, "its times are not seconds since 1970 (the last is %s)", formatNumber(f.seen.last))
	}
}

// checkOrder compares the files of a run: TensorBoard reads them in the order of
// their names, and the Python loader leaves each permanently once there is a later
// one.
func (k *runChecker) checkOrder(run tfevents.Run, files []*fileTimes) {
	var before *fileTimes
	for _, f := range files {
		if f.events == 0 {
			continue
		}
		if before != nil {
			problem := ""
			switch {
			case f.first == before.first && f.first != 0:
				problem = fmt.Sprintf("begins with the time of %s, as a copy does: the Python loader shows the points of both; move copies out of the log directory", filepath.Base(before.name))
			case f.first < before.first-leap:
				problem = fmt.Sprintf("is read after %s, though its events are older: older points overwrite newer ones", filepath.Base(before.name))
			case before.last > f.first+leap:
				problem = fmt.Sprintf("was begun while %s was still written: a Python loader that runs meanwhile follows only the last file; the data server takes one for a restart of the other. Give each writer a directory of its own", filepath.Base(before.name))
			}
			if problem != "" {
				k.findings = append(k.findings, finding{Run: run.Name, File: f.name, Problem: problem})
			}
		}
		before = f
	}
}
