package text

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

var stringsOps = exec.OpTable{
	"StringJoin":           {Build: buildStringJoin},
	"StringToNumber":       {Build: buildStringToNumber},
	"StringStrip":          {Build: exec.WithoutAttrs(elem.Unary(trimSpaces))},
	"RegexReplace":         {Build: buildRegexReplace(false)},
	"StaticRegexReplace":   {Build: buildRegexReplace(true)},
	"RegexFullMatch":       {Build: exec.WithoutAttrs(regexFullMatch)},
	"ReduceJoin":           {Build: buildReduceJoin},
	"StringSplitV2":        {Build: buildStringSplit},
	"StaticRegexFullMatch": {Build: buildStaticFullMatch},
	"StringSplit":          {Build: buildSplitChars},
}

func buildStringJoin(b *exec.OpConstruction) (exec.Kernel, error) {
	sep := b.String("separator")
	return func(c *exec.KernelContext) error {
		var like *exec.Tensor
		for i := range c.NumInputs() {
			t := c.In(i)
			if like == nil || len(like.Shape) == 0 {
				like = t
			} else if len(t.Shape) > 0 && !exec.SameShape(t.Shape, like.Shape) {
				return c.Invalid("input %d has the shape %s, another %s", i, exec.ShapeString(t.Shape), exec.ShapeString(like.Shape))
			}
		}
		if like == nil {
			return c.Invalid("nothing to join")
		}
		d := c.OutLike(0, exec.String, like)
		parts := make([][]byte, c.NumInputs())
		for k := range d.Strings {
			size := 0
			for i := range parts {
				t := c.In(i)
				parts[i] = t.Strings[k%len(t.Strings)]
				size += len(parts[i]) + len(sep)
			}
			c.Room(size)
			d.Strings[k] = bytes.Join(parts, []byte(sep))
		}
		return nil
	}, nil
}

func buildStringToNumber(b *exec.OpConstruction) (exec.Kernel, error) {
	dt := b.DType("out_type")
	if !(exec.Numbers | exec.SetOf(exec.Uint32, exec.Uint64)).Has(dt) {
		b.Fail("no kernel for out_type=%s", exec.TypeName(dt))
	}
	return func(c *exec.KernelContext) error {
		x := c.In(0)
		d := c.OutLike(0, dt, x)
		for i, s := range x.Strings {
			if err := elem.ParseNumber(d, i, trimSpaces(s)); err != nil {
				return c.Invalid("element %d, %q, is no %s", i, s, exec.TypeName(dt))
			}
		}
		return nil
	}, nil
}

// rewriteTemplate turns a rewrite of RE2 (\0 to \9) into one of package regexp.
func rewriteTemplate(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '$':
			b.WriteString("$$")
		case s[i] == '\\' && i+1 < len(s):
			i++
			if s[i] >= '0' && s[i] <= '9' {
				fmt.Fprintf(&b, "${%c}", s[i])
			} else {
				b.WriteByte(s[i])
			}
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

func buildRegexReplace(static bool) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		global := b.Bool("replace_global")
		pattern, rewrite := b.String("pattern"), b.String("rewrite")
		if static {
			re, err := regexp.Compile(pattern)
			template := rewriteTemplate(rewrite)
			return func(c *exec.KernelContext) error {
				if err != nil {
					return c.Invalid("%v", err)
				}
				return replace(c, re, template, global)
			}, nil
		}
		return func(c *exec.KernelContext) error {
			pattern, err := c.StringScalar(1, "the pattern")
			if err != nil {
				return err
			}
			rewrite, err := c.StringScalar(2, "the rewrite")
			if err != nil {
				return err
			}
			re, err := regexp.Compile(pattern)
			if err != nil {
				return c.Invalid("%v", err)
			}
			return replace(c, re, rewriteTemplate(rewrite), global)
		}, nil
	}
}

func replace(c *exec.KernelContext, re *regexp.Regexp, template string, global bool) error {
	x := c.In(0)
	d := c.OutLike(0, exec.String, x)
	for i, s := range x.Strings {
		if global {
			d.Strings[i] = re.ReplaceAll(s, []byte(template))
			continue
		}
		d.Strings[i] = s
		if m := re.FindSubmatchIndex(s); m != nil {
			head := append([]byte{}, s[:m[0]]...)
			d.Strings[i] = append(re.Expand(head, []byte(template), s, m), s[m[1]:]...)
		}
	}
	return nil
}

func regexFullMatch(c *exec.KernelContext) error {
	pattern, err := c.StringScalar(1, "the pattern")
	if err != nil {
		return err
	}
	re, err := regexp.Compile(`\A(?:` + pattern + `)\z`)
	if err != nil {
		return c.Invalid("%v", err)
	}
	x := c.In(0)
	d := exec.Elems[bool](c.OutLike(0, exec.Bool, x))
	for i, s := range x.Strings {
		d[i] = re.Match(s)
	}
	return nil
}

// buildReduceJoin builds the op that joins strings along axes, where the
// first runs fastest.
func buildReduceJoin(b *exec.OpConstruction) (exec.Kernel, error) {
	keep, sep := b.Bool("keep_dims"), []byte(b.String("separator"))
	return func(c *exec.KernelContext) error {
		x := c.In(0)
		axes := c.IntsOf(0, c.In(1))
		var r elem.Reduction
		if err := r.Init(c, x.Shape, axes, keep); err != nil {
			return err
		}
		var kept []int
		for i := range x.Shape {
			if !slices.Contains(axes, i) && !slices.Contains(axes, i-len(x.Shape)) {
				kept = append(kept, i)
			}
		}
		slices.Reverse(axes)
		from, parts := offsets(x.Shape, kept), offsets(x.Shape, axes)
		d := c.Out(0, exec.String, r.Out[:r.Rank]...)
		for i := range d.Strings {
			joined := []byte{}
			size := 0
			for _, p := range parts {
				size += len(x.Strings[from[i]+p]) + len(sep)
			}
			c.Room(size)
			for j, p := range parts {
				if j > 0 {
					joined = append(joined, sep...)
				}
				joined = append(joined, x.Strings[from[i]+p]...)
			}
			d.Strings[i] = joined
		}
		return nil
	}, nil
}

// offsets lists where the elements are that axes of a tensor lead to, the last
// axis running fastest.
func offsets(shape, axes []int) []int {
	out := []int{0}
	for _, a := range axes {
		a = (a + len(shape)) % len(shape)
		stride := exec.NumElements(shape[a+1:])
		next := make([]int, 0, len(out)*shape[a])
		for _, o := range out {
			for i := range shape[a] {
				next = append(next, o+i*stride)
			}
		}
		out = next
	}
	return out
}

func buildStringSplit(b *exec.OpConstruction) (exec.Kernel, error) {
	limit := b.Int("maxsplit")
	return func(c *exec.KernelContext) error {
		sep, err := c.StringScalar(1, "the separator")
		if err != nil {
			return err
		}
		return splitAll(c, func(s []byte) [][]byte { return splitString(s, sep, limit) })
	}, nil
}

// splitAll makes the outputs a sparse tensor with the parts of each string of
// input 0 in a row.
func splitAll(c *exec.KernelContext, split func([]byte) [][]byte) error {
	x := c.In(0)
	if len(x.Shape) != 1 {
		return c.Invalid("the input must be a vector, not %s", x.Describe())
	}
	var idx []int64
	var parts [][]byte
	width := 0
	for i, s := range x.Strings {
		list := split(s)
		width = max(width, len(list))
		for j, p := range list {
			idx = append(idx, int64(i), int64(j))
			parts = append(parts, p)
		}
	}
	copy(exec.Elems[int64](c.Out(0, exec.Int64, len(parts), 2)), idx)
	copy(c.Out(1, exec.String, len(parts)).Strings, parts)
	copy(exec.Elems[int64](c.Out(2, exec.Int64, 2)), []int64{int64(len(x.Strings)), int64(width)})
	return nil
}

// spaces is the white space of string ops: that of ASCII.
const spaces = " \t\n\v\f\r"

func trimSpaces(s []byte) []byte { return bytes.Trim(s, spaces) }

// splitString splits at a separator, or at runs of white space when it is
// empty; at most limit times unless that is negative.
func splitString(s []byte, sep string, limit int) [][]byte {
	switch {
	case limit == 0:
		return [][]byte{s}
	case sep == "":
		return splitAtSpaces(s, limit)
	case limit < 0:
		return bytes.Split(s, []byte(sep))
	}
	return bytes.SplitN(s, []byte(sep), limit+1)
}

// splitAtSpaces ends with the rest of s after the last part that the limit
// allows, even when that is empty.
func splitAtSpaces(s []byte, limit int) [][]byte {
	var out [][]byte
	for s = bytes.TrimLeft(s, spaces); len(s) > 0; s = bytes.TrimLeft(s, spaces) {
		if len(out) == limit {
			return append(out, s)
		}
		i := bytes.IndexAny(s, spaces)
		if i < 0 {
			i = len(s)
		}
		out = append(out, s[:i])
		s = s[i:]
	}
	if len(out) == limit {
		out = append(out, s)
	}
	return out
}

func buildStaticFullMatch(b *exec.OpConstruction) (exec.Kernel, error) {
	re, err := regexp.Compile(`\A(?:` + b.String("pattern") + `)\z`)
	if err != nil {
		return nil, err
	}
	return elem.Convert(re.Match), nil
}

// buildSplitChars builds the older split, at any byte of the delimiter, or
// between all bytes when it is empty.
func buildSplitChars(b *exec.OpConstruction) (exec.Kernel, error) {
	skip := b.Bool("skip_empty")
	return func(c *exec.KernelContext) error {
		chars, err := c.StringScalar(1, "the delimiter")
		if err != nil {
			return err
		}
		return splitAll(c, func(s []byte) [][]byte { return splitChars(s, chars, skip) })
	}, nil
}

func splitChars(s []byte, chars string, skip bool) [][]byte {
	var out [][]byte
	if chars == "" {
		for i := range s {
			out = append(out, s[i:i+1])
		}
		return out
	}
	from := 0
	for i := 0; i <= len(s) && len(s) > 0; i++ {
		if i < len(s) && bytes.IndexByte([]byte(chars), s[i]) < 0 {
			continue
		}
		if i > from || !skip {
			out = append(out, s[from:i])
		}
		from = i + 1
	}
	return out
}
