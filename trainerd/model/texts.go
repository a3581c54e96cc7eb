package model

import (
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/dataset"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/graph/literal"
)

// text adds what is learnt from a column of texts: for each word of the vocabulary 1 if the
// text has it, else 0. Of texts that are not lists, the 1 is how rare the word is among the
// training rows, and the whole is scaled to one length (tf-idf).
func (m *maker) text(c rawColumn) (out graph.Output) {
	b, words := m.b, int64(len(c.Vocabulary))
	b.Scope("features/"+c.name(), func() {
		ids := b.Cast("Cast", b.Slice("words", m.x, []int32{0, c.at}, []int32{-1, int32(c.Length)}), tfpb.DataType_DT_INT64)
		numbers := b.AddV2("from_one", ids, b.Const("one", literal.Int64(1))) // 0 is not a word
		out = b.Slice("known", b.Present("present", numbers, words+1), []int32{0, 1}, []int32{-1, -1})
		if !c.IsList() {
			out = m.tfIDF(c, out)
		}
	})
	return out
}

// tfIDF weighs the words that texts have.
func (m *maker) tfIDF(c rawColumn, present graph.Output) graph.Output {
	b := m.b
	idf := make([]float32, len(c.Vocabulary))
	for i, v := range m.data.Statistics.IDF(c.number) {
		idf[i] = float32(v)
	}
	weighted := b.Mul("weighted", present, m.statistic("tfidf/"+c.name(), graph.MakeShape(int64(len(idf))), idf))
	squares := b.SumOver("Sum", b.Square("Square", weighted), 1)
	reciprocal := b.Rsqrt("Rsqrt", b.Maximum("Maximum", squares, b.Const("least", literal.Float(1e-12))))
	return b.Mul("tf_idf", weighted, b.Mul("scale", reciprocal, b.Const("norm", literal.Float(dataset.TextNorm))))
}

// The regular expressions that divide a text in lower case as [dataset.TextWords] does.
const (
	finalSigma = "ς"
	unbroken   = `[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}]`
	noWord     = `[^\p{L}\p{M}\p{N}]+`
)

// findWords adds what a raw row has of texts, float32 [batch, length].
func (m *maker) findWords(name string, f dataset.Feature, texts graph.Output) (ids graph.Output) {
	b := m.b
	table, _ := b.Vocabulary(name+"_vocabulary", f.Vocabulary)
	b.Scope(name+"_words", func() {
		texts = b.RegexReplace("sigma", b.StringLower("lower", texts), finalSigma, "σ")
		texts = b.RegexReplace("apart", texts, unbroken, ` \0 `)
		texts = b.RegexReplace("words", texts, noWord, " ")
		ids = b.Cast("ids", b.FindWords("find", table, texts, int64(f.Length)), tfpb.DataType_DT_FLOAT)
	})
	return ids
}
