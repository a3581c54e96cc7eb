package jpeg

import "encoding/binary"

// Markers. They follow a byte FF.
const (
	sof0 = 0xc0
	sof1 = 0xc1
	sof2 = 0xc2
	sofF = 0xcf
	dht  = 0xc4
	jpg  = 0xc8
	dac  = 0xcc
	rst0 = 0xd0
	rst7 = 0xd7
	soi  = 0xd8
	eoi  = 0xd9
	sos  = 0xda
	dqt  = 0xdb
	dri  = 0xdd
	app0 = 0xe0
	appE = 0xee
	appF = 0xef
	com  = 0xfe
	tem  = 0x01
)

// natural is the place in a block of each coefficient of a file, which come in
// zigzag order.
var natural = [128]uint8{
	0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21, 28,
	35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
	// A run may lead beyond the last one, which then gets the value, as in libjpeg.
	63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63,
	63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63,
}

// nextMarker finds the next marker and returns it with its offset; 0 at the end
// of the data. Bytes before it are skipped.
func (d *decoder) nextMarker() (byte, int) {
	for d.at+1 < len(d.data) {
		if d.data[d.at] != 0xff {
			d.at++
			continue
		}
		if m := d.data[d.at+1]; m != 0xff && m != 0 {
			d.at += 2
			return m, d.at - 2
		}
		d.at++
	}
	d.at = len(d.data)
	return 0, d.at
}

// segment returns the data of the segment with marker m that the decoder is at, and
// passes it.
func (d *decoder) segment(m byte, start int) ([]byte, error) {
	if d.Recover {
		return d.segmentAgain(m, start)
	}
	if d.at+2 > len(d.data) {
		return nil, ErrTruncated
	}
	n := int(binary.BigEndian.Uint16(d.data[d.at:]))
	if n < 2 {
		return nil, d.fail(start, "the segment has length %d", n)
	}
	if d.at+n > len(d.data) {
		return nil, ErrTruncated
	}
	body := d.data[d.at+2 : d.at+n]
	d.at += n
	return body, nil
}

// maxWraps bounds how many segments may be cut off.
const maxWraps = 100

// segmentAgain is segment where the file may be cut off: what the segment lacks is then
// read from its start, as in TensorFlow, and so is what follows. Of segments that do not
// matter, or only at their beginning, the rest is passed.
func (d *decoder) segmentAgain(m byte, start int) ([]byte, error) {
	from, data := d.at, d.data[d.at:]
	if len(data) == 0 { // it reads an end of image
		data = []byte{0xff, eoi}
	}
	length := len(data)
	byteAt := func(i int) byte { return data[i%length] }
	n := int(byteAt(0))<<8 | int(byteAt(1))
	if n < 2 {
		return nil, d.fail(start, "the segment has length %d", n)
	}
	needed := n
	switch {
	case m == app0 || m == appE:
		needed = min(n, 2+14)
	case m > app0 && m <= appF || m == com:
		needed = 2
	}
	body := make([]byte, needed-2)
	for i := range body {
		body[i] = byteAt(2 + i)
	}
	if needed > length {
		if d.wraps++; d.wraps > maxWraps {
			return nil, ErrTruncated
		}
	}
	d.at = min(from+(needed-1)%length+1+n-needed, len(d.data))
	return body, nil
}

// readUntilFrame reads segments up to the frame header.
func (d *decoder) readUntilFrame() error {
	if len(d.data) < 2 || d.data[0] != 0xff || d.data[1] != soi {
		return d.fail(0, "not a JPEG file")
	}
	d.at = 2
	for {
		m, start := d.nextMarker()
		switch {
		case m == 0 || m == eoi || m == sos:
			return d.fail(start, "no frame header")
		case m >= rst0 && m <= soi || m == tem:
			continue
		}
		body, err := d.segment(m, start)
		if err != nil {
			return err
		}
		if m >= sof0 && m <= sofF && m != dht && m != jpg && m != dac {
			return d.frame(m, body, start)
		}
		if err := d.table(m, body, start); err != nil {
			return err
		}
	}
}

// table takes a segment that is neither a frame nor a scan.
func (d *decoder) table(m byte, body []byte, start int) error {
	switch m {
	case dqt:
		return d.quantTables(body, start)
	case dht:
		return d.huffmanTables(body, start)
	case dri:
		if len(body) != 2 {
			return d.fail(start, "a restart interval of %d bytes", len(body))
		}
		d.restart = int(binary.BigEndian.Uint16(body))
	case app0:
		d.jfif = d.jfif || len(body) >= 14 && string(body[:5]) == "JFIF\x00"
	case appE:
		if len(body) >= 12 && string(body[:5]) == "Adobe" {
			d.adobe, d.transform = true, body[11]
		}
	}
	return nil
}

func (d *decoder) quantTables(b []byte, start int) error {
	for len(b) > 0 {
		id, size := b[0]&15, 1+int(b[0]>>4)
		if id > 3 || size > 2 || len(b) < 1+64*size {
			return d.fail(start, "a bad quantization table")
		}
		t := &[64]uint16{}
		for i, n := range natural[:64] {
			if size == 1 {
				t[n] = uint16(b[1+i])
			} else {
				t[n] = binary.BigEndian.Uint16(b[1+2*i:])
			}
		}
		d.quant[id] = t
		b = b[1+64*size:]
	}
	return nil
}

func (d *decoder) huffmanTables(b []byte, start int) error {
	for len(b) > 0 {
		if len(b) < 17 {
			return d.fail(start, "a Huffman table is cut off")
		}
		class, id, total := b[0]>>4, b[0]&15, 0
		for _, n := range b[1:17] {
			total += int(n)
		}
		if class > 1 || id > 3 || total > 256 || len(b) < 17+total {
			return d.fail(start, "a bad Huffman table")
		}
		t, ok := newHuffman(b[1:17], b[17:17+total], class == 0)
		if !ok {
			return d.fail(start, "a bad Huffman table")
		}
		d.huff[class][id] = t
		b = b[17+total:]
	}
	return nil
}

// frame reads the frame header.
func (d *decoder) frame(m byte, b []byte, start int) error {
	if m != sof0 && m != sof1 && m != sof2 {
		return d.fail(start, "frames of kind %#x are not supported", m)
	}
	if len(b) < 6 || len(b) != 6+3*int(b[5]) {
		return d.fail(start, "the frame header has %d bytes", len(b))
	}
	d.progressive = m == sof2
	d.height, d.width = int(binary.BigEndian.Uint16(b[1:])), int(binary.BigEndian.Uint16(b[3:]))
	switch n := int(b[5]); {
	case b[0] != 8:
		return d.fail(start, "samples of %d bits are not supported", b[0])
	case d.width == 0 || d.height == 0:
		return d.fail(start, "a picture of %d x %d pixels", d.width, d.height)
	case n != 1 && n != 3 && n != 4:
		return d.fail(start, "%d components are not supported", n)
	}
	for b = b[6:]; len(b) > 0; b = b[3:] {
		c := &component{id: b[0], h: int(b[1] >> 4), v: int(b[1] & 15), table: b[2]}
		if c.h < 1 || c.h > 4 || c.v < 1 || c.v > 4 || c.table > 3 {
			return d.fail(start, "component %d has sampling %dx%d and table %d", c.id, c.h, c.v, c.table)
		}
		d.maxH, d.maxV = max(d.maxH, c.h), max(d.maxV, c.v)
		d.comps = append(d.comps, c)
	}
	d.mcusX, d.mcusY = ceilDiv(d.width, 8*d.maxH), ceilDiv(d.height, 8*d.maxV)
	for _, c := range d.comps {
		c.wide, c.high = ceilDiv(d.width*c.h, 8*d.maxH), ceilDiv(d.height*c.v, 8*d.maxV)
		c.stride = d.mcusX * c.h
	}
	return nil
}
