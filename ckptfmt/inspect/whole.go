package inspect

import (
	"encoding/binary"
	"strconv"

	tfpb "github.com/trainerd/trainerd/proto"
)

// whole reads integers of 64 bits, which a float64 may round: each as a key that has their
// order. The zero value is of all other types.
type whole struct {
	size int
	flip uint64 // the sign, which is the opposite in a key
}

func wholeOf(d tfpb.DataType) whole {
	switch d {
	case tfpb.DataType_DT_INT64:
		return whole{8, 1 << 63}
	case tfpb.DataType_DT_UINT64:
		return whole{8, 0}
	}
	return whole{}
}

func (w whole) key(b []byte) uint64 { return binary.LittleEndian.Uint64(b) ^ w.flip }

// text is an integer in all its digits, "" of another type.
func (w whole) text(b []byte) string {
	if w.size == 0 {
		return ""
	}
	return w.digits(w.key(b))
}

func (w whole) digits(key uint64) string {
	if w.flip != 0 {
		return strconv.FormatInt(int64(key^w.flip), 10)
	}
	return strconv.FormatUint(key, 10)
}

// wholeRange is the smallest and the largest of such integers.
type wholeRange struct {
	of          whole
	least, most uint64 // keys
	any         bool
}

func (r *wholeRange) add(data []byte) {
	if r.of.size == 0 {
		return
	}
	for ; len(data) >= r.of.size; data = data[r.of.size:] {
		key := r.of.key(data)
		if !r.any {
			r.least, r.most, r.any = key, key, true
		}
		r.least, r.most = min(r.least, key), max(r.most, key)
	}
}

func (r *wholeRange) texts() (least, most string) {
	if !r.any {
		return "", ""
	}
	return r.of.digits(r.least), r.of.digits(r.most)
}
