// Package pickle reads Python pickles as data. It is a stack machine that knows
// the opcodes of dicts, lists, tuples, numbers, texts and objects, and calls
// nothing: what a name or a call means is for its caller to say, which refuses all
// that it does not know. It has no state.
package pickle

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strings"
)

// maxValues bounds what a pickle makes, unless its rules do.
const maxValues = 8 << 20

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
	// MaxValues bounds how many values a pickle makes; 0 means 8 million.
	MaxValues int
}

// unpickler is a stack machine that knows few opcodes and calls nothing.
type unpickler struct {
	rules Rules
	b     string // which the strings that it makes are parts of
	at    int
	stack []any
	memo  [][]any        // under the numbers from 0 on, which is what all writers use; only what is fetched
	keep  fetched        // what of that is
	put   int            // values that were put into memo
	rest  map[uint32]any // under others
	made  int
	room  []any // for the next tuples

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
	u := &unpickler{rules: rules, b: b, keep: fetchedIn(b), rest: make(map[uint32]any), globals: make(map[string]any)}
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

func (u *unpickler) push(v any) error {
	if u.made++; u.made > u.rules.MaxValues {
		return fmt.Errorf("it makes more than %d values", u.rules.MaxValues)
	}
	u.stack = append(u.stack, v)
	return nil
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

// step does one opcode.
func (u *unpickler) step(op byte) error {
	switch op {
	case 0x80: // PROTO
		version, err := u.number(1)
		if err == nil && (version < 2 || version > 5) {
			err = fmt.Errorf("pickle protocol %d is not known", version)
		}
		return err
	case 0x95: // FRAME
		_, err := u.next(8)
		return err
	case '(':
		return u.push(mark{})
	case ')':
		return u.push(Tuple(nil))
	case '}':
		return u.push(NewDict())
	case ']', 0x8f: // EMPTY_LIST, EMPTY_SET
		return u.push(&List{})
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
		return u.push(&List{Items: items})
	case 'c', 0x93:
		return u.global(op)
	case 'Q', 'R', 'b', 0x81, 0x92:
		return u.object(op)
	}
	return fmt.Errorf("opcode %#02x is not one that a state dict needs", op)
}

// memoPiece is how many values of the memo have their memory together.
const memoPiece = 256

// remember does the opcodes of the memo.
func (u *unpickler) remember(op byte) error {
	key := uint64(u.put + len(u.rest))
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
		if key < uint64(u.put) && u.keep.has(key) {
			return u.push(u.memo[key/memoPiece][key%memoPiece])
		}
		v, ok := u.rest[uint32(key)]
		if !ok {
			return fmt.Errorf("the memo has nothing at %d", key)
		}
		return u.push(v)
	}
	v, err := u.top()
	switch n := uint64(u.put); {
	case err != nil:
	case key < n:
		u.note(key, v)
	case key == n:
		if n%memoPiece == 0 {
			u.memo = append(u.memo, nil)
		}
		u.note(key, v)
		u.put++
		if len(u.rest) > 0 {
			delete(u.rest, uint32(key))
		}
	default:
		u.rest[uint32(key)] = v
	}
	return err
}

// note puts a value into the memo if it will be fetched.
func (u *unpickler) note(key uint64, v any) {
	if !u.keep.has(key) {
		return
	}
	piece := &u.memo[key/memoPiece]
	if *piece == nil {
		*piece = make([]any, memoPiece)
	}
	(*piece)[key%memoPiece] = v
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
		return u.push(Tuple(items))
	}
	t := Tuple(u.items(int(op - 0x84)))
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
	switch into := into.(type) {
	case *List:
		if op == 'a' || op == 'e' || op == 0x90 {
			into.Items = append(into.Items, items...)
			return nil
		}
	case *Dict:
		if (op == 's' || op == 'u') && len(items)%2 == 0 {
			return into.setAll(items)
		}
	}
	return fmt.Errorf("items are added to an object that cannot hold them")
}

// global pushes a name, if it is one that state dicts have.
func (u *unpickler) global(op byte) error {
	if op == 'c' {
		return u.globalInText()
	}
	n, err := u.pop()
	if err != nil {
		return err
	}
	m, err := u.pop()
	if err != nil {
		return err
	}
	name, isName := n.(string)
	module, isModule := m.(string)
	if !isName || !isModule {
		return fmt.Errorf("the name of a global is not a string")
	}
	v, err := u.named(module, name)
	if err != nil {
		return err
	}
	return u.push(v)
}

// globalInText pushes the name that two lines of the pickle have.
func (u *unpickler) globalInText() error {
	begin, ends := u.at, [2]int{}
	for i := range ends {
		text := u.b[u.at:min(len(u.b), u.at+256)]
		n := strings.IndexByte(text, '\n')
		if n < 0 && len(text) < 256 {
			return ErrShort
		}
		if n < 0 {
			return fmt.Errorf("the name of a global does not end")
		}
		ends[i] = u.at + n
		u.at += n + 1
	}
	both := u.b[begin:ends[1]]
	v, ok := u.globals[both]
	if !ok {
		var err error
		if v, err = u.named(u.b[begin:ends[0]], u.b[ends[0]+1:ends[1]]); err != nil {
			return err
		}
		u.globals[both] = v
	}
	return u.push(v)
}

// named returns a global that the rules allow.
func (u *unpickler) named(module, name string) (any, error) {
	full := module + "." + name
	if !u.rules.Allowed(full) {
		return nil, fmt.Errorf("global %q is not one that a state dict needs; nothing was executed", full)
	}
	return Global(full), nil
}

// object does BINPERSID, REDUCE, NEWOBJ and BUILD.
func (u *unpickler) object(op byte) error {
	arg, err := u.pop()
	if err != nil {
		return err
	}
	if op == 'Q' {
		if u.rules.Persistent == nil {
			return fmt.Errorf("there is a persistent identifier")
		}
		v, err := u.rules.Persistent(arg)
		if err != nil {
			return err
		}
		return u.push(v)
	}
	if op == 0x92 { // NEWOBJ_EX: with keywords
		if d, ok := arg.(*Dict); !ok || len(d.Keys) > 0 {
			return fmt.Errorf("an object is made with keywords")
		}
		if arg, err = u.pop(); err != nil {
			return err
		}
	}
	on, err := u.pop()
	if err != nil {
		return err
	}
	if op == 'b' {
		return u.build(on, arg)
	}
	name, isGlobal := on.(Global)
	args, isTuple := arg.(Tuple)
	if !isGlobal || !isTuple {
		return fmt.Errorf("the callee is not a global, or its arguments are not a tuple")
	}
	v, err := u.make(op, name, args)
	if err != nil {
		return err
	}
	return u.push(v)
}

// make returns what a call, or a class, makes.
func (u *unpickler) make(op byte, name Global, args Tuple) (any, error) {
	if op == 'R' {
		return u.rules.Call(string(name), args)
	}
	if u.rules.New == nil {
		return nil, fmt.Errorf("an object of %s is made", name)
	}
	return u.rules.New(string(name), args)
}

// build gives an object its state. That of a dict, such as the attribute _metadata
// that state dicts have, says nothing of what is in it.
func (u *unpickler) build(on, state any) error {
	switch on := on.(type) {
	case *Dict:
	case *Object:
		if on.State != nil {
			return fmt.Errorf("an object has two states")
		}
		on.State = state
	default:
		return fmt.Errorf("an object that is not a dict has a state")
	}
	return u.push(on)
}
