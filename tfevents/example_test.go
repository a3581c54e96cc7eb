package tfevents_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/tfevents/summary/decode"
	"github.com/trainerd/trainerd/tfevents/summaryv1"
)

func ExampleFileWriter() {
	logdir, err := os.MkdirTemp("", "run")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(logdir)

	ctx := context.Background()
	w, err := tfevents.NewFileWriter(logdir, nil)
	if err != nil {
		log.Fatal(err)
	}
	weights := []float32{0.5, -0.25, 0.125}
	for step := range int64(3) {
		if err := w.AddScalar(ctx, "loss", 1/float64(step+1), step); err != nil {
			log.Fatal(err)
		}
		h, err := summaryv1.HistogramOf("weights", weights)
		if err != nil {
			log.Fatal(err) // a weight is not finite
		}
		if err := w.AddSummary(ctx, summary.New(h), step); err != nil {
			log.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}

	runs, err := tfevents.FindRuns(os.DirFS(logdir), ".")
	if err != nil {
		log.Fatal(err)
	}
	for _, run := range runs {
		data := tfevents.ReadRun(os.DirFS(logdir), run, nil)
		for _, s := range data.Series {
			fmt.Println(run.Name, s.Tag, s.Plugin(), s.Len())
		}
	}
	// Output:
	// . loss scalars 3
	// . weights histograms 3
}

func ExampleReader_Events() {
	f, err := os.Open("../fixtures/events/tf1_reopen/events.out.tfevents.1700000000.goldenhost")
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	for e, err := range tfevents.NewReader(f).Events() {
		if err != nil {
			log.Fatal(err)
		}
		for _, v := range e.GetSummary().GetValue() {
			x, _ := decode.Scalar(v)
			fmt.Printf("step %d: %s = %.2g\n", e.GetStep(), v.GetTag(), x)
		}
	}
	// Output:
	// step 0: train/loss = 0.1
}

func ExampleReadRuns() {
	fsys := os.DirFS("../fixtures/events/tf1_reopen")
	runs, err := tfevents.FindRuns(fsys, ".")
	if err != nil {
		log.Fatal(err)
	}
	for _, x := range tfevents.ReadRuns(fsys, runs, nil) {
		for _, s := range x.Series {
			for p := range s.Points() {
				if scalar, ok := p.Scalar(); ok {
					fmt.Printf("%s, step %d: %.2g\n", s.Tag, p.Step, scalar)
					continue
				}
				v, err := x.Value(p) // read from the file
				if err != nil {
					log.Fatal(err)
				}
				fmt.Printf("%s, step %d: %s\n", s.Tag, p.Step, v)
			}
		}
	}
	// Output:
	// train/loss, step 0: 0.1
	// train/loss, step 1: -3.4e+38
	// train/loss/b, step 1: NaN
	// inf, step 1: -Inf
}
