package main

import (
	"fmt"
	"io"
	"math"
	"regexp"
	"strings"

	"github.com/urfave/cli/v2"
	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/internal/tfproto"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
)

func editCommand() *cli.Command {
	return &cli.Command{
		Name:      "edit",
		Usage:     "copy a file with tags renamed or deleted, or steps shifted",
		ArgsUsage: "FILE NEWFILE",
		Description: "FILE is left as it is, NEWFILE must not exist. Events that do not change are copied\n" +
			"byte for byte.",
		Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "rename", Usage: "`OLD=NEW`: rename the tag OLD; may be given several times"},
			&cli.StringSliceFlag{Name: "delete", Usage: "delete tags that match the `REGEXP` as a whole and are not renamed; may be given several times"},
			&cli.Int64Flag{Name: "shift", Usage: "add `N` to the steps of all events but graphs and versions"},
			&cli.BoolFlag{Name: "dry-run", Usage: "only say what would be done"},
			jsonFlag(),
		},
		Action: edit,
	}
}

// editInfo is what edit --json prints.
type editInfo struct {
	File    string `json:"file"`
	DryRun  bool   `json:"dry_run"`
	Renamed int    `json:"renamed"` // values
	Deleted int    `json:"deleted"` // values
	Shifted int    `json:"shifted"` // events
}

// edits are the changes that the command line asks for.
type edits struct {
	rename map[string]string
	delete []*regexp.Regexp
	shift  int64

	renamed, deleted, shifted int
}

func parseEdits(c *cli.Context) (*edits, error) {
	e := &edits{rename: make(map[string]string), shift: c.Int64("shift")}
	for _, r := range c.StringSlice("rename") {
		from, to, ok := strings.Cut(r, "=")
		if !ok || from == "" || to == "" {
			return nil, usagef("edit: --rename %s: want OLD=NEW", r)
		}
		e.rename[from] = to
	}
	for _, d := range c.StringSlice("delete") {
		re, err := regexp.Compile("^(?:" + d + ")$")
		if err != nil {
			return nil, usagef("edit: --delete %s: %w", d, err)
		}
		e.delete = append(e.delete, re)
	}
	if len(e.rename) == 0 && len(e.delete) == 0 && e.shift == 0 {
		return nil, usagef("edit: nothing to do: want --rename, --delete or --shift")
	}
	return e, nil
}

func edit(c *cli.Context) error {
	from, to, err := twoArgs(c, "FILE", "NEWFILE")
	if err != nil {
		return err
	}
	e, err := parseEdits(c)
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
	report := newReporter(c)
	copyTo := func(w *tfevents.RecordWriter) error { return e.copyTo(w, s, from, report) }
	if c.Bool("dry-run") {
		err = copyTo(tfevents.NewRecordWriter(io.Discard))
	} else {
		err = createRecords(to, copyTo)
	}
	if err != nil {
		return err
	}
	info := editInfo{File: to, DryRun: c.Bool("dry-run"), Renamed: e.renamed, Deleted: e.deleted, Shifted: e.shifted}
	if err := printReport(c, info, "values renamed: %d, deleted: %d; events shifted: %d", e.renamed, e.deleted, e.shifted); err != nil {
		return err
	}
	return report.result()
}

// copyTo writes what is left of the events of a file.
func (e *edits) copyTo(w *tfevents.RecordWriter, s *source, from string, report *reporter) error {
	_, err := s.eachRecord(from, func(_ int64, data []byte) error {
		data, keep, err := e.apply(data)
		if err != nil || !keep {
			return err
		}
		return w.WriteRecord(data)
	}, report.damaged)
	return err
}

// apply returns the changed event, and whether anything is left of it.
func (e *edits) apply(data []byte) (out []byte, keep bool, err error) {
	event := new(tfpb.Event)
	if err := proto.Unmarshal(data, event); err != nil {
		return nil, false, fmt.Errorf("a record holds no event: %w; repair the file first", err)
	}
	changed, err := e.shiftStep(event)
	if err != nil {
		return nil, false, err
	}
	if s := event.GetSummary(); s != nil {
		before := len(s.Value)
		changed = e.editValues(s) || changed
		if before > 0 && len(s.Value) == 0 {
			return nil, false, nil
		}
	}
	if m := event.GetTaggedRunMetadata(); m != nil {
		if to, ok := e.rename[m.Tag]; ok {
			m.Tag, changed = to, true
			e.renamed++
		} else if e.deletes(m.Tag) {
			e.deleted++
			return nil, false, nil
		}
	}
	if changed {
		data = tfproto.Marshal(event)
	}
	return data, true, nil
}

func (e *edits) shiftStep(event *tfpb.Event) (bool, error) {
	switch event.GetWhat().(type) {
	case *tfpb.Event_FileVersion, *tfpb.Event_GraphDef, *tfpb.Event_MetaGraphDef:
		return false, nil
	}
	if e.shift == 0 {
		return false, nil
	}
	if e.shift > 0 && event.Step > math.MaxInt64-e.shift || e.shift < 0 && event.Step < math.MinInt64-e.shift {
		return false, fmt.Errorf("step %d cannot be shifted by %d", event.Step, e.shift)
	}
	event.Step += e.shift
	e.shifted++
	return true, nil
}

func (e *edits) editValues(s *tfpb.Summary) (changed bool) {
	var kept []*tfpb.Summary_Value
	for _, v := range s.Value {
		if to, ok := e.rename[v.Tag]; ok {
			v.Tag, changed = to, true
			e.renamed++
		} else if e.deletes(v.Tag) {
			changed = true
			e.deleted++
			continue
		}
		kept = append(kept, v)
	}
	s.Value = kept
	return changed
}

func (e *edits) deletes(tag string) bool {
	for _, re := range e.delete {
		if re.MatchString(tag) {
			return true
		}
	}
	return false
}
