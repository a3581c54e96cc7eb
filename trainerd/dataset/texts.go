package dataset

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxTextWords bounds the words of a column of texts that are learnt from: the ones that are
	// in most texts.
	maxTextWords = 5000
	// maxTextLength bounds the words of a text, without those that are not learnt from.
	maxTextLength = 1000
	// maxSeenWords bounds the words that are counted. Later ones are rare.
	maxSeenWords = 1 << 20
	// fewestTexts have a word that is learnt from, unless all words are rarer: one that is in a
	// single text says nothing about others.
	fewestTexts = 2
)

// unbroken are the scripts that put no blanks between words. Each of their characters is
// taken for a word.
var unbroken = []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai}

// TextWords returns the words of a text: what its letters, digits and marks are without the
// characters between them, in lower case. Characters of scripts that put no blanks between
// words are words of their own.
func TextWords(text string) (words []string) {
	eachWord(text, func(word []byte) { words = append(words, string(word)) })
	return words
}

// eachWord calls f for each word of a text. The word is overwritten by the next one.
func eachWord(text string, f func(word []byte)) {
	var room [64]byte
	word := room[:0]
	end := func() {
		if len(word) > 0 {
			f(word)
			word = word[:0]
		}
	}
	for _, r := range text {
		switch {
		case !unicode.In(r, unicode.L, unicode.M, unicode.N):
			end()
		case r > unicode.MaxLatin1 && unicode.In(r, unbroken...):
			end()
			word = utf8.AppendRune(word, r)
			end()
		default:
			word = appendLower(word, r)
		}
	}
	end()
}

// appendLower appends a letter in lower case. A sigma is the same one at the end of a word.
func appendLower(word []byte, r rune) []byte {
	switch r {
	case 'İ':
		return append(word, "i\u0307"...)
	case 'ς':
		r = 'σ'
	}
	return utf8.AppendRune(word, unicode.ToLower(r))
}

// texts collects the words of a column of texts. If they are known, others are not added.
type texts struct {
	known  bool
	length int // of a text, if the words are known
	index  map[string]uint32
	words  []string
	counts []wordCount // of each word
	ids    []uint32    // the words of all texts, one text after the other
	ends   []int       // of the texts
}

// wordCount says in how many texts a word is, and which was the last of them, from 1.
type wordCount struct{ texts, last uint32 }

// unknownWord is the id of a word that is not learnt from.
const unknownWord = ^uint32(0)

// newTexts returns the texts of a feature; if it has a vocabulary, its words are known.
func newTexts(f *Feature) *texts {
	t := &texts{known: f.Vocabulary != nil, length: f.Length, index: make(map[string]uint32)}
	for _, word := range f.Vocabulary {
		t.addWord(word)
	}
	return t
}

func (t *texts) addWord(word string) uint32 {
	id := uint32(len(t.words))
	t.index[word] = id
	t.words, t.counts = append(t.words, word), append(t.counts, wordCount{})
	return id
}

// add adds the text of the next row.
func (t *texts) add(text string) {
	row := uint32(len(t.ends) + 1)
	eachWord(text, func(word []byte) {
		id, ok := t.index[string(word)]
		if !ok {
			if t.known || len(t.words) == maxSeenWords {
				return
			}
			id = t.addWord(string(word))
		}
		if c := &t.counts[id]; c.last != row {
			*c = wordCount{c.texts + 1, row}
		}
		t.ids = append(t.ids, id)
	})
	t.ends = append(t.ends, len(t.ids))
}

// bytes returns about how much memory the texts take.
func (t *texts) bytes() int64 {
	const word = 64 // with its place in the index
	return 4*int64(len(t.ids)) + 8*int64(len(t.ends)) + word*int64(len(t.words))
}

// finish returns the words that are learnt from, the most frequent first, and how many of
// them a text has at most. It forgets all others.
func (t *texts) finish() (vocabulary []string, length int) {
	if !t.known {
		vocabulary = t.frequent()
	} else {
		vocabulary = t.words
	}
	number := slices.Repeat([]uint32{unknownWord}, len(t.words))
	for at, word := range vocabulary {
		number[t.index[word]] = uint32(at)
	}
	kept, from := 0, 0
	for row, end := range t.ends {
		begin := kept
		for _, id := range t.ids[from:end] {
			if n := number[id]; n != unknownWord && kept-begin < maxTextLength {
				t.ids[kept] = n
				kept++
			}
		}
		from, t.ends[row] = end, kept
		length = max(length, kept-begin)
	}
	t.ids = slices.Clip(t.ids[:kept])
	if !t.known {
		t.length = max(1, length)
	}
	t.index, t.words, t.counts = nil, nil, nil
	return vocabulary, t.length
}

// frequent returns the words that are in most texts. Among equally frequent ones, it is the
// alphabet that decides.
func (t *texts) frequent() []string {
	count := func(word string) uint32 { return t.counts[t.index[word]].texts }
	all := slices.Collect(maps.Keys(t.index))
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(cmp.Compare(count(b), count(a)), strings.Compare(a, b)) })
	rare := slices.IndexFunc(all, func(word string) bool { return count(word) < fewestTexts })
	if rare > 0 {
		all = all[:rare]
	}
	return slices.Clone(all[:min(len(all), maxTextWords)])
}

// appendRow appends the words of a row as a raw row has them.
func (t *texts) appendRow(x []float32, row int) []float32 {
	from := 0
	if row > 0 {
		from = t.ends[row-1]
	}
	return appendIDs(x, t.ids[from:t.ends[row]], t.length)
}

// appendIDs appends up to length ids, and none for the rest.
func appendIDs(x []float32, ids []uint32, length int) []float32 {
	n := min(len(ids), length)
	for _, id := range ids[:n] {
		x = append(x, float32(id))
	}
	for range length - n {
		x = append(x, -1)
	}
	return x
}

// appendText appends a text as a raw row has it.
func (f *Feature) appendText(x []float32, words map[string]int, text string) []float32 {
	end := len(x) + f.Length
	eachWord(text, func(word []byte) {
		if id, ok := words[string(word)]; ok && len(x) < end {
			x = append(x, float32(id))
		}
	})
	return appendIDs(x, nil, end-len(x))
}

// textRows are examples in memory that have texts: these are much shorter than the longest
// one.
type textRows struct {
	floatRows          // without the texts
	texts     []*texts // of each feature, nil for one that is not text
}

func (r *textRows) features(x []float32, i int) ([]float32, error) {
	others := r.values[i*r.width : (i+1)*r.width]
	for _, t := range r.texts {
		if t != nil {
			x = t.appendRow(x, i)
			continue
		}
		x, others = append(x, others[0]), others[1:]
	}
	return x, nil
}
