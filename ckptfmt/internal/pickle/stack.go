package pickle

import (
	"fmt"
	"slices"
)

func (u *unpickler) push(v any) error {
	if u.made++; u.made > u.rules.MaxValues {
		return fmt.Errorf("it makes more than %d values", u.rules.MaxValues)
	}
	if len(u.stack) >= maxStack+len(u.b)/bytesPerStack {
		return fmt.Errorf("it has more than %d values that belong to nothing yet", len(u.stack))
	}
	u.stack = append(roomFor(1, u.stack, 0), v)
	return nil
}

// longList is the length from which a list, or a dict, may be the largest.
const longList = 1024

// roomFor returns a list with room for n more items, at least twice as large as before if
// there was none: append grows long lists by a quarter, which leaves five times as much
// memory that was used once. A list that is long already gets room for what is expected.
func roomFor[T any](n int, list []T, expected int) []T {
	if n <= cap(list)-len(list) {
		return list
	}
	if len(list) >= longList && expected-len(list) >= n {
		return slices.Grow(list, expected-len(list))
	}
	return slices.Grow(list, max(n, len(list)))
}

// expected returns how many items a dict is expected to have, 0 of all but the first large
// one: a pickle may have many that are not.
func (u *unpickler) expected(d *Dict) int {
	if u.large == nil && len(d.Keys) >= longList {
		u.large = d
	}
	if u.large != d {
		return 0
	}
	return u.rules.Expected
}

// kept returns a part of the pickle as a value may have it.
func (u *unpickler) kept(text string) string {
	if !u.rules.Copy {
		return text
	}
	return u.texts.KeepString(text)
}

// pushNew is push of a value that takes so many bytes.
func (u *unpickler) pushNew(v any, n int) error {
	if err := u.spend(n); err != nil {
		return err
	}
	return u.push(v)
}

// spend counts the memory that the pickle takes: few bytes can ask for very much.
func (u *unpickler) spend(n int) error {
	if u.spent += n; u.spent > maxAnyway+maxPerByte*len(u.b) {
		return fmt.Errorf("it makes more than %d times its size", maxPerByte)
	}
	return nil
}

// pushCall pushes what a call has made, or a global. If the arguments of a call follow,
// and are as usual, it does that at once.
func (u *unpickler) pushCall(v any) error {
	if g, ok := v.(Global); ok {
		if made, done := u.shortcut(g); done {
			return u.rows(g, made)
		}
	}
	return u.push(v)
}

func (u *unpickler) mark() error {
	if u.marks++; u.marks > maxMarks {
		return fmt.Errorf("more than %d marks are open", maxMarks)
	}
	return u.push(mark{})
}

func (u *unpickler) pop() (any, error) {
	if len(u.stack) == 0 || u.stack[len(u.stack)-1] == (mark{}) {
		return nil, fmt.Errorf("the stack is empty")
	}
	v := u.stack[len(u.stack)-1]
	u.stack = u.stack[:len(u.stack)-1]
	return v, nil
}

func (u *unpickler) top() (any, error) {
	v, err := u.pop()
	if err == nil {
		u.stack = append(u.stack, v)
	}
	return v, err
}

// toMark takes what is above the last mark, and the mark.
func (u *unpickler) toMark() ([]any, error) {
	above, err := u.aboveMark()
	if err != nil {
		return nil, err
	}
	items := u.items(len(above))
	copy(items, above)
	return items, nil
}

// aboveMark is toMark whose result is valid until the next value is pushed.
func (u *unpickler) aboveMark() ([]any, error) {
	for i := len(u.stack) - 1; i >= 0; i-- {
		if _, is := u.stack[i].(mark); is {
			above := u.stack[i+1:]
			u.stack = u.stack[:i]
			u.marks--
			return above, nil
		}
	}
	return nil, fmt.Errorf("there is no mark on the stack")
}

// itemsAtOnce is how many items of tuples get their memory together.
const itemsAtOnce = 256

// items returns memory for n items.
func (u *unpickler) items(n int) []any {
	if n > itemsAtOnce/8 {
		return make([]any, n)
	}
	if n > len(u.room) {
		u.room = make([]any, itemsAtOnce)
	}
	items := u.room[:n:n]
	u.room = u.room[n:]
	return items
}
