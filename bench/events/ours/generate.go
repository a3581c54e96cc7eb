package main

import (
	"context"
	"fmt"
	"image"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"time"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/tfevents/summary"
)

// start is the time of the first event of what is generated.
var start = time.Unix(1_700_000_000, 0)

// generate fills dir with one of the log directories that the races read.
func generate(ctx context.Context, kind, dir string, n int) error {
	switch kind {
	case "file":
		return generateScalars(ctx, dir, n)
	case "runs":
		return generateRuns(ctx, dir, 200, n)
	case "thousand":
		return generateRuns(ctx, dir, 1000, n)
	case "sweep":
		return generateRuns(ctx, dir, n/500, n)
	case "media":
		return generateMedia(ctx, dir, n)
	}
	return fmt.Errorf("unknown kind of data %q", kind)
}

// generateRuns writes so many runs, which share n points.
func generateRuns(ctx context.Context, dir string, runs, n int) error {
	for run := range runs {
		if err := generateScalars(ctx, filepath.Join(dir, fmt.Sprintf("run%05d", run)), n/runs); err != nil {
			return err
		}
	}
	return nil
}

// generateServed writes a log directory below logs, and the command that is to serve
// it next to it.
func generateServed(ctx context.Context, kind, dir string, n int) error {
	if err := generate(ctx, kind, filepath.Join(dir, "logs"), n); err != nil {
		return err
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(dir, "tfevents"), "github.com/trainerd/trainerd/cmd/tfevents")
	if text, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building tfevents: %w\n%s", err, text)
	}
	return nil
}

// generateScalars writes one file of n points of ten tags.
func generateScalars(ctx context.Context, dir string, n int) error {
	w, err := tfevents.NewFileWriter(dir, &tfevents.FileWriterOptions{Sync: tfevents.SyncNever})
	if err != nil {
		return err
	}
	defer w.Close()
	var tags [10]string
	for i := range tags {
		tags[i] = fmt.Sprintf("layer%d/loss", i)
	}
	random := rand.New(rand.NewPCG(1, 2))
	at := start
	for i := range n {
		at = at.Add(time.Millisecond + time.Duration(random.IntN(1000))*time.Microsecond)
		if err := w.AddScalarAt(ctx, at, tags[i%len(tags)], random.Float64(), int64(i/len(tags))); err != nil {
			return err
		}
	}
	return w.Close()
}

// generateMedia writes one file of n steps, each with an image of some 110 KB
// and ten histograms.
func generateMedia(ctx context.Context, dir string, n int) error {
	w, err := tfevents.NewFileWriter(dir, &tfevents.FileWriterOptions{Sync: tfevents.SyncNever})
	if err != nil {
		return err
	}
	defer w.Close()
	media, err := newMedia()
	if err != nil {
		return err
	}
	for step := range n {
		at := start.Add(time.Duration(step) * time.Second)
		for _, v := range media.step(step) {
			if err := w.AddSummaryAt(ctx, at, summary.New(v), int64(step)); err != nil {
				return err
			}
		}
	}
	return w.Close()
}

// media holds values to choose from: encoding them is slow.
type media struct {
	images     [8]*tfpb.Summary_Value
	histograms [100]*tfpb.Summary_Value
}

func newMedia() (m media, err error) {
	random := rand.New(rand.NewPCG(1, 2))
	for i := range m.images {
		img := image.NewNRGBA(image.Rect(0, 0, 192, 192))
		for p := range img.Pix {
			img.Pix[p] = byte(random.Uint32())
			if p%4 == 3 {
				img.Pix[p] = 0xff // opaque
			}
		}
		encoded, err := summary.EncodePNG(img)
		if err != nil {
			return m, err
		}
		if m.images[i], err = summary.Images("samples", encoded); err != nil {
			return m, err
		}
	}
	for i := range m.histograms {
		values := make([]float64, 1000)
		for v := range values {
			values[v] = random.NormFloat64()
		}
		if m.histograms[i], err = summary.Histogram("", values, 30); err != nil {
			return m, err
		}
	}
	return m, nil
}

// step returns the values of one step.
func (m *media) step(step int) []*tfpb.Summary_Value {
	values := []*tfpb.Summary_Value{m.images[step%len(m.images)]}
	for i := range 10 {
		h := m.histograms[(step*10+i)%len(m.histograms)]
		values = append(values, &tfpb.Summary_Value{Tag: fmt.Sprintf("layer%d/weights", i), Metadata: h.Metadata, Value: h.Value})
	}
	return values
}
