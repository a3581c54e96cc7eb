// Package pickle reads Python pickles as data. It is a stack machine that knows the opcodes of
// dicts, lists, tuples, numbers, texts and objects, and calls nothing: its caller decides what a
// name or a call means, and refuses whatever it does not know. The package has no state.
package pickle

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/trainerd/trainerd/ckptfmt/internal/slab"
)

// Limits of what a pickle makes, whose few bytes can ask for very much: of values,
// unless its rules have another; of memory for each of its bytes, and what it may have in
// any case; of values on the stack, also with a part for each so many bytes; of marks on
// the stack, where Python leaves one for each list, dict or tuple that another is in.
const (
	maxValues = 8 << 20

	maxPerByte = 16
	maxAnyway  = 16 << 20

	maxStack      = 256 << 10
	bytesPerStack = 8
	maxMarks      = 10_000
)

// What values take, about: as an item, in the memo, as an empty container, as a key and
// its place.
const (
	itemSize = 16
	memoSize = 24
	dictSize = 80
	listSize = 24
	keySize  = 48
)

// Rules say what a pickle may name, and what that means.
type Rules struct {
	// Allowed reports whether a pickle may name a global.
	Allowed func(name string) bool
	// Call returns what calling an allowed global would make.
	Call func(name string, args Tuple) (any, error)
	// New, which may be nil, returns a new object of an allowed class. As a rule that
	// is an [Object].
	New func(class string, args Tuple) (any, error)
	// Persistent, which may be nil, returns what a persistent identifier means.
	Persistent func(id any) (any, error)
	// Built, which may be nil, is asked about an object that has got its state, and returns how
	// many of the bytes that follow are not of the pickle.
	Built func(o *Object, rest string) (n int, err error)
	// Short, which may be nil, reads the arguments of a call that pickles have very
	// many of, and returns what Call would; nil where it does not know the call.
	Short func(callee Global, c *Cursor) any
	// Alike, which may be nil, returns what Short would of a call that differs from that
	// which made like in its [Cursor.OwnText] alone.
	Alike func(like any, own string) any
	// Expected is how many items the largest dict has, about: what room is made for when it
	// has very many.
	Expected int
	// Copy says that no value may keep a part of the pickle, which is only there meanwhile.
	Copy bool
	// MaxValues bounds how many values a pickle makes; 0 means 8 million.
	MaxValues int
}

// unpickler is a stack machine that knows few opcodes and calls nothing.
type unpickler struct {
	rules Rules
	b     string // which the strings that it makes are parts of, unless they are copies
	texts slab.Texts
	at    int
	stack []any
	memo  memo
	made  int
	spent int   // bytes of memory, about
	marks int   // on the stack
	large *Dict // the first that is

	unchecked []*Dict
	room      []any // for the next tuples

	cursor Cursor
	alikes alikes

	rowsKept int  // how many of a row of items the memo keeps, after its first places
	leftOut  bool // it does not have some

	globals map[string]any // those that were named, by module, line feed and name
	words   [64]any        // short strings that were met lately
}

// ErrShort matches the error of a pickle that does not end.
var ErrShort = errors.New("it ends within an opcode")

// Load returns what the pickle holds that b begins with, and where it ends. That of
// an error is the offset of the opcode.
func Load(b string, rules Rules) (value any, end int, err error) {
	if rules.MaxValues == 0 {
		rules.MaxValues = maxValues
	}
	u := newUnpickler(b, rules)
	value, end, err = u.load()
	if errors.Is(err, errDropped) && u.leftOut {
		u = newUnpickler(b, rules)
		u.rowsKept = math.MaxInt
		value, end, err = u.load()
	}
	if errors.Is(err, errDropped) {
		rules.Short = nil
		value, end, err = newUnpickler(b, rules).load()
	}
	return value, end, err
}

func newUnpickler(b string, rules Rules) *unpickler {
	return &unpickler{rules: rules, rowsKept: rowsKept, b: b, memo: memo{rest: make(map[uint32]any), expected: 2 * rules.Expected}, globals: make(map[string]any)}
}

func (u *unpickler) load() (value any, end int, err error) {
	for {
		at := u.at
		op, err := u.next(1)
		if err != nil {
			return nil, at, err
		}
		if op[0] == '.' {
			break
		}
		if err := u.step(op[0]); err != nil {
			return nil, at, err
		}
	}
	if value, err = u.pop(); err != nil {
		return nil, u.at - 1, err
	}
	for _, d := range u.unchecked {
		if err := d.check(); err != nil {
			return nil, u.at - 1, err
		}
	}
	return value, u.at, nil
}

func (u *unpickler) next(n int) (string, error) {
	if n < 0 || n > len(u.b)-u.at {
		return "", ErrShort
	}
	u.at += n
	return u.b[u.at-n : u.at], nil
}

// number reads an unsigned number of n bytes.
func (u *unpickler) number(n int) (uint64, error) {
	b, err := u.next(n)
	if err != nil {
		return 0, err
	}
	v := uint64(0)
	for i := len(b) - 1; i >= 0; i-- {
		v = v<<8 | uint64(b[i])
	}
	return v, nil
}

func (u *unpickler) protocol() error {
	version, err := u.number(1)
	if err == nil && (version < 2 || version > 5) {
		err = fmt.Errorf("pickle protocol %d is not known", version)
	}
	return err
}

// step does one opcode.
func (u *unpickler) step(op byte) error {
	switch op {
	case 0x80: // PROTO
		return u.protocol()
	case 0x95: // FRAME
		_, err := u.next(8)
		return err
	case '(':
		return u.mark()
	case ')':
		return u.push(noItems)
	case '}':
		return u.pushNew(NewDict(), dictSize)
	case ']', 0x8f: // EMPTY_LIST, EMPTY_SET
		return u.pushNew(&List{}, listSize)
	case 'N':
		return u.push(nil)
	case 0x88, 0x89:
		return u.push(op == 0x88)
	case 'q', 'r', 'h', 'j', 0x94:
		return u.remember(op)
	case 'J', 'K', 'M', 'G':
		return u.numeral(op)
	case 0x8a, 0x8b:
		return u.long(op)
	case 'X', 0x8c, 0x8d, 'U', 'T':
		return u.text(op)
	case 'B', 'C', 0x8e, 0x96:
		return u.bytes(op)
	case '0', '1', '2':
		return u.shuffle(op)
	case 't', 0x85, 0x86, 0x87:
		return u.tuple(op)
	case 'a', 'e', 's', 'u', 0x90:
		return u.fill(op)
	case 0x91: // FROZENSET
		items, err := u.toMark()
		if err != nil {
			return err
		}
		return u.pushNew(&List{Items: items}, listSize+itemSize*len(items))
	case 'c', 0x93:
		return u.global(op)
	case 'Q', 'R', 'b', 0x81, 0x92:
		return u.object(op)
	}
	return fmt.Errorf("opcode %#02x is not one that a state dict needs", op)
}

// remember does the opcodes of the memo.
func (u *unpickler) remember(op byte) error {
	key := uint64(u.memo.next + len(u.memo.rest))
	var err error
	switch op {
	case 'q', 'h':
		key, err = u.number(1)
	case 'r', 'j':
		key, err = u.number(4)
	}
	if err != nil {
		return err
	}
	if op == 'h' || op == 'j' {
		v, ok, err := u.memo.fetch(uint32(key))
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("the memo has nothing at %d", key)
		}
		return u.pushCall(v)
	}
	v, err := u.top()
	if err != nil {
		return err
	}
	size := memoSize
	switch next := uint64(u.memo.next); {
	case key > next:
		size = keySize // in a map
	case key < next:
		u.alikes.forget()
	}
	if err := u.memo.set(uint32(key), v); err != nil {
		return err
	}
	return u.spend(size)
}

func (u *unpickler) numeral(op byte) error {
	size := 1 // of K
	switch op {
	case 'J':
		size = 4
	case 'M':
		size = 2
	case 'G':
		size = 8
	}
	n, err := u.number(size)
	if err != nil {
		return err
	}
	switch op {
	case 'J':
		return u.push(int64(int32(n)))
	case 'G': // the only number that is big-endian
		return u.push(math.Float64frombits(bits.ReverseBytes64(n)))
	}
	return u.push(int64(n))
}

func (u *unpickler) tuple(op byte) error {
	if op == 't' {
		items, err := u.toMark()
		if err != nil {
			return err
		}
		return u.pushNew(Tuple(items), listSize+itemSize*len(items))
	}
	t := Tuple(u.items(int(op - 0x84)))
	if err := u.spend(listSize + itemSize*len(t)); err != nil {
		return err
	}
	for i := len(t) - 1; i >= 0; i-- {
		var err error
		if t[i], err = u.pop(); err != nil {
			return err
		}
	}
	return u.push(t)
}

// fill does the opcodes that put items into a list or a dict.
func (u *unpickler) fill(op byte) error {
	var items []any
	var err error
	if op == 'e' || op == 'u' || op == 0x90 {
		items, err = u.aboveMark()
	} else {
		items = u.items(1)
		if op == 's' {
			items = u.items(2)
		}
		for i := len(items) - 1; i >= 0 && err == nil; i-- {
			items[i], err = u.pop()
		}
	}
	if err != nil {
		return err
	}
	into, err := u.top()
	if err != nil {
		return err
	}
	if o, ok := into.(*Object); ok {
		into = o.itemsFor(op)
	}
	switch into := into.(type) {
	case *List:
		if op == 'a' || op == 'e' || op == 0x90 {
			into.Items = append(into.Items, items...)
			return u.spend(itemSize * len(items))
		}
	case *Dict:
		if (op == 's' || op == 'u') && len(items)%2 == 0 {
			if err := cmp.Or(u.spend(keySize*len(items)/2), u.spendOnKeys(items)); err != nil {
				return err
			}
			if err := into.setAll(items, u.expected(into)); err != nil {
				return err
			}
			if into.unchecked && (len(u.unchecked) == 0 || u.unchecked[len(u.unchecked)-1] != into) {
				u.unchecked = append(u.unchecked, into)
			}
			return nil
		}
	}
	return fmt.Errorf("items are added to an object that cannot hold them")
}
