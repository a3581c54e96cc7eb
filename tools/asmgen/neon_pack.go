package main

import "fmt"

// emitNEONGather writes the function that copies so many bytes from each of k
// rows.
func emitNEONGather(f *neonFile, bytes int) {
	n := f.function(fmt.Sprintf("gather%d", bytes), fmt.Sprintf("copies %d bytes from each of k rows that are ld bytes apart", bytes), "dst, src *byte, ld, k int")
	dst, src, ld, k := n.param("dst"), n.param("src"), n.param("ld"), n.param("k")
	n.line("CBZ %s, done", k)
	n.label("loop")
	var parts []vreg
	for at := 0; at < bytes; at += 16 {
		opcode, _ := piece((bytes - at) / 4)
		parts = append(parts, n.load(opcode, offset(src, at), n.vec()))
	}
	for i, r := range parts {
		opcode, _ := piece((bytes - 16*i) / 4)
		n.store(opcode, r, offset(dst, 16*i))
	}
	n.line("ADD %[2]s, %[1]s, %[1]s", src, ld)
	n.line("ADD $%[2]d, %[1]s, %[1]s", dst, bytes)
	n.line("SUBS $1, %[1]s, %[1]s", k)
	n.line("BNE loop")
	n.label("done")
	n.line("RET")
}

// transpose emits a function that makes rows columns, so many elements of each
// in a turn, a register of each.
func (f *neonFile) transpose(name, goType string, rows, elements int, turn func(n *neonFunction, in []vreg, put func(opcode string, r vreg))) {
	n := f.function(name, fmt.Sprintf(transposeDoc, rows), "dst, src *"+goType+", ld, step, k int")
	dst, src, ld, step, k := n.param("dst"), n.param("src"), n.param("ld"), n.param("step"), n.param("k")
	at := n.gp()
	n.line("SUBS $%[2]d, %[1]s, %[1]s", k, elements)
	n.line("BLT done")
	n.label("loop")
	n.line("MOVD %s, %s", src, at)
	in := make([]vreg, rows)
	for i := range in {
		in[i] = n.load("FMOVQ", offset(at, 0), n.vec())
		n.line("ADD %[2]s, %[1]s, %[1]s", at, ld)
	}
	n.line("ADD $16, %[1]s, %[1]s", src)
	turn(n, in, func(opcode string, r vreg) {
		n.store(opcode, r, offset(dst, 0))
		n.line("ADD %[2]s, %[1]s, %[1]s", dst, step)
	})
	n.line("SUBS $%[2]d, %[1]s, %[1]s", k, elements)
	n.line("BGE loop")
	n.label("done")
	n.line("RET")
}

// emitNEONTranspose4 writes the function that transposes blocks of 4 by 4; k is
// a multiple of 4.
func emitNEONTranspose4(f *neonFile) {
	f.transpose("sTranspose4", "float32", 4, 4, func(n *neonFunction, in []vreg, put func(opcode string, r vreg)) {
		for _, zip := range []string{"zip1", "zip2"} {
			low, high := n.op(zip, false, n.vec(), in[0], in[1]), n.op(zip, false, n.vec(), in[2], in[3])
			put("FMOVQ", n.op("zip1", true, n.vec(), low, high))
			put("FMOVQ", n.op("zip2", true, n.vec(), low, high))
		}
	})
}

// emitNEONTranspose2 writes the function that transposes two rows; k is a
// multiple of the number of elements in 16 bytes.
func emitNEONTranspose2(f *neonFile, name, goType string, double bool) {
	elements := map[bool]int{false: 4, true: 2}[double]
	f.transpose(name, goType, 2, elements, func(n *neonFunction, in []vreg, put func(opcode string, r vreg)) {
		for _, zip := range []string{"zip1", "zip2"} {
			r := n.op(zip, double, n.vec(), in[0], in[1])
			if double {
				put("FMOVQ", r)
				continue
			}
			put("FMOVD", r)
			put("FMOVD", n.opWith("dup", true, 1, n.vec(), r))
		}
	})
}
