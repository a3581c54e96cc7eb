package parsing

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// Examples are read without making messages of them: of the features that nobody
// wants only the lengths are looked at, as TensorFlow does, and values go from the
// encoding to the outputs. The messages are
//
//	Example          1: Features
//	SequenceExample  1: Features (context)   2: FeatureLists
//	Features         1: entries of a map of names to Feature
//	FeatureLists     1: entries of a map of names to FeatureList
//	entry            1: name   2: the value
//	FeatureList      1: Feature, repeated
//	Feature          1: list of bytes   2: of float32   3: of int64; the last one counts
//	list             1: values, repeated, numbers packed or not
//
// Two encodings of a message in a row are the two merged, so parts of a message that
// come twice are joined.

// feature is the values of a feature, still encoded. The zero value is one without
// values.
type feature struct {
	dtype  tfpb.DataType // NoType: of no kind
	values []byte        // the list
	n      int           // number of values
}

var errEncoding = errors.New("the encoding is damaged")

// kinds are the types of values by the number of their list in a Feature.
var kinds = [...]tfpb.DataType{1: exec.String, 2: exec.Float32, 3: exec.Int64}

// field reads the next field of a message. Its value is nil unless it is of the
// type of bytes.
func field(data []byte) (num protowire.Number, value, rest []byte, err error) {
	// Most fields are small messages or strings with a tag and a length of one byte.
	if len(data) >= 2 && data[0]&^0x78 == byte(protowire.BytesType) && data[0] >= 8 && data[1] < 0x80 && int(data[1]) <= len(data)-2 {
		end := 2 + int(data[1])
		return protowire.Number(data[0] >> 3), data[2:end:end], data[end:], nil
	}
	num, kind, n := protowire.ConsumeTag(data)
	if n < 0 {
		return 0, nil, nil, errEncoding
	}
	data = data[n:]
	if kind == protowire.BytesType {
		value, n = protowire.ConsumeBytes(data)
		if n < 0 {
			return 0, nil, nil, errEncoding
		}
		return num, value, data[n:], nil
	}
	if n = protowire.ConsumeFieldValue(num, kind, data); n < 0 {
		return 0, nil, nil, errEncoding
	}
	return num, nil, data[n:], nil
}

// eachEntry calls use with the entries of the maps that a message has as field
// number of.
func eachEntry(data []byte, of protowire.Number, use func(key, value []byte) error) error {
	for len(data) > 0 {
		num, entries, rest, err := field(data)
		if err != nil {
			return err
		}
		data = rest
		if num != of {
			continue
		}
		for len(entries) > 0 {
			num, entry, rest, err := field(entries)
			if err != nil {
				return err
			}
			entries = rest
			if num != 1 || entry == nil {
				continue
			}
			key, value, err := keyAndValue(entry)
			if err != nil {
				return err
			}
			if err := use(key, value); err != nil {
				return err
			}
		}
	}
	return nil
}

func keyAndValue(entry []byte) (key, value []byte, err error) {
	for len(entry) > 0 {
		num, v, rest, err := field(entry)
		if err != nil {
			return nil, nil, err
		}
		entry = rest
		switch {
		case num == 1 && v != nil:
			key = v
		case num == 2 && v != nil:
			value = joined(value, v)
		}
	}
	return key, value, nil
}

// joined returns the encoding of two messages merged.
func joined(a, b []byte) []byte {
	if len(a) == 0 {
		return b
	}
	return append(a[:len(a):len(a)], b...)
}

// featureOf reads a Feature.
func featureOf(data []byte) (f feature, err error) {
	for len(data) > 0 {
		num, list, rest, err := field(data)
		if err != nil {
			return f, err
		}
		data = rest
		if list == nil || int(num) >= len(kinds) {
			continue
		}
		if dt := kinds[num]; dt != f.dtype {
			f.dtype, f.values = dt, nil
		}
		f.values = joined(f.values, list)
	}
	f.n, err = f.count()
	return f, err
}

// count returns the number of values.
func (f *feature) count() (n int, err error) {
	err = f.each(func(part []byte) error {
		switch f.dtype {
		case exec.Float32:
			if len(part)%4 != 0 {
				return errEncoding
			}
			n += len(part) / 4
		case exec.Int64:
			n += countVarints(part)
		default:
			n++
		}
		return nil
	})
	return n, err
}

// countVarints returns how many bytes end an integer.
func countVarints(part []byte) (n int) {
	for _, b := range part {
		n += int(b>>7 ^ 1)
	}
	return n
}

// listTag begins a string, or numbers that are packed.
const listTag = 1<<3 | byte(protowire.BytesType)

// each calls use with each string, or with each run of encoded numbers.
func (f *feature) each(use func(part []byte) error) error {
	single := protowire.VarintType
	if f.dtype == exec.Float32 {
		single = protowire.Fixed32Type
	}
	if data := f.values; len(data) >= 2 && data[0] == listTag && int(data[1]) == len(data)-2 && data[1] < 0x80 {
		return use(data[2:])
	}
	for data := f.values; len(data) > 0; {
		num, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return errEncoding
		}
		data = data[n:]
		part := data
		isBytes := kind == protowire.BytesType
		if isBytes {
			part, n = protowire.ConsumeBytes(data)
		} else if n = protowire.ConsumeFieldValue(num, kind, data); n >= 0 {
			part = data[:n]
		}
		if n < 0 {
			return errEncoding
		}
		data = data[n:]
		if num != 1 || !isBytes && (kind != single || f.dtype == exec.String) {
			continue
		}
		if err := use(part); err != nil {
			return err
		}
	}
	return nil
}

// len returns the number of values: 0 if the feature is absent.
func (f *feature) len(dt tfpb.DataType) (int, error) {
	if f.dtype != exec.NoType && f.dtype != dt {
		return 0, fmt.Errorf("its values are %s, not %s", exec.TypeName(f.dtype), exec.TypeName(dt))
	}
	return f.n, nil
}

// copyTo stores the values from element at on.
func (f *feature) copyTo(d *exec.Tensor, at int) error {
	switch f.dtype {
	case exec.Float32:
		return f.copyFloats(exec.Elems[float32](d)[at : at+f.n])
	case exec.Int64:
		return f.copyInts(exec.Elems[int64](d)[at : at+f.n])
	case exec.String:
		return f.each(func(part []byte) error {
			d.Strings[at] = part
			at++
			return nil
		})
	}
	return nil
}

func (f *feature) copyFloats(to []float32) error {
	return f.each(func(part []byte) error {
		for ; len(part) > 0; part = part[4:] {
			to[0] = math.Float32frombits(binary.LittleEndian.Uint32(part))
			to = to[1:]
		}
		return nil
	})
}

func (f *feature) copyInts(to []int64) error {
	return f.each(func(part []byte) error {
		for len(part) > 0 {
			v, n := uint64(part[0]), 1
			if v >= 0x80 {
				if v, n = protowire.ConsumeVarint(part); n < 0 {
					return errEncoding
				}
			}
			to[0] = int64(v)
			to, part = to[1:], part[n:]
		}
		return nil
	})
}
