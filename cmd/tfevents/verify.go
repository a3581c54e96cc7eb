package main

import (
	"fmt"
	"os"

	"github.com/urfave/cli/v2"
	"google.golang.org/protobuf/proto"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
)

func verifyCommand() *cli.Command {
	return &cli.Command{
		Name:      "verify",
		Usage:     "check every record of files: checksums and content",
		ArgsUsage: "PATH...",
		Description: "TensorBoard's loaders check less, and say nothing: the one stops at a damaged\n" +
			"record, the other shows what is in it.",
		Flags:  []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "print JSON"}},
		Action: verify,
	}
}

// fileInfo is a file as verify --json prints it.
type fileInfo struct {
	File    string   `json:"file"`
	Bytes   int64    `json:"bytes"`
	Records int      `json:"records"` // sound ones
	Lost    int64    `json:"lost"`    // bytes
	Damage  []string `json:"damage"`
}

func verify(c *cli.Context) error {
	if c.NArg() == 0 {
		return usagef("verify: want a PATH")
	}
	report := newReporter(c)
	infos := []fileInfo{}
	for _, arg := range c.Args().Slice() {
		s, err := openSource(arg)
		if err != nil {
			return err
		}
		for _, path := range s.files() {
			info, err := verifyFile(c, path, report)
			if err != nil {
				return err
			}
			infos = append(infos, *info)
		}
	}
	if c.Bool("json") {
		if err := printJSON(c.App.Writer, infos); err != nil {
			return err
		}
	} else {
		for _, i := range infos {
			fmt.Fprintf(c.App.Writer, "%s: %d sound records, %d bytes%s\n", i.File, i.Records, i.Bytes, damageSummary(i))
		}
	}
	return report.result()
}

func damageSummary(i fileInfo) string {
	if len(i.Damage) == 0 {
		return ""
	}
	return fmt.Sprintf("; damaged, %d bytes lost", i.Lost)
}

func verifyFile(c *cli.Context, path string, report *reporter) (*fileInfo, error) {
	stat, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	info := &fileInfo{File: path, Bytes: stat.Size(), Damage: []string{}}
	sound := int64(0)
	damaged := func(err error) {
		info.Damage = append(info.Damage, err.Error())
		report.damaged(err)
	}
	err = eachRecord(path, func(data []byte) error {
		if err := proto.Unmarshal(data, new(tfpb.Event)); err != nil {
			damaged(fmt.Errorf("%s: a record holds no event: %w", path, err))
			return nil
		}
		info.Records++
		sound += int64(tfevents.RecordSize(len(data)))
		return c.Context.Err()
	}, damaged)
	if len(info.Damage) > 0 {
		info.Lost = info.Bytes - sound
	}
	return info, err
}

func repairCommand() *cli.Command {
	return &cli.Command{
		Name:      "repair",
		Usage:     "copy the sound records of a damaged file into a new one",
		ArgsUsage: "FILE NEWFILE",
		Description: "FILE is left as it is, NEWFILE must not exist. TensorBoard shows both as long as\n" +
			"both are in the log directory under names that contain \"tfevents\".",
		Action: repair,
	}
}

func repair(c *cli.Context) error {
	from, to, err := twoArgs(c, "FILE", "NEWFILE")
	if err != nil {
		return err
	}
	if info, err := os.Stat(from); err != nil {
		return err
	} else if info.IsDir() {
		return usagef("repair: %s is a directory; repair its files one by one", from)
	}
	report := newReporter(c)
	copied := 0
	err = createRecords(to, func(w *tfevents.RecordWriter) error {
		return eachRecord(from, func(data []byte) error {
			if err := c.Context.Err(); err != nil {
				return err
			}
			if err := proto.Unmarshal(data, new(tfpb.Event)); err != nil {
				report.damaged(fmt.Errorf("%s: a record holds no event: %w", from, err))
				return nil
			}
			copied++
			return w.WriteRecord(data)
		}, report.damaged)
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(c.App.ErrWriter, "tfevents: %s holds the %d sound records of %s; damaged places left out: %d\n", to, copied, from, report.count)
	return nil
}
