package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/trainerd/trainerd/trainerd/dataset"
)

// model returns the lines that say what is trained. The choice, and its numbers,
// are those that came nearest to scikit-learn's linear models and perceptrons on
// many tables: the weights are held the smaller the fewer rows there are. It is
// hidden layers next to a weighted sum, unless Judge has found that these promise
// nothing; classes of few rows want a weighted sum alone.
func (p *Template) model() []string {
	switch {
	case p.isConvnet():
		return p.convnet()
	case p.isNumber() && p.isWeightedSum():
		return p.weightedNumber()
	case p.isNumber():
		return p.regressor()
	case p.isSmall(fewestClassified), p.isWeightedSum():
		return p.weightedSum()
	}
	return p.hiddenLayers("mlp", "a multilayer perceptron", "[64]", min(0.01, 5/float64(p.trainRows())/math.Sqrt(p.balance())), "0.003")
}

// balance returns 1 for classes that are equally frequent, and less the rarer some are: there are
// fewer rows to learn from than it seems.
func (p *Template) balance() float64 {
	if p.Sample != nil {
		return 1
	}
	return p.Survey.Balance(p.Plan.Label)
}

// manyRows is from how many rows on hidden layers that predict a number learn slowly, and are held
// less.
const manyRows = 1000

// regressor returns the lines of hidden layers that predict a number.
func (p *Template) regressor() []string {
	rows := float64(p.trainRows())
	l2, rate := 5/rows, "0.003"
	if rows < manyRows {
		l2, rate = min(0.03, 12/rows), "0.03"
	}
	return p.withLoss(p.hiddenLayers("mlp_regressor", "hidden layers predict a number", "[64, 32]", l2*p.damping()*p.lossScale(), rate))
}

// damping returns by how much l2 is to be larger than usual, by how well rows were predicted that
// were left out: the more of the labels is noise, the more of it hidden layers learn unless their
// weights are held small. The factors are those that did best on three splits of each of some
// twenty tables; on three other splits no table lost more than 0.003 in R2 by them, and some won
// 0.05.
func (p *Template) damping() float64 {
	const exact, noisy = 0.85, 0.6
	switch {
	case p.judged == nil:
		return 1
	case p.judged.Smooth < noisy:
		return 2.5
	case p.judged.Smooth >= exact && p.trainRows() < manyRows: // more rows are held little as it is
		return 0.4
	}
	return 1
}

// isSmall reports whether there are too few rows for hidden layers.
func (p *Template) isSmall(rows int) bool {
	return p.trainRows() < rows*4/5 || p.trainRows() < p.width()
}

// width returns the number of columns that are used.
func (p *Template) width() (n int) {
	if p.Sample != nil {
		return 0 // pixels are alike, and so one does with fewer rows
	}
	for _, u := range p.Plan.Uses {
		if !u.Drop {
			n++
		}
	}
	return n - 1
}

// isConvnet reports whether the data are images in which there is something to
// see.
func (p *Template) isConvnet() bool {
	const least = 8 // pixels along a side
	return p.Sample != nil && !p.Sample.Numbers && len(p.Sample.Image) == 3 && min(p.Sample.Image[0], p.Sample.Image[1]) >= least
}

const optimizerLine = `optimizer = "adam"   # or sgd, momentum, nesterov, adagrad, adadelta, rmsprop, ftrl`

func rateLines(rate string) []string {
	return []string{
		optimizerLine,
		"learning_rate = " + rate + "   # lower it if the loss jumps or becomes NaN",
		`schedule = "cosine"   # of the learning rate: down to 0 at the last step`,
	}
}

// smallWeights returns the line that holds weights small.
func smallWeights(l2 float64) string {
	return fmt.Sprintf("l2 = %s   # keeps weights small, so that few rows are not learnt by heart", oneDigit(l2))
}

// oneDigit returns a number that is easy to change.
func oneDigit(v float64) string {
	short, err := strconv.ParseFloat(strconv.FormatFloat(v, 'e', 0, 64), 64)
	if err != nil {
		return "0.001"
	}
	return strconv.FormatFloat(short, 'f', -1, 64)
}

// weightedSum returns the lines of a linear classifier. Its l2 is scikit-learn's C = 1.
func (p *Template) weightedSum() []string {
	more := `with more rows try "mlp"`
	if p.judged != nil {
		more = `"mlp" has hidden layers`
	}
	lines := []string{`family = "softmax"   # a weighted sum of the features; ` + more, smallWeights(1 / float64(p.trainRows()))}
	return append(lines, rateLines("0.01")...)
}

func (p *Template) hiddenLayers(family, what, hidden string, l2 float64, rate string) []string {
	lines := []string{
		fmt.Sprintf("family = %q   # %s", family, what),
		"hidden = " + hidden + "   # sizes of the hidden layers",
	}
	if p.Sample == nil {
		lines = append(lines, "wide = true   # adds a weighted sum of the features to what the hidden layers say")
	}
	lines = append(lines, `activation = "relu"`, smallWeights(l2))
	return append(lines, rateLines(rate)...)
}

func (p *Template) convnet() []string {
	filters := "[16, 32]"
	if min(p.Sample.Image[0], p.Sample.Image[1]) >= 48 {
		filters = "[16, 32, 64]"
	}
	lines := []string{
		`family = "convnet"   # convolutions of images, with a max pooling after each`,
		"filters = " + filters + "   # of each convolution",
		"hidden = [64]   # sizes of the hidden layers after them",
		"dropout = 0.3   # part of the hidden layers that a step leaves out",
	}
	return append(lines, rateLines("0.002")...)
}

// sampleLines returns what is said of data that are not a table.
func (p *Template) sampleLines() []string {
	s := p.Sample
	lines := []string{fmt.Sprintf("format = %q", s.Format)}
	if s.LabelFile != "" {
		lines = append(lines, "labels = "+tomlString(p.PathOf(s.LabelFile))+"   # the file with the labels")
	}
	if s.TestFile != "" {
		lines = append(lines, "test_file = "+tomlString(p.PathOf(s.TestFile))+"   # the test part")
	}
	if s.TestLabelFile != "" {
		lines = append(lines, "test_labels = "+tomlString(p.PathOf(s.TestLabelFile)))
	}
	if s.Format == dataset.FormatTFRecord {
		lines = append(lines, "label = "+tomlString(s.Label)+"   # the feature to predict",
			"features = "+tomlList(quotedAll(s.Used()))+"   # those that are learnt from")
	}
	if len(s.Image) == 3 && (s.Format == dataset.FormatImages || s.Format == dataset.FormatTFRecord) {
		lines = append(lines, fmt.Sprintf("image = [%s]   # the height, width and channels to which images are brought", joinInts(s.Image)))
	}
	if s.Bytes {
		return append(lines, "scale = 255   # bytes become 0 to 1")
	}
	return append(lines, `normalize = "standard"   # each number to mean 0 and deviation 1; or "minmax", or ""`)
}

func quotedAll(names []string) []string {
	all := slices.Clone(names)
	for i, name := range all {
		all[i] = tomlString(name)
	}
	return all
}

func joinInts(all []int) string {
	texts := make([]string, len(all))
	for i, n := range all {
		texts[i] = strconv.Itoa(n)
	}
	return strings.Join(texts, ", ")
}
