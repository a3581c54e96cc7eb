package picture

// Sizes of the codes of a GIF file.
const (
	gifMostBits = 12
	gifCodes    = 1 << gifMostBits
	gifNoCode   = gifCodes + 2 // no code
)

// gifDecoder decodes the codes of a frame as giflib does, which the standard library
// does not where they are damaged: a code that is not yet known means the one
// before it and a colour that giflib takes from where it looks, and the table's last
// entry is made again and again by codes after it is full.
type gifDecoder struct {
	data []byte
	acc  uint32
	have uint // bits in acc

	clear  int // the code that begins a new table; the one after it ends the frame
	wide   uint
	next   int // two more than the code that the table gets next
	last   int
	prefix [gifCodes]uint16
	suffix [gifCodes]uint16
	stack  [gifCodes + 1]byte
}

// decodeGIFCodes fills out with colours. It is false if the codes do not give as many.
func decodeGIFCodes(out, codes []byte, bits int) bool {
	d := &gifDecoder{data: codes, clear: 1 << bits}
	d.restart(bits)
	for len(out) > 0 {
		code, ok := d.code()
		switch {
		case !ok || code == d.clear+1:
			return false
		case code == d.clear:
			d.restart(bits)
			continue
		case code < d.clear:
			out[0], out = byte(code), out[1:]
		default:
			n, ok := d.trace(code)
			if !ok {
				return false
			}
			for n > 0 && len(out) > 0 {
				n--
				out[0], out = d.stack[n], out[1:]
			}
		}
		d.learn(code)
	}
	return true
}

// restart begins a new table.
func (d *gifDecoder) restart(bits int) {
	for i := range d.prefix {
		d.prefix[i] = gifNoCode
	}
	d.next, d.wide, d.last = d.clear+2, uint(bits)+1, gifNoCode
}

// code returns the next code.
func (d *gifDecoder) code() (int, bool) {
	for d.have < d.wide {
		if len(d.data) == 0 {
			return 0, false
		}
		d.acc |= uint32(d.data[0]) << d.have
		d.data, d.have = d.data[1:], d.have+8
	}
	code := int(d.acc & (1<<d.wide - 1))
	d.acc, d.have = d.acc>>d.wide, d.have-d.wide
	if d.next < gifNoCode-1 {
		d.next++
		if d.next > 1<<d.wide && d.wide < gifMostBits {
			d.wide++
		}
	}
	return code, true
}

// trace puts the colours of a code on the stack, the last one first, and returns how
// many there are.
func (d *gifDecoder) trace(code int) (n int, ok bool) {
	at := code
	if d.prefix[code] == gifNoCode {
		at = d.last
		d.suffix[d.next-2] = uint16(d.firstOf(code))
		d.stack[0], n = byte(d.suffix[d.next-2]), 1
	}
	for n < gifCodes-1 && at > d.clear && at < gifCodes {
		d.stack[n] = byte(d.suffix[at])
		at, n = int(d.prefix[at]), n+1
	}
	if n >= gifCodes-1 || at >= gifCodes {
		return 0, false
	}
	d.stack[n] = byte(at)
	return n + 1, true
}

// firstOf returns the first colour of a code, for the one that is being made that of the
// code before it.
func (d *gifDecoder) firstOf(code int) int {
	if code == d.next-2 {
		code = d.last
	}
	for i := 0; code > d.clear && i < gifCodes; i++ {
		if code >= gifCodes {
			return gifNoCode
		}
		code = int(d.prefix[code])
	}
	return code
}

// learn adds the last code and the first colour of this one to the table.
func (d *gifDecoder) learn(code int) {
	if made := d.next - 2; d.last != gifNoCode && made < gifCodes && d.prefix[made] == gifNoCode {
		d.prefix[made] = uint16(d.last)
		d.suffix[made] = uint16(d.firstOf(code))
	}
	d.last = code
}
