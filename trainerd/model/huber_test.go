package model_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/trainerd/dataset"
	"github.com/trainerd/trainerd/trainerd/model"
)

// huberLoss is TensorFlow's losses.huber_loss of one error.
func huberLoss(e, delta float64) float64 {
	quadratic := math.Min(math.Abs(e), delta)
	return 0.5*quadratic*quadratic + delta*(math.Abs(e)-quadratic)
}

// numberData has a number, and labels around 50.
func numberData() *model.Data {
	return &model.Data{
		Schema:      dataset.Schema{Features: []dataset.Feature{{Kind: dataset.KindNumber}}, Label: dataset.Feature{Kind: dataset.KindNumber}},
		Statistics:  &dataset.Statistics{Features: []dataset.Moments{{}}, Label: dataset.Moments{Mean: 1000, Variance: 1e6}},
		LabelSpread: dataset.Spread{Median: 50, Deviation: 4},
	}
}

// TestHuberLoss holds the loss in the label's units, and the mean squared error next to it.
func TestHuberLoss(t *testing.T) {
	for _, c := range []struct {
		name  string
		delta float64 // of the config
		data  *model.Data
		want  float64 // the delta in the label's units
	}{
		{"the usual deviation", 0, numberData(), 4},
		{"given", 1.5, numberData(), 1.5},
		{"raw labels", 0, nil, 1},
		{"raw labels, given", 7, nil, 7},
	} {
		cfg := model.Config{Family: "linear", Inputs: 1, Initializer: "zeros", Loss: "huber_loss", HuberDelta: c.delta, LearningRate: 0.01}
		m, err := model.Spec{Config: cfg, Data: c.data}.Build()
		if err != nil {
			t.Fatal(err)
		}
		first := 0.0 // the prediction
		if c.data != nil {
			first = 50
		}
		sess := startModel(t, m)
		feeds := map[string]*ckptfmt.Tensor{"x:0": floatTensor([]int64{4, 1}, 0, 0, 0, 0), "y:0": floatTensor([]int64{4}, first+0.5, first-3, first+1000, first)}
		loss := (huberLoss(0.5, c.want) + huberLoss(3, c.want) + huberLoss(1000, c.want)) / 4
		if got := fetch(t, sess, feeds, m.Loss)[0]; math.Abs(float64(got)-loss) > 1e-5*loss {
			t.Errorf("%s: the loss is %v, want %v", c.name, got, loss)
		}
		if got := fetch(t, sess, feeds, m.MSE)[0]; math.Abs(float64(got)-(0.25+9+1e6)/4) > 1 {
			t.Errorf("%s: the mean squared error is %v", c.name, got)
		}
	}
}

// TestHuberLearnsTheMiddle trains on labels with one that is far off, which moves squared
// errors away from all others.
func TestHuberLearnsTheMiddle(t *testing.T) {
	cfg := model.Config{Family: "linear", Inputs: 1, Loss: "huber_loss", Optimizer: "adam", LearningRate: 0.05}
	m, err := model.Spec{Config: cfg, Data: numberData()}.Build()
	if err != nil {
		t.Fatal(err)
	}
	sess := startModel(t, m)
	feeds := map[string]*ckptfmt.Tensor{"x:0": floatTensor([]int64{5, 1}, 0, 1, 2, 3, 4), "y:0": floatTensor([]int64{5}, 46, 48, 1e6, 52, 54)}
	for range 2000 {
		if _, err := sess.Run(context.Background(), feeds, nil, []string{m.TrainOp}); err != nil {
			t.Fatal(err)
		}
	}
	for i, got := range fetch(t, sess, feeds, m.Predictions) {
		if want := 46 + 2*float64(i); math.Abs(float64(got)-want) > 2 {
			t.Errorf("row %d: %v, want about %v", i, got, want)
		}
	}
}

func TestHuberSettings(t *testing.T) {
	for _, c := range []struct {
		cfg  model.Config
		want string
	}{
		{model.Config{Family: "linear", Inputs: 1, Loss: "hubert"}, `loss = "hubert": want mean_squared_error or huber_loss`},
		{model.Config{Family: "softmax", Inputs: 1, Classes: 2, Loss: "huber_loss"}, `loss = "huber_loss": want none: only the families linear and mlp_regressor`},
		{model.Config{Family: "linear", Inputs: 1, HuberDelta: 1}, `huber_delta = 1: want none, or loss = "huber_loss"`},
		{model.Config{Family: "linear", Inputs: 1, Loss: "huber_loss", HuberDelta: -1}, `huber_delta = -1: want more than 0`},
	} {
		if err := c.cfg.Check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}
