package runtime

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	tfpb "github.com/trainerd/trainerd/proto"
)

var writePage = flag.Bool("update", false, "write doc/ops.md")

const opsPage = "../../doc/ops.md"

// TestOpsPage holds doc/ops.md against what the runtime builds.
func TestOpsPage(t *testing.T) {
	page := opsText(t)
	if *writePage {
		if err := os.WriteFile(opsPage, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(opsPage)
	if err != nil || string(have) != page {
		t.Errorf("%s is not what the runtime builds: write it with go test ./trainerd/runtime -run TestOpsPage -update (%v)", opsPage, err)
	}
}

// opsText renders the page.
func opsText(t *testing.T) string {
	tf, s, recorded := tensorFlowTypes(t), sessionWithFunction(t), recordedOps(t)
	var all, some, alone []string
	for _, op := range slices.Sorted(maps.Keys(ops)) {
		if !recorded[op] {
			t.Errorf("%s is in no graph that TensorFlow has recorded: add it to one of fixtures/graphs, or remove it", op)
		}
		var here, lacking []combo
		for _, c := range combosOf(op, tf[op]) {
			if builds(s, op, c) == nil {
				here = append(here, c)
			} else {
				lacking = append(lacking, c)
			}
		}
		switch {
		case tf[op] == nil:
			alone = append(alone, "`"+op+"`")
		case len(lacking) == 0:
			all = append(all, "`"+op+"`")
		case len(here) == 0:
			t.Errorf("%s is never built", op)
		default:
			some = append(some, fmt.Sprintf("* `%s`: %s; lacking %s", op, describe(here, lacking), describe(lacking, here)))
		}
	}
	return fmt.Sprintf(pageText, len(ops), wrapped(all, ", "), lines(some), wrapped(alone, ", "))
}

const pageText = `# Ops of the embedded runtime

The embedded runtime has %d ops. This page is written by ` + "`make opdefs`" + ` and held current by a test, which builds a
node of each op with each combination of types that TensorFlow 2.21 has a kernel for on the processor.
` + "`trainerd graph FILE`" + ` says what a given graph lacks, by node, with the attribute and its value. Attributes that a
graph leaves out have TensorFlow's defaults.

Types are f32, f64, f16, bf16, i8 to i64, u8 to u64, c64, c128, bool and str. Quantized types, 4-bit integers and 8-bit
floats are left out: the runtime computes with none of them. Attributes that hold a list of types are not varied.

## With all types that TensorFlow has

%s

## With some of them

Each line has the types by attribute, and what TensorFlow has besides.

%s

## Without a kernel of its own in TensorFlow

TensorFlow rewrites these ops before it runs them.

%s

## Compared with TensorFlow

All of these ops are in a graph that TensorFlow has run, and whose results a test compares with the runtime's: one op on
constants, the calls of one session, or a program.

## How an op is added

The list is closed: an op comes into it with a whole program of a public source that needs it. The program is recorded
with TensorFlow (` + "`interop/graphs`" + `, ` + "`fixtures/graphs`" + `), the kernel goes to the table of its family under
` + "`trainerd/runtime/internal/kernels`" + `, and a test compares every fetch of every step and every variable.
`

// shortTypes are the types as the page has them.
var shortTypes = strings.NewReplacer("complex", "c", "bfloat", "bf", "float", "f", "uint", "u", "int", "i", "string", "str")

func shortType(t tfpb.DataType) string { return shortTypes.Replace(pageTypeName(t)) }

// describe says what combinations there are: by attribute, the types that occur
// in no other ones, and one by one what is left.
func describe(list, others []combo) string {
	var parts []string
	left := slices.Clone(list)
	for _, attr := range slices.Sorted(maps.Keys(list[0])) {
		elsewhere := map[tfpb.DataType]bool{}
		for _, c := range others {
			elsewhere[c[attr]] = true
		}
		own := map[string]bool{}
		for _, c := range list {
			if !elsewhere[c[attr]] {
				own[shortType(c[attr])] = true
			}
		}
		if len(own) > 0 {
			parts = append(parts, attr+" "+strings.Join(slices.Sorted(maps.Keys(own)), " "))
			left = slices.DeleteFunc(left, func(c combo) bool { return own[shortType(c[attr])] })
		}
	}
	if len(left) > 0 {
		parts = append(parts, unions(left))
	}
	return strings.Join(parts, " or ")
}

// unions lists the types of each attribute that occur in some combination, and
// says so if not all of them go together.
func unions(list []combo) string {
	var words []string
	product := 1
	for _, attr := range slices.Sorted(maps.Keys(list[0])) {
		types := map[string]bool{}
		for _, c := range list {
			types[shortType(c[attr])] = true
		}
		product *= len(types)
		words = append(words, attr+" "+strings.Join(slices.Sorted(maps.Keys(types)), " "))
	}
	text := strings.Join(words, " with ")
	if product > len(list) {
		text += fmt.Sprintf(" (%d combinations)", len(list))
	}
	return text
}

const pageWidth = 118

func lines(list []string) string {
	var out []string
	for _, line := range list {
		out = append(out, wrapped(strings.Split(line, " "), " "))
	}
	return strings.Join(out, "\n")
}

// wrapped joins words into lines; those after the first are indented in a list.
func wrapped(words []string, sep string) string {
	var b strings.Builder
	indent := ""
	if len(words) > 0 && words[0] == "*" {
		indent = "  "
	}
	width := 0
	for i, w := range words {
		if i < len(words)-1 {
			w += strings.TrimSuffix(sep, " ")
		}
		switch {
		case i == 0:
		case width+1+len(w) > pageWidth:
			b.WriteString("\n" + indent)
			width = len(indent)
		default:
			b.WriteString(" ")
			width++
		}
		b.WriteString(w)
		width += len(w)
	}
	return b.String()
}

// recordedOps returns the ops of all graphs that TensorFlow has recorded: those
// in fixtures, and the programs of the interop suite, whose ops a file lists.
func recordedOps(t *testing.T) map[string]bool {
	t.Helper()
	seen := map[string]bool{}
	note := func(nodes []*tfpb.NodeDef) {
		for _, n := range nodes {
			seen[n.GetOp()] = true
		}
	}
	graphs := recordedGraphs(t)
	metas, err := filepath.Glob("../../fixtures/graphs/*/graph.meta")
	more, err2 := filepath.Glob("../../fixtures/graphs/*/*/graph.meta")
	if err != nil || err2 != nil || len(metas) == 0 || len(more) == 0 {
		t.Fatal("no recorded programs", err, err2)
	}
	for _, name := range append(metas, more...) {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		m := &tfpb.MetaGraphDef{}
		if err := proto.Unmarshal(data, m); err != nil {
			t.Fatal(err)
		}
		graphs = append(graphs, m.GetGraphDef())
	}
	for _, g := range graphs {
		note(g.GetNode())
		for _, f := range g.GetLibrary().GetFunction() {
			note(f.GetNodeDef())
		}
	}
	programs, err := os.ReadFile("../../interop/graphs/ops.txt")
	if err != nil {
		t.Fatal(err)
	}
	for op := range strings.FieldsSeq(string(programs)) {
		seen[op] = true
	}
	return seen
}
