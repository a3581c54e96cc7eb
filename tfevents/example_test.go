package tfevents_test

import (
	"context"
	"errors"
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

// All scalars of a log directory: where a resumed training wrote steps twice, the points
// that count.
func ExampleRunData_Scalars() {
	logdir, err := os.MkdirTemp("", "run")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(logdir)
	for _, begin := range []int64{0, 2} { // killed at step 3, it resumes at step 2
		if err := trainFrom(logdir, begin); err != nil {
			log.Fatal(err)
		}
	}

	fsys := tfevents.DirFS(logdir)
	runs, err := tfevents.FindRuns(fsys, ".")
	if err != nil {
		log.Fatal(err)
	}
	for _, x := range tfevents.ReadRuns(fsys, runs, nil) {
		for _, err := range x.Damage { // everything else was read
			log.Println(err)
		}
		for _, s := range x.Series {
			for p, value := range x.Scalars(s) {
				fmt.Printf("run %s, %s, step %d: %.1f\n", x.Name, s.Tag, p.Step, value)
			}
		}
		fmt.Println("dropped:", x.Purged)
	}
	// Output:
	// run ., loss, step 0: 0.0
	// run ., loss, step 1: 0.0
	// run ., loss, step 2: 0.2
	// run ., loss, step 3: 0.2
	// dropped: 2
}

// trainFrom writes the events of a training up to step 3. That it has started at a step
// tells readers which earlier points are void.
func trainFrom(logdir string, begin int64) error {
	ctx := context.Background()
	w, err := tfevents.NewFileWriter(logdir, &tfevents.FileWriterOptions{PurgeStep: &begin})
	if err != nil {
		return err
	}
	for step := begin; step < 4; step++ {
		err = errors.Join(err, w.AddScalar(ctx, "loss", float64(begin)/10, step))
	}
	return errors.Join(err, w.Close())
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

// The scalars of a run that are there, and those that are written until a step.
func ExampleFollow() {
	logdir, err := os.MkdirTemp("", "run")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(logdir)
	if err := trainFrom(logdir, 2); err != nil {
		log.Fatal(err)
	}

	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	for e, err := range tfevents.Follow(ctx, tfevents.DirFS(logdir), ".", nil) {
		if err != nil {
			log.Println(err) // what is damaged; the events after it follow
			continue
		}
		for _, v := range decode.Modern(e) {
			if x, ok := decode.Scalar(v); ok {
				fmt.Printf("step %d: %s = %.1f\n", e.GetStep(), v.GetTag(), x)
			}
		}
		if e.GetStep() == 3 {
			stop()
		}
	}
	// Output:
	// step 2: loss = 0.2
	// step 3: loss = 0.2
}
