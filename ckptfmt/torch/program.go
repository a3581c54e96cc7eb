package torch

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/internal/pickle"
)

// ofPython are the modules of Python itself, of any version. What programs save of them with their
// tensors is in inertClasses. Whatever else is called of them may be an attack, as os.system is.
var ofPython = setOf(`
	__builtin__ abc aifc antigravity argparse array ast asynchat asyncio asyncore atexit audioop base64 bdb binascii
	bisect builtins bz2 cPickle cProfile calendar cgi cgitb chunk cmath cmd code codecs codeop collections colorsys
	commands compileall concurrent configparser contextlib contextvars copy copy_reg copyreg crypt csv ctypes curses
	dataclasses datetime dbm decimal difflib dis distutils doctest email encodings ensurepip enum errno exceptions
	faulthandler fcntl filecmp fileinput fnmatch fractions ftplib functools gc genericpath getopt getpass gettext glob
	graphlib grp gzip hashlib heapq hmac html http httplib idlelib imaplib imghdr imp importlib inspect io ipaddress
	itertools json keyword lib2to3 linecache locale logging lzma mailbox mailcap marshal math mimetypes mmap modulefinder
	msilib msvcrt multiprocessing netrc nis nntplib nt ntpath nturl2path numbers opcode operator optparse os ossaudiodev
	pathlib pdb pickle pickletools pipes pkgutil platform plistlib popen2 poplib posix posixpath pprint profile pstats pty
	pwd py_compile pyclbr pydoc pyexpat queue quopri random re readline reprlib resource rlcompleter runpy sched secrets
	select selectors shelve shlex shutil signal site smtpd smtplib sndhdr socket socketserver spwd sqlite3 sre_compile
	sre_constants sre_parse ssl stat statistics string stringprep struct subprocess sunau symtable sys sysconfig syslog
	tabnanny tarfile telnetlib tempfile termios textwrap thread this threading time timeit tkinter token tokenize tomllib
	trace traceback tracemalloc tty turtle types typing unicodedata unittest urllib urllib2 uu uuid venv warnings wave
	weakref webbrowser winreg winsound wsgiref xdrlib xml xmlrpc zipapp zipfile zipimport zlib zoneinfo
`)

// objectOf returns an object of a program's or a library's class. Python's own classes are refused.
func objectOf(class string, args pickle.Tuple) (any, error) {
	module, _, _ := strings.Cut(class, ".")
	if ofPython[module] || strings.HasPrefix(module, "_") && module != "__main__" {
		return nil, pickle.Refuse(class)
	}
	return &pickle.Object{Class: pickle.Global(class), Args: args}, nil
}

// ofFunction marks the arguments of a function, whose meaning only that function knows.
type ofFunction struct{}

// madeBy returns what represents what calling a class or a function would make. Programs begin the
// names of classes with capitals.
func madeBy(name string, args pickle.Tuple) (any, error) {
	last := strings.TrimLeft(name[strings.LastIndexByte(name, '.')+1:], "_")
	if !strings.ContainsFunc(last[:min(1, len(last))], unicode.IsUpper) {
		args = append(pickle.Tuple{ofFunction{}}, args...)
	}
	return objectOf(name, args)
}

func madeByFunction(o *pickle.Object) bool {
	return len(o.Args) > 0 && o.Args[0] == any(ofFunction{})
}

// madeOf returns what an object was made of.
func madeOf(o *pickle.Object) pickle.Tuple {
	if madeByFunction(o) {
		return o.Args[1:]
	}
	return o.Args
}

// Object is the kind of values that are listed as unsupported because a function would have to make
// them.
const Object = "object"

// flattenMade names the contents of an object of a program's class: the arguments that it was made
// from, such as the fields of a named tuple or the value of an enumeration, its items if it is
// derived from dict, and its attributes.
func (r *Reader) flattenMade(name string, o *pickle.Object, depth int) error {
	if o.Items == nil && madeByFunction(o) {
		if isOfTensors(string(o.Class)) || r.hasTensors(o.Args, maxNested) || r.hasTensors(o.State, maxNested) {
			why := fmt.Errorf("%w: it is made by %s, which is not executed", ckptfmt.ErrType, o.Class)
			r.addUnreadable(nameOf(name), Object, why)
		}
		return nil
	}
	args := madeOf(o)
	made := any(args)
	if len(args) == 1 {
		made = args[0]
	}
	if err := r.flatten(name, made, depth+1); err != nil {
		return err
	}
	if err := r.flatten(name, o.Items, depth+1); err != nil {
		return err
	}
	return r.flattenState(name, o.State, depth+1)
}

// isOfTensors reports whether a function is one of libraries whose functions make tensors and arrays.
func isOfTensors(name string) bool {
	return strings.HasPrefix(name, "torch.") || strings.HasPrefix(name, "numpy.")
}

// maxNested is how deep tensors are searched for in the arguments of a function, such as those of a
// pandas table.
const maxNested = 6

// hasTensors reports whether there is a tensor or an array in a value.
func (r *Reader) hasTensors(value any, nested int) bool {
	if r.visited++; nested < 0 || r.visited > maxValues {
		return false
	}
	var items []any
	switch v := value.(type) {
	case *tensor, *refused:
		return true
	case *pickle.Object:
		if _, ok := storedIn(v); ok {
			return true
		}
		items = []any{v.Args, v.Items, v.State}
	case *pickle.Dict:
		items = v.Values
	case *pickle.List:
		items = v.Items
	case pickle.Tuple:
		items = v
	}
	return slices.ContainsFunc(items, func(v any) bool { return r.hasTensors(v, nested-1) })
}

// flattenState names the contents of an object's state. The state of an object with slots is a pair
// of dicts.
func (r *Reader) flattenState(name string, state any, depth int) error {
	if t, ok := state.(pickle.Tuple); ok && isSlots(t) {
		for _, v := range t {
			if err := r.flatten(name, v, depth); err != nil {
				return err
			}
		}
		return nil
	}
	if d, ok := state.(*pickle.Dict); ok && d.Get("_parameters") != nil && d.Get("_modules") != nil {
		return r.flattenModule(name, d, depth)
	}
	return r.flatten(name, state, depth)
}

// isSlots reports whether a state belongs to an object with slots: its other attributes, if any,
// and the slots.
func isSlots(t pickle.Tuple) bool {
	if len(t) != 2 {
		return false
	}
	_, isDict := t[0].(*pickle.Dict)
	_, hasSlots := t[1].(*pickle.Dict)
	return hasSlots && (isDict || t[0] == nil)
}

// flattenModule names the tensors in a module as its state_dict() does, and its other attributes,
// except torch's own.
func (r *Reader) flattenModule(name string, attributes *pickle.Dict, depth int) error {
	for i, key := range attributes.Keys {
		var err error
		switch key, value := keyName(key), attributes.Values[i]; {
		case key == "_parameters", key == "_modules":
			err = r.flatten(name, value, depth)
		case key == "_buffers":
			err = r.flattenBuffers(name, value, attributes.Get("_non_persistent_buffers_set"), depth)
		case !strings.HasPrefix(key, "_"):
			err = r.flatten(joined(name, key), value, depth)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// flattenBuffers names the buffers of a module, except those that it does not save.
func (r *Reader) flattenBuffers(name string, buffers, unsaved any, depth int) error {
	d, _ := buffers.(*pickle.Dict)
	if d == nil {
		return nil
	}
	left := map[string]bool{}
	if names, ok := unsaved.(*pickle.List); ok {
		r.visited += len(names.Items)
		for _, v := range names.Items {
			if text, ok := v.(string); ok {
				left[text] = true
			}
		}
	}
	for i, key := range d.Keys {
		if text, ok := key.(string); ok && left[text] {
			continue
		}
		if err := r.flatten(joined(name, keyName(key)), d.Values[i], depth+1); err != nil {
			return err
		}
	}
	return nil
}
