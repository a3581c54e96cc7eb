package pickle

import (
	"fmt"
	"strings"
)

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
	return u.pushCall(v)
}

// maxLine bounds the module of a global, and its name.
const maxLine = 256

// noItems is an empty tuple, whose memory all have.
var noItems any = Tuple(nil)

// globalInText pushes the name that two lines of the pickle have.
func (u *unpickler) globalInText() error {
	begin, ends := u.at, [2]int{}
	for i := range ends {
		text := u.b[u.at:min(len(u.b), u.at+maxLine)]
		n := strings.IndexByte(text, '\n')
		if n < 0 && len(text) < maxLine {
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
	return u.pushCall(v)
}

// named returns a global that the rules allow.
func (u *unpickler) named(module, name string) (any, error) {
	full := module + "." + name
	if !u.rules.Allowed(full) {
		return nil, Refuse(full)
	}
	return Global(full), nil
}

// Refuse returns the error about a global that is not allowed, or not allowed to be called.
func Refuse(name string) error {
	return fmt.Errorf("global %q is not one that a state dict needs; nothing was executed", name)
}

// itemsFor returns what holds the items of an object, which the opcode that adds the first decides:
// an object of a class that is derived from dict, or from list.
func (o *Object) itemsFor(op byte) any {
	if o.Items == nil && (op == 's' || op == 'u') {
		o.Items = NewDict()
	}
	if o.Items == nil {
		o.Items = &List{}
	}
	return o.Items
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
	if err := u.spendOn([]any{args}, maxNested); err != nil {
		return nil, err
	}
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
		if u.rules.Built != nil {
			n, err := u.rules.Built(on, u.b[u.at:])
			if err != nil {
				return err
			}
			u.at += n
		}
	default:
		return fmt.Errorf("an object that is not a dict has a state")
	}
	return u.push(on)
}
