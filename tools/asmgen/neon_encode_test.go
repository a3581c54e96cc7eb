package main

import "testing"

// TestEncodings compares the words with those that GNU's assembler makes of the
// same lines.
func TestEncodings(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range []struct {
		name     string
		double   bool
		operands []int
		word     uint32
		text     string
	}{
		{"fadd", false, []int{1, 2, 31}, 0x4e3fd441, "fadd v1.4s, v2.4s, v31.4s"},
		{"fadd", true, []int{1, 2, 31}, 0x4e7fd441, "fadd v1.2d, v2.2d, v31.2d"},
		{"fsub", false, []int{3, 29, 17}, 0x4eb1d7a3, "fsub v3.4s, v29.4s, v17.4s"},
		{"fsub", true, []int{3, 29, 17}, 0x4ef1d7a3, "fsub v3.2d, v29.2d, v17.2d"},
		{"fmul", false, []int{4, 5, 6}, 0x6e26dca4, "fmul v4.4s, v5.4s, v6.4s"},
		{"fmul", true, []int{4, 5, 6}, 0x6e66dca4, "fmul v4.2d, v5.2d, v6.2d"},
		{"fdiv", false, []int{4, 5, 6}, 0x6e26fca4, "fdiv v4.4s, v5.4s, v6.4s"},
		{"fdiv", true, []int{4, 5, 6}, 0x6e66fca4, "fdiv v4.2d, v5.2d, v6.2d"},
		{"fmax", false, []int{7, 8, 9}, 0x4e29f507, "fmax v7.4s, v8.4s, v9.4s"},
		{"fmin", false, []int{7, 8, 9}, 0x4ea9f507, "fmin v7.4s, v8.4s, v9.4s"},
		{"fmla", false, []int{10, 11, 12}, 0x4e2ccd6a, "fmla v10.4s, v11.4s, v12.4s"},
		{"fmla", true, []int{10, 11, 12}, 0x4e6ccd6a, "fmla v10.2d, v11.2d, v12.2d"},
		{"fmls", false, []int{10, 11, 12}, 0x4eaccd6a, "fmls v10.4s, v11.4s, v12.4s"},
		{"fcmeq", false, []int{13, 14, 15}, 0x4e2fe5cd, "fcmeq v13.4s, v14.4s, v15.4s"},
		{"fcmgt", false, []int{13, 14, 15}, 0x6eafe5cd, "fcmgt v13.4s, v14.4s, v15.4s"},
		{"fcmgt", true, []int{13, 14, 15}, 0x6eefe5cd, "fcmgt v13.2d, v14.2d, v15.2d"},
		{"add", false, []int{16, 17, 18}, 0x4eb28630, "add v16.4s, v17.4s, v18.4s"},
		{"add", true, []int{16, 17, 18}, 0x4ef28630, "add v16.2d, v17.2d, v18.2d"},
		{"sub", false, []int{16, 17, 18}, 0x6eb28630, "sub v16.4s, v17.4s, v18.4s"},
		{"zip1", false, []int{19, 20, 21}, 0x4e953a93, "zip1 v19.4s, v20.4s, v21.4s"},
		{"zip1", true, []int{19, 20, 21}, 0x4ed53a93, "zip1 v19.2d, v20.2d, v21.2d"},
		{"zip2", false, []int{19, 20, 21}, 0x4e957a93, "zip2 v19.4s, v20.4s, v21.4s"},
		{"zip2", true, []int{19, 20, 21}, 0x4ed57a93, "zip2 v19.2d, v20.2d, v21.2d"},
		{"uzp1", false, []int{19, 20, 21}, 0x4e951a93, "uzp1 v19.4s, v20.4s, v21.4s"},
		{"uzp2", false, []int{19, 20, 21}, 0x4e955a93, "uzp2 v19.4s, v20.4s, v21.4s"},
		{"fabs", false, []int{22, 23}, 0x4ea0faf6, "fabs v22.4s, v23.4s"},
		{"fabs", true, []int{22, 23}, 0x4ee0faf6, "fabs v22.2d, v23.2d"},
		{"fsqrt", false, []int{22, 23}, 0x6ea1faf6, "fsqrt v22.4s, v23.4s"},
		{"fsqrt", true, []int{22, 23}, 0x6ee1faf6, "fsqrt v22.2d, v23.2d"},
		{"frintm", false, []int{22, 23}, 0x4e219af6, "frintm v22.4s, v23.4s"},
		{"frintm", true, []int{22, 23}, 0x4e619af6, "frintm v22.2d, v23.2d"},
		{"frintn", false, []int{22, 23}, 0x4e218af6, "frintn v22.4s, v23.4s"},
		{"fcvtns", false, []int{22, 23}, 0x4e21aaf6, "fcvtns v22.4s, v23.4s"},
		{"scvtf", false, []int{22, 23}, 0x4e21daf6, "scvtf v22.4s, v23.4s"},
		{"and", false, []int{24, 25, 26}, 0x4e3a1f38, "and v24.16b, v25.16b, v26.16b"},
		{"bic", false, []int{24, 25, 26}, 0x4e7a1f38, "bic v24.16b, v25.16b, v26.16b"},
		{"orr", false, []int{24, 25, 26}, 0x4eba1f38, "orr v24.16b, v25.16b, v26.16b"},
		{"eor", false, []int{24, 25, 26}, 0x6e3a1f38, "eor v24.16b, v25.16b, v26.16b"},
		{"bsl", false, []int{24, 25, 26}, 0x6e7a1f38, "bsl v24.16b, v25.16b, v26.16b"},
		{"shl", false, []int{27, 28, 23}, 0x4f37579b, "shl v27.4s, v28.4s, #23"},
		{"sshr", false, []int{27, 28, 1}, 0x4f3f079b, "sshr v27.4s, v28.4s, #1"},
		{"ushr", false, []int{27, 28, 23}, 0x6f29079b, "ushr v27.4s, v28.4s, #23"},
		{"fmla.lane", false, []int{29, 30, 31, 0}, 0x4f9f13dd, "fmla v29.4s, v30.4s, v31.s[0]"},
		{"fmla.lane", false, []int{29, 30, 31, 3}, 0x4fbf1bdd, "fmla v29.4s, v30.4s, v31.s[3]"},
		{"fmla.lane", true, []int{29, 30, 31, 1}, 0x4fdf1bdd, "fmla v29.2d, v30.2d, v31.d[1]"},
		{"fmul.lane", false, []int{29, 30, 17, 2}, 0x4f919bdd, "fmul v29.4s, v30.4s, v17.s[2]"},
		{"dup", false, []int{0, 31, 0}, 0x4e0407e0, "dup v0.4s, v31.s[0]"},
		{"dup", false, []int{0, 31, 3}, 0x4e1c07e0, "dup v0.4s, v31.s[3]"},
		{"dup", true, []int{0, 31, 0}, 0x4e0807e0, "dup v0.2d, v31.d[0]"},
		{"dup", true, []int{0, 31, 1}, 0x4e1807e0, "dup v0.2d, v31.d[1]"},
		{"fcvtl", false, []int{1, 2}, 0x0e617841, "fcvtl v1.2d, v2.2s"},
		{"fcvtl2", false, []int{1, 2}, 0x4e617841, "fcvtl2 v1.2d, v2.4s"},
		{"umull", false, []int{1, 2, 3}, 0x2ea3c041, "umull v1.2d, v2.2s, v3.2s"},
		{"umull2", false, []int{1, 2, 3}, 0x6ea3c041, "umull2 v1.2d, v2.4s, v3.4s"},
	} {
		seen[c.name] = true
		if word, text := encode(c.name, c.double, c.operands...); word != c.word || text != c.text {
			t.Errorf("%s is %08x (%s), want %08x", c.text, word, text, c.word)
		}
	}
	for name := range encodings {
		if !seen[name] {
			t.Errorf("nothing is known of %s", name)
		}
	}
}
