package model_test

import (
	"math"
	"slices"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/dataset"
	"github.com/trainerd/trainerd/trainerd/graph/literal"
	"github.com/trainerd/trainerd/trainerd/model"
)

// textModel has a number, a text and a category.
func textModel(t *testing.T, vocabulary []string, length int) *model.Model {
	t.Helper()
	d := &model.Data{
		Schema: dataset.Schema{
			Features: []dataset.Feature{
				{Name: "n", Kind: dataset.KindNumber}, {Name: "the text", Kind: dataset.KindText, Vocabulary: vocabulary, Length: length},
				{Name: "c", Kind: dataset.KindCategory, Vocabulary: []string{"a", "b"}},
			},
			Label: dataset.Feature{Name: "y", Kind: dataset.KindCategory}, Classes: 2,
		},
		Statistics: &dataset.Statistics{Features: make([]dataset.Moments, 2+length), Words: [][]int64{nil, make([]int64, len(vocabulary)), nil}},
	}
	for i := range d.Statistics.Features {
		d.Statistics.Features[i].Rows = 9
	}
	for i := range vocabulary {
		d.Statistics.Words[1][i] = int64(9 - i)
	}
	m, err := model.Spec{Config: model.Config{Family: "softmax", Inputs: 2 + length, Classes: 2}, Data: d}.Build()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestTextFeatures holds what a model learns of a text: tf-idf of the words that it has,
// however often, and zeros of one without words.
func TestTextFeatures(t *testing.T) {
	m := textModel(t, []string{"good", "bad", "phone"}, 9)
	no := []float64{-1, -1, -1, -1, -1, -1}
	raw := slices.Concat([]float64{7, 0, 2, 0}, no, []float64{1, 8, -1, -1, -1}, no, []float64{0, 9, 1, -1, -1}, no, []float64{-1})
	rows := floatTensor([]int64{3, 11}, raw...)
	got := fetch(t, startModel(t, m), map[string]*ckptfmt.Tensor{"x:0": rows}, "features/concat:0")
	good, phone := 1.0, 1+math.Log(10.0/8)
	length := math.Hypot(good, phone) / dataset.TextNorm
	want := []float64{7, good / length, 0, phone / length, 0, 1, 8, 0, 0, 0, 1, 0, 9, 0, dataset.TextNorm, 0, 0, 0}
	if len(got) != len(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	for i := range want {
		if math.Abs(float64(got[i])-want[i]) > 1e-6 {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
}

// TestListFeatures holds that each word of a list counts as that of a category.
func TestListFeatures(t *testing.T) {
	m := textModel(t, []string{"good", "bad", "phone"}, 3)
	rows := floatTensor([]int64{2, 5}, 7, 0, 2, 0, 1, 8, -1, -1, -1, 0)
	got := fetch(t, startModel(t, m), map[string]*ckptfmt.Tensor{"x:0": rows}, "features/concat:0")
	if want := []float32{7, 1, 0, 1, 0, 1, 8, 0, 0, 0, 1, 0}; !slices.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

// TestWordsInGraph holds that the signature divides texts as [dataset.TextWords] does, and
// takes as many of their words as a raw row has.
func TestWordsInGraph(t *testing.T) {
	texts := []string{
		"Don't PANIC: it's 42.5%", "", "?!", "ÉTÉ straße ΟΔΟΣ İzmir", "東京タワー is tall", "สวัสดี", "한국어 नमस्ते",
		"tab\tline\nend", "one two three four five six seven eight nine ten", "unknown", "Σ ΣΑΣ, ΑΣ.Β",
	}
	var vocabulary []string
	index := make(map[string]int)
	for _, text := range texts {
		for _, word := range dataset.TextWords(text) {
			if _, ok := index[word]; !ok && word != "unknown" {
				index[word] = len(vocabulary)
				vocabulary = append(vocabulary, word)
			}
		}
	}
	const length = 8
	m := textModel(t, vocabulary, length)
	feeds := make(map[string]*ckptfmt.Tensor)
	numbers := make([]float32, len(texts))
	words := make([]string, len(texts))
	for key, v := range map[string]*tfpb.TensorProto{"n": literal.Floats(numbers...), "the text": literal.Strings(texts...), "c": literal.Strings(words...)} {
		value, err := ckptfmt.TensorFromProto(v)
		if err != nil {
			t.Fatal(err)
		}
		feeds[m.Meta.GetSignatureDef()[model.ServingKey].GetInputs()[key].GetName()] = value
	}
	got := fetch(t, startModel(t, m), feeds, "x:0")
	for row, text := range texts {
		raw := got[row*(length+2)+1:][:length]
		for i := range raw {
			want := float32(-1)
			if all := dataset.TextWords(text); i < len(all) && text != "unknown" {
				want = float32(index[all[i]])
			}
			if raw[i] != want {
				t.Errorf("%q: words %v, number %d should be %v", text, raw, i, want)
				break
			}
		}
	}
}
