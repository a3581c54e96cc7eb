package dataset

// finishWords numbers the words of categories in their order, and chooses those of texts.
func (r *rowsReader) finishWords() *Error {
	width := r.floats()
	place := 0 // among the numbers of a row
	for i := range r.columns.features {
		f := &r.columns.features[i]
		if t := r.texts[i]; t != nil {
			if f.Vocabulary, f.Length = t.finish(); len(f.Vocabulary) == 0 {
				return r.columns.locate(f.Column, &Error{Reason: "the texts have no words", Hint: "leave the column out: add it to data.drop"})
			}
			continue
		}
		if v := r.words[i]; v != nil {
			f.Vocabulary = v.sort()
			v.renumber(r.values, place, width)
		}
		place++
	}
	return nil
}

// renumber gives the words in a column of rows of numbers their places in the order.
func (v *vocabulary) renumber(values []float32, column, width int) {
	for at := column; at < len(values); at += width {
		if word := int(values[at]); word >= 0 {
			values[at] = float32(v.order[word])
		}
	}
}

// floats returns how many numbers of a row are not texts.
func (r *rowsReader) floats() (n int) {
	for _, t := range r.texts {
		if t == nil {
			n++
		}
	}
	return n
}

// rows returns the examples.
func (r *rowsReader) rows() rows {
	width := r.floats()
	numbers := floatRows{values: r.values, width: width, labels: r.labels}
	if width == len(r.texts) {
		return &numbers
	}
	return &textRows{floatRows: numbers, texts: r.texts}
}
