package main

// emitNEONPhilox emits what emitPhilox does, four counters in each state: the
// words of a state are registers, the counters their elements.
func emitNEONPhilox(f *neonFile) {
	n := f.function("uniforms", philoxDoc, "out *uint32, counter *[2]uint64, keys *[20]uint64, n int")
	out, counter, keys, left := n.param("out"), n.param("counter"), n.param("keys"), n.param("n")
	p := &neonPhilox{n: n, keys: keys, low: n.gp()}
	table := n.table()
	for i, bits := range []uint32{0xD2511F53, 0xCD9E8D57, 0x007fffff, 0x3f800000} {
		p.constants[i] = n.load("FMOVQ", n.bits(table, bits), n.kept())
	}
	n.line("MOVD (%s), %s", counter, p.low)
	for i := range p.high {
		p.high[i] = n.load("FMOVS", offset(counter, 8+4*i), n.kept())
		n.opWith("dup", false, 0, p.high[i], p.high[i])
	}
	n.label("loop")
	states := [2]neonState{p.state(), p.state()}
	for round := range 10 {
		k0, k1 := p.key(2*round), p.key(2*round+1)
		for i := range states {
			states[i] = p.round(states[i], k0, k1)
		}
	}
	for i, s := range states {
		p.save(s, out, 64*i)
	}
	n.line("ADD $128, %[1]s, %[1]s", out)
	n.line("SUBS $8, %[1]s, %[1]s", left)
	n.line("BGT loop")
	n.line("RET")
}

type neonState [4]vreg

// neonPhilox has the registers of the function.
type neonPhilox struct {
	n         *neonFunction
	keys, low string  // low is the lower half of the next counter
	high      [2]vreg // the upper half, by words
	constants [4]vreg // two multipliers; a mask and one, which make words numbers
}

// state returns the next four counters.
func (p *neonPhilox) state() neonState {
	n := p.n
	var pairs [2]vreg
	for i := range pairs {
		x := n.load("FMOVD", p.low, n.vec())
		n.line("ADD $1, %[1]s, %[1]s", p.low)
		y := n.load("FMOVD", p.low, n.vec())
		n.line("ADD $1, %[1]s, %[1]s", p.low)
		pairs[i] = n.op("zip1", true, n.vec(), x, y)
	}
	return neonState{n.op("uzp1", false, n.vec(), pairs[0], pairs[1]), n.op("uzp2", false, n.vec(), pairs[0], pairs[1]), p.high[0], p.high[1]}
}

// key returns a key in all elements.
func (p *neonPhilox) key(i int) vreg {
	r := p.n.load("FMOVS", offset(p.keys, 8*i), p.n.vec())
	return p.n.opWith("dup", false, 0, p.n.vec(), r)
}

// product returns the lower and the upper words of x times a multiplier.
func (p *neonPhilox) product(x, multiplier vreg) (low, high vreg) {
	n := p.n
	first, second := n.op("umull", false, n.vec(), x, multiplier), n.op("umull2", false, n.vec(), x, multiplier)
	return n.op("uzp1", false, n.vec(), first, second), n.op("uzp2", false, n.vec(), first, second)
}

func (p *neonPhilox) xor(x, y, z vreg) vreg {
	return p.n.op("eor", false, p.n.vec(), p.n.op("eor", false, p.n.vec(), x, y), z)
}

func (p *neonPhilox) round(s neonState, k0, k1 vreg) neonState {
	low0, high0 := p.product(s[0], p.constants[0])
	low1, high1 := p.product(s[2], p.constants[1])
	return neonState{p.xor(high1, s[1], k0), low1, p.xor(high0, s[3], k1), low0}
}

// save makes the words numbers and stores block after block.
func (p *neonPhilox) save(s neonState, out string, at int) {
	n := p.n
	mask, one := p.constants[2], p.constants[3]
	for i, x := range s {
		x = n.op("orr", false, n.vec(), n.op("and", false, n.vec(), x, mask), one)
		s[i] = n.op("fsub", false, n.vec(), x, one)
	}
	for half, zip := range []string{"zip1", "zip2"} {
		low, high := n.op(zip, false, n.vec(), s[0], s[1]), n.op(zip, false, n.vec(), s[2], s[3])
		n.store("FMOVQ", n.op("zip1", true, n.vec(), low, high), offset(out, at+32*half))
		n.store("FMOVQ", n.op("zip2", true, n.vec(), low, high), offset(out, at+32*half+16))
	}
}
