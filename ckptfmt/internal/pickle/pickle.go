// Package pickle reads Python pickles as data. It is a stack machine that knows
// the opcodes of dicts, lists, tuples, numbers, texts and objects, and calls
// nothing: what a name or a call means is for its user to say, who refuses all
// that it does not know. It has no state.
package pickle

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// maxValues bounds what a pickle makes.
const maxValues = 8 << 20

// Values that a pickle makes, besides nil, bool, int64, float64 and string.
type (
	// Global is "module.name", which is never looked up.
	Global string
	// Tuple is a tuple.
	Tuple []any
	// List is a list.
	List struct{ Items []any }
	// Dict is a dict, in the order in which it was filled. Its keys are strings,
	// whole numbers and objects.
	Dict struct {
		Keys   []any
		Values []any
		at     map[any]int
	}
	// Object is an object of a class that Rules allow, with what it was saved with.
	Object struct {
		Class Global
		State any
	}
	mark struct{}
)

// NewDict returns an empty dict.
func NewDict() *Dict { return &Dict{at: make(map[any]int)} }

// Set has Python's meaning: the last value of a key stays.
func (d *Dict) Set(key, value any) error {
	switch key.(type) {
	case string, int64, *Object:
	default:
		return fmt.Errorf("a dict has a key that is neither text nor a whole number")
	}
	if i, ok := d.at[key]; ok {
		d.Values[i] = value
		return nil
	}
	d.at[key] = len(d.Keys)
	d.Keys, d.Values = append(d.Keys, key), append(d.Values, value)
	return nil
}

// Get returns the value of a key, nil where there is none.
func (d *Dict) Get(key any) any {
	if i, ok := d.at[key]; ok {
		return d.Values[i]
	}
	return nil
}

// Rules say what a pickle may name, and what that means.
type Rules struct {
	// Allowed reports whether a pickle may name a global.
	Allowed func(name string) bool
	// Call returns what calling an allowed global would make.
	Call func(name string, args Tuple) (any, error)
	// New, which may be nil, reports whether an allowed global is a class of which
	// there may be an [Object].
	New func(class string) bool
	// Persistent, which may be nil, returns what a persistent identifier means.
	Persistent func(id any) (any, error)
}

// unpickler is a stack machine that knows few opcodes and calls nothing.
type unpickler struct {
	rules Rules
	b     []byte
	at    int
	stack []any
	memo  []any          // under the numbers from 0 on, which is what all writers use
	rest  map[uint32]any // under others
	made  int
}

// Load returns what a pickle holds; the offset is that of an error.
func Load(b []byte, rules Rules) (value any, offset int, err error) {
	u := &unpickler{rules: rules, b: b, rest: make(map[uint32]any)}
	for {
		offset = u.at
		op, err := u.next(1)
		if err != nil {
			return nil, offset, err
		}
		if op[0] == '.' {
			break
		}
		if err := u.step(op[0]); err != nil {
			return nil, offset, err
		}
	}
	value, err = u.pop()
	return value, offset, err
}

func (u *unpickler) next(n int) ([]byte, error) {
	if n < 0 || n > len(u.b)-u.at {
		return nil, fmt.Errorf("it ends within an opcode")
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
	var full [8]byte
	copy(full[:], b)
	return binary.LittleEndian.Uint64(full[:]), nil
}

func (u *unpickler) push(v any) error {
	if u.made++; u.made > maxValues {
		return fmt.Errorf("it makes more than %d values", maxValues)
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
	for i := len(u.stack) - 1; i >= 0; i-- {
		if u.stack[i] == (mark{}) {
			items := append([]any(nil), u.stack[i+1:]...)
			u.stack = u.stack[:i]
			return items, nil
		}
	}
	return nil, fmt.Errorf("there is no mark on the stack")
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
	case ']':
		return u.push(&List{})
	case 'N':
		return u.push(nil)
	case 0x88, 0x89:
		return u.push(op == 0x88)
	case 'q', 'r', 'h', 'j', 0x94:
		return u.remember(op)
	case 'J', 'K', 'M', 'G', 0x8a:
		return u.numeral(op)
	case 'X', 0x8c, 'U':
		return u.text(op)
	case 't', 0x85, 0x86, 0x87:
		return u.tuple(op)
	case 'a', 'e', 's', 'u':
		return u.fill(op)
	case 'c', 0x93:
		return u.global(op)
	case 'Q', 'R', 'b', 0x81:
		return u.object(op)
	}
	return fmt.Errorf("opcode %#02x is not one that a state dict needs", op)
}

// remember does the opcodes of the memo.
func (u *unpickler) remember(op byte) error {
	key := uint64(len(u.memo) + len(u.rest))
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
		if key < uint64(len(u.memo)) {
			return u.push(u.memo[key])
		}
		v, ok := u.rest[uint32(key)]
		if !ok {
			return fmt.Errorf("the memo has nothing at %d", key)
		}
		return u.push(v)
	}
	v, err := u.top()
	switch n := uint64(len(u.memo)); {
	case err != nil:
	case key < n:
		u.memo[key] = v
	case key == n:
		u.memo = append(u.memo, v)
		delete(u.rest, uint32(key))
	default:
		u.rest[uint32(key)] = v
	}
	return err
}

func (u *unpickler) numeral(op byte) error {
	size := map[byte]int{'J': 4, 'K': 1, 'M': 2, 'G': 8, 0x8a: 1}[op]
	n, err := u.number(size)
	if err != nil {
		return err
	}
	switch op {
	case 'J':
		return u.push(int64(int32(n)))
	case 'G':
		return u.push(math.Float64frombits(binary.BigEndian.Uint64(u.b[u.at-8:])))
	case 0x8a: // LONG1: its length, then two's complement
		if n > 8 {
			return fmt.Errorf("a whole number has %d bytes", n)
		}
		v, err := u.number(int(n))
		if err != nil {
			return err
		}
		shift := 64 - 8*n
		return u.push(int64(v<<shift) >> shift)
	}
	return u.push(int64(n))
}

func (u *unpickler) text(op byte) error {
	size := 1
	if op == 'X' {
		size = 4
	}
	n, err := u.number(size)
	if err != nil {
		return err
	}
	b, err := u.next(int(n))
	if err != nil {
		return err
	}
	if !utf8.Valid(b) {
		return fmt.Errorf("a text is not UTF-8")
	}
	return u.push(string(b))
}

func (u *unpickler) tuple(op byte) error {
	if op == 't' {
		items, err := u.toMark()
		if err != nil {
			return err
		}
		return u.push(Tuple(items))
	}
	t := make(Tuple, op-0x84)
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
	if op == 'e' || op == 'u' {
		items, err = u.toMark()
	} else {
		items = make([]any, map[byte]int{'a': 1, 's': 2}[op])
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
		if op == 'a' || op == 'e' {
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

func (d *Dict) setAll(items []any) error {
	for i := 0; i < len(items); i += 2 {
		if err := d.Set(items[i], items[i+1]); err != nil {
			return err
		}
	}
	return nil
}

// global pushes a name, if it is one that state dicts have.
func (u *unpickler) global(op byte) error {
	var module, name string
	if op == 'c' {
		for _, word := range []*string{&module, &name} {
			text, _, ok := strings.Cut(string(u.b[u.at:min(len(u.b), u.at+256)]), "\n")
			if !ok {
				return fmt.Errorf("the name of a global does not end")
			}
			*word = text
			u.at += len(text) + 1
		}
	} else {
		n, err := u.pop()
		if err != nil {
			return err
		}
		m, err := u.pop()
		if err != nil {
			return err
		}
		var isName, isModule bool
		name, isName = n.(string)
		module, isModule = m.(string)
		if !isName || !isModule {
			return fmt.Errorf("the name of a global is not a string")
		}
	}
	full := module + "." + name
	if !u.rules.Allowed(full) {
		return fmt.Errorf("global %q is not one that a state dict needs; nothing was executed", full)
	}
	return u.push(Global(full))
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
	if op == 0x81 {
		if u.rules.New == nil || !u.rules.New(string(name)) || len(args) > 0 {
			return fmt.Errorf("an object of %s is made", name)
		}
		return u.push(&Object{Class: name})
	}
	v, err := u.rules.Call(string(name), args)
	if err != nil {
		return err
	}
	return u.push(v)
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
