package picture

// unfilter adds to the samples of a line what the filter took away: n is the number
// of samples of a pixel.
func unfilter(filter byte, line, above []byte, n int) bool {
	switch filter {
	case 0:
	case 1:
		for i := n; i < len(line); i++ {
			line[i] += line[i-n]
		}
	case 2:
		for i, v := range above {
			line[i] += v
		}
	case 3:
		for i := range n {
			line[i] += above[i] / 2
		}
		for i := n; i < len(line); i++ {
			line[i] += byte((int(line[i-n]) + int(above[i])) / 2)
		}
	case 4:
		unfilterPaeth(line, above, n)
	default:
		return false
	}
	return true
}

// unfilterPaeth adds to each sample the one of its three neighbours that is nearest
// to left + above - the one between them.
func unfilterPaeth(line, above []byte, n int) {
	for k := range n {
		left, corner := 0, 0
		for i := k; i < len(line); i += n {
			up := int(above[i])
			a, b := up-corner, left-corner
			c := a + b
			a, b, c = max(a, -a), max(b, -b), max(c, -c)
			nearest := corner
			if b <= c {
				nearest = up
			}
			if a <= b && a <= c {
				nearest = left
			}
			left = int(line[i]+byte(nearest)) & 0xff
			line[i] = byte(left)
			corner = up
		}
	}
}

// plainConversion returns what changes the number of channels, nil for none.
func plainConversion(from, to int) func([]byte) []byte {
	switch {
	case from == 1 && to == 3:
		return func(pix []byte) []byte {
			out := make([]byte, 0, 3*len(pix))
			for _, v := range pix {
				out = append(out, v, v, v)
			}
			return out
		}
	case from == 4 && to == 3:
		return func(pix []byte) []byte {
			at := 0
			for i := 0; i < len(pix); i += 4 {
				at += copy(pix[at:], pix[i:i+3])
			}
			return pix[:at]
		}
	}
	return nil
}
