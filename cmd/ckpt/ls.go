package main

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/urfave/cli/v2"
)

func jsonFlag() cli.Flag { return &cli.BoolFlag{Name: "json", Usage: "print JSON"} }

func lsCommand() *cli.Command {
	return &cli.Command{
		Name:      "ls",
		Usage:     "list the checkpoints of a directory, or the tensors of a checkpoint",
		ArgsUsage: "DIR|PREFIX",
		Flags: []cli.Flag{
			jsonFlag(),
			&cli.BoolFlag{Name: "long", Aliases: []string{"l"}, Usage: "of tensors also shard, offset, checksum and slices"},
		},
		Action: func(c *cli.Context) error {
			a, err := args(c, "DIR or PREFIX")
			if err != nil {
				return err
			}
			if isDir(a[0]) {
				return lsCheckpoints(c, a[0])
			}
			return lsTensors(c, a[0])
		},
	}
}

// checkpointJSON is an element of `ckpt ls DIR --json`.
type checkpointJSON struct {
	Prefix string    `json:"prefix"`
	Step   *int64    `json:"step"` // null when the name has none
	Time   time.Time `json:"time"`
	Bytes  int64     `json:"bytes"`
	Latest bool      `json:"latest"` // the state file names it
}

func lsCheckpoints(c *cli.Context, dir string) error {
	list, err := ckptfmt.List(dir)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		out := make([]checkpointJSON, len(list))
		for i, ck := range list {
			out[i] = checkpointJSON{Prefix: ck.Prefix, Time: ck.Time.UTC(), Bytes: ck.Bytes, Latest: ck.Latest}
			if ck.Step >= 0 {
				out[i].Step = &ck.Step
			}
		}
		err = printList(c.App.Writer, out)
	} else {
		err = printCheckpoints(c.App.Writer, list)
	}
	if err != nil {
		return err
	}
	if len(list) == 0 {
		fmt.Fprintf(c.App.ErrWriter, "ckpt: there are no checkpoints in %s\n", dir)
		return exitError(exitNothing)
	}
	return explainState(c.App.ErrWriter, dir)
}

func printCheckpoints(w io.Writer, list []ckptfmt.Checkpoint) error {
	if len(list) == 0 {
		return nil
	}
	var t table
	t.add("STEP", "TIME", "SIZE", "PREFIX")
	for _, ck := range list {
		step := "-"
		if ck.Step >= 0 {
			step = strconv.FormatInt(ck.Step, 10)
		}
		row := []string{step, ck.Time.Format(time.DateTime), sizeText(ck.Bytes), printable(ck.Prefix)}
		if ck.Latest {
			row = append(row, "<- checkpoint")
		}
		t.add(row...)
	}
	return t.write(w)
}

// explainState warns when the state file does not lead to a checkpoint.
func explainState(w io.Writer, dir string) error {
	if _, err := ckptfmt.LatestCheckpoint(dir, ""); err != nil {
		fmt.Fprintf(w, "ckpt: none of them is in force: %v\n", err)
	}
	return nil
}

// tensorJSON is an element of `ckpt ls PREFIX --json`. What --long adds is
// left out without it.
type tensorJSON struct {
	Name   string  `json:"name"`
	DType  string  `json:"dtype"`
	Shape  []int64 `json:"shape"`
	Bytes  int64   `json:"bytes"`
	Shard  *int    `json:"shard,omitempty"`
	Offset *int64  `json:"offset,omitempty"`
	CRC32C *uint32 `json:"crc32c,omitempty"` // masked, as it is stored

	Slices []string `json:"slices,omitempty"`
}

func lsTensors(c *cli.Context, arg string) error {
	r, prefix, err := open(arg)
	if err != nil {
		return err
	}
	defer r.Close()
	var list []ckptfmt.TensorInfo
	for info, err := range r.Tensors() {
		if err != nil {
			return fmt.Errorf("%w; `ckpt verify %s` shows all damage", err, prefix)
		}
		list = append(list, info)
	}
	if c.Bool("json") {
		return printTensorsJSON(c.App.Writer, list, c.Bool("long"))
	}
	if err := printTensors(c.App.Writer, list, c.Bool("long")); err != nil {
		return err
	}
	return summarise(c.App.ErrWriter, list)
}

func printTensorsJSON(w io.Writer, list []ckptfmt.TensorInfo, long bool) error {
	out := make([]tensorJSON, len(list))
	for i, t := range list {
		out[i] = tensorJSON{Name: t.Name, DType: ckptfmt.DTypeName(t.DType), Shape: append([]int64{}, t.Shape...), Bytes: t.Bytes}
		if !long {
			continue
		}
		if len(t.Slices) == 0 {
			out[i].Shard, out[i].Offset, out[i].CRC32C = &list[i].Shard, &list[i].Offset, &list[i].CRC
		}
		for _, s := range t.Slices {
			out[i].Slices = append(out[i].Slices, s.String())
		}
	}
	return printList(w, out)
}

func printTensors(w io.Writer, list []ckptfmt.TensorInfo, long bool) error {
	var t table
	header := []string{"NAME", "DTYPE", "SHAPE", "BYTES"}
	if long {
		header = append(header, "SHARD", "OFFSET", "CRC32C")
	}
	t.add(header...)
	for _, x := range list {
		row := []string{printable(x.Name), ckptfmt.DTypeName(x.DType), shapeText(x.Shape), strconv.FormatInt(x.Bytes, 10)}
		switch {
		case long && len(x.Slices) > 0:
			row = append(row, fmt.Sprintf("%d slices", len(x.Slices)))
		case long:
			row = append(row, strconv.Itoa(x.Shard), strconv.FormatInt(x.Offset, 10), fmt.Sprintf("%08x", x.CRC))
		}
		t.add(row...)
	}
	return t.write(w)
}

// summarise adds up what the tensors hold.
func summarise(w io.Writer, list []ckptfmt.TensorInfo) error {
	var elements, bytes int64
	for _, x := range list {
		n, err := ckptfmt.NumElements(x.Shape)
		if err != nil {
			return err
		}
		elements += n
		bytes += x.Bytes
	}
	_, err := fmt.Fprintf(w, "%d tensors, %d elements, %s\n", len(list), elements, sizeText(bytes))
	return err
}
