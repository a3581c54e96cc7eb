package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"
	"google.golang.org/protobuf/proto"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/tfevents/tfrecord"
)

func verifyCommand() *cli.Command {
	return &cli.Command{
		Name:      "verify",
		Usage:     "check every record of files: checksums and content",
		ArgsUsage: "PATH...",
		Description: "TensorBoard's loaders check less, and say nothing: the one stops at a damaged\n" +
			"record, the other shows what is in it.",
		Flags:  []cli.Flag{jsonFlag()},
		Action: verify,
	}
}

// fileInfo is a file as verify --json prints it.
type fileInfo struct {
	File    string      `json:"file"`
	Bytes   int64       `json:"bytes"`
	Records int         `json:"records"` // intact ones
	Lost    int64       `json:"lost"`    // bytes that belong to no intact record
	Damage  []damageAt  `json:"damage"`
	Format  compression `json:"compression,omitempty"`
}

// compression is how a file is compressed, "" if it is not.
type compression = tfrecord.Compression

// damageAt is a damaged place.
type damageAt struct {
	Offset int64  `json:"offset"` // in the stream that the file holds
	Part   string `json:"part"`   // length, data or event
	Torn   bool   `json:"torn"`   // the file ends within the record
	Lost   int64  `json:"lost"`   // bytes
	Error  string `json:"error"`
}

func verify(c *cli.Context) error {
	args, err := someArgs(c, "PATH")
	if err != nil {
		return err
	}
	s, err := openSource(c, args...)
	if err != nil {
		return err
	}
	report := newFullReporter(c)
	infos := []fileInfo{}
	for _, path := range s.files() {
		info, err := verifyFile(s, path, report)
		if err != nil {
			return err
		}
		infos = append(infos, *info)
	}
	if c.Bool("json") {
		err = printJSON(c.App.Writer, infos)
	} else {
		err = printVerified(c, infos)
	}
	if err != nil {
		return err
	}
	return report.result()
}

func printVerified(c *cli.Context, infos []fileInfo) error {
	style := screenOf(c).style
	for _, i := range infos {
		verdict := style.Good("intact")
		if len(i.Damage) > 0 {
			verdict = style.Bad(fmt.Sprintf("damaged, %d bytes lost", i.Lost))
		}
		if _, err := fmt.Fprintf(c.App.Writer, "%s: %d intact records, %d bytes; %s\n", shown(i.File), i.Records, i.Bytes, verdict); err != nil {
			return err
		}
	}
	return nil
}

func verifyFile(s *source, path string, report *reporter) (*fileInfo, error) {
	info := &fileInfo{File: path, Damage: []damageAt{}}
	if stat, err := os.Stat(path); err == nil {
		info.Bytes = stat.Size()
	}
	damaged := func(err error) {
		info.Damage = append(info.Damage, damageOf(err))
		report.damaged(err)
	}
	var heads tfevents.HeadScanner // which fails where decoding does
	size, err := s.eachRecord(path, func(offset int64, data []byte) error {
		if _, err := heads.Scan(data); err != nil {
			damaged(noEvent(path, offset, data, err))
			return nil
		}
		info.Records++
		return nil
	}, damaged)
	if err != nil {
		return nil, err
	}
	if path == stdinName {
		info.Bytes = size
	}
	for i := range info.Damage {
		d := &info.Damage[i]
		if d.Lost == 0 { // nothing follows
			d.Lost = size - d.Offset
		}
		info.Lost += d.Lost
	}
	return info, nil
}

func damageOf(err error) damageAt {
	d := damageAt{Error: err.Error()}
	var damage *tfrecord.CorruptError
	if errors.As(err, &damage) {
		d.Offset, d.Part, d.Torn, d.Lost = damage.Offset, damage.Part, damage.Torn(), damage.Lost
	}
	return d
}

func repairCommand() *cli.Command {
	return &cli.Command{
		Name:      "repair",
		Usage:     "copy the intact records of a damaged file into a new one",
		ArgsUsage: "FILE NEWFILE",
		Description: "FILE is left as it is, NEWFILE must not exist. TensorBoard shows both as long as\n" +
			"both are in the log directory under names that contain \"tfevents\".",
		Flags:  []cli.Flag{dryRunFlag(), jsonFlag()},
		Action: repair,
	}
}

// repairInfo is what repair --json prints.
type repairInfo struct {
	File    string     `json:"file"`
	DryRun  bool       `json:"dry_run,omitempty"`
	Records int        `json:"records"`
	Damage  []damageAt `json:"damage"`

	VersionRestored bool `json:"version_restored,omitempty"`
}

func repair(c *cli.Context) error {
	from, to, err := twoArgs(c, "FILE", "NEWFILE")
	if err != nil {
		return err
	}
	if err := existingFile(c, from); err != nil {
		return err
	}
	s, err := openSource(c, from)
	if err != nil {
		return err
	}
	report := newFullReporter(c)
	info := repairInfo{File: to, DryRun: c.Bool("dry-run"), Damage: []damageAt{}}
	var out damagedCopy
	damaged := func(err error) {
		out.damaged()
		info.Damage = append(info.Damage, damageOf(err))
		report.damaged(err)
	}
	err = newRecords(c, to, func(w *tfrecord.Writer) error {
		out.w = w
		_, err := s.eachRecord(from, func(offset int64, data []byte) error {
			if err := proto.Unmarshal(data, new(tfpb.Event)); err != nil {
				damaged(noEvent(from, offset, data, err))
				return nil
			}
			info.Records++
			return errors.Join(out.intact(data), w.Write(data))
		}, damaged)
		if err == nil && info.Records == 0 {
			err = fmt.Errorf("%w: %s has no intact record", errNothing, from)
		}
		return err
	})
	if err != nil {
		return err
	}
	info.VersionRestored = out.restored
	words := "%s holds the %d intact records of %s; damaged places left out: %d"
	if out.restored {
		words += "; the version at its beginning was lost, and written again"
	}
	return printReport(c, info, words, to, info.Records, from, report.count)
}

// printReport prints what a command has done: in words to people, or as JSON to
// scripts.
func printReport(c *cli.Context, info any, format string, args ...any) error {
	if c.Bool("json") {
		return printJSON(c.App.Writer, info)
	}
	_, err := fmt.Fprintf(c.App.ErrWriter, "tfevents: "+format+"\n", args...)
	return err
}
