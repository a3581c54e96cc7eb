package remote

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/session"
)

func TestParseTarget(t *testing.T) {
	good := map[string]string{
		"grpc://127.0.0.1:2222":      "127.0.0.1:2222",
		"grpc://ps0.train.svc:1":     "ps0.train.svc:1",
		"grpc://[::1]:65535":         "[::1]:65535",
		"grpc://[fe80::1%eth0]:2222": "[fe80::1%eth0]:2222",
		"unix:/run/a b.sock":         "unix:/run/a b.sock",
	}
	for target, want := range good {
		if got, err := ParseTarget(target); got != want || err != nil {
			t.Errorf("%q: got %q, %v; want %q", target, got, err, want)
		}
	}
	bad := []struct{ name, target, says string }{
		{"empty", "", "not of the form grpc://host:port"},
		{"local", "local", "not of the form grpc://host:port"},
		{"no scheme", "127.0.0.1:2222", "not of the form grpc://host:port"},
		{"other scheme", "http://127.0.0.1:2222", `protocol "http" is not supported`},
		{"upper case", "GRPC://127.0.0.1:2222", `protocol "GRPC" is not supported`},
		{"other transport", "grpc+verbs://h:2222", "use grpc://h:2222"},
		{"no port", "grpc://ps0", "grpc://ps0:2222"},
		{"empty port", "grpc://ps0:", `port ""`},
		{"named port", "grpc://ps0:http", `port "http"`},
		{"port zero", "grpc://ps0:0", `port "0"`},
		{"large port", "grpc://ps0:65536", `port "65536"`},
		{"no host", "grpc://:2222", "grpc://127.0.0.1:2222"},
		{"nothing", "grpc://", "the port is missing"},
		{"path", "grpc://ps0:2222/", "more than grpc://host:port"},
		{"user", "grpc://me@ps0:2222", "more than grpc://host:port"},
		{"two servers", "grpc://a:2222,b:2222", "name one server"},
		{"bare IPv6", "grpc://::1:2222", "needs brackets"},
		{"no socket", "unix:", "unix:PATH"},
		{"space", "grpc://ps 0:2222", `"ps 0" is not the name`},
		{"newline", "grpc://ps0\n:2222", "is not the name"},
	}
	for _, test := range bad {
		t.Run(test.name, func(t *testing.T) {
			_, err := ParseTarget(test.target)
			var te *TargetError
			if !errors.As(err, &te) || te.Target != test.target || !strings.Contains(te.Reason, test.says) {
				t.Errorf("got %v, want a TargetError that says %q", err, test.says)
			}
			if !errors.Is(err, session.ErrInvalidArgument) {
				t.Errorf("%v is no ErrInvalidArgument", err)
			}
			if _, err := Dial(t.Context(), test.target, nil); !errors.As(err, &te) {
				t.Errorf("Dial: %v", err)
			}
		})
	}
}

var graphOps = opTypes{"x": "Placeholder", "w/read": "Identity", "call": "StatefulPartitionedCall", "a_1": "Placeholder"}

func TestParseMessage(t *testing.T) {
	tests := []struct{ name, message, node, op, rest string }{
		{"no node", "Session 5 is not found.", "", "", "Session 5 is not found."},
		{"node on its own line", "From /job:ps/replica:0/task:0:\nAttempting to use uninitialized value w\n\t [[{{node w/read}}]]",
			"w/read", "Identity", "From /job:ps/replica:0/task:0: Attempting to use uninitialized value w"},
		{"node before the message", "{{function_node __inference_f_12}} {{node MatMul}} Matrix size-incompatible", "MatMul", "", "Matrix size-incompatible"},
		{"node in the message", "input is from node {{node x}} which is not there", "x", "Placeholder", "input is from node {{node x}} which is not there"},
		{"inside of a function", "bad shape\n\t [[{{node inner/Add}}]]\n\t [[{{node call}}]]", "call", "StatefulPartitionedCall", "bad shape"},
		{"with the tensor that waited for it", "bad shape\n\t [[{{node w/read}}]]\n\t [[x/_5]]", "w/read", "Identity", "bad shape"},
		{"several roots", "2 root error(s) found.\n  (0) OUT_OF_RANGE: End of sequence\n\t [[{{node x}}]]\n  (1) CANCELLED: gone\n\t [[{{node w/read}}]]",
			"x", "Placeholder", "2 root error(s) found. (0) OUT_OF_RANGE: End of sequence (1) CANCELLED: gone"},
		{"place of definition", "boom\n\t [[node w/read (defined at train.py:7) ]]", "w/read", "Identity", "boom"},
		{"old form", "boom\n\t [[Node: other = Add[T=DT_FLOAT](a, b)]]", "other", "Add", "boom"},
		{"fed tensor", "Output 0 of type int64 does not match declared output type float for node {{node _recv_x_0}}\n\t [[{{node _recv_x_0}}]]",
			"x", "Placeholder", "Output 0 of type int64 does not match declared output type float for node {{node _recv_x_0}}"},
		{"fed tensor of a callable", "boom\n\t [[{{node _arg_a_1_0_2}}]]", "a_1", "Placeholder", "boom"},
		{"moved tensor of no known node", "boom\n\t [[{{node _recv_gone_0}}]]", "_recv_gone_0", "", "boom"},
		{"node of a part of the graph", "boom\n\t [[{{node w/read_S12}}]]", "w/read", "Identity", "boom"},
		{"from several servers", "=====================\nUNAVAILABLE: From /job:worker/replica:0/task:0:\nfailed to connect\n" +
			"Additional GRPC error information from remote target /job:ps/replica:0/task:0 while calling /tensorflow.WorkerService/RecvTensor:\n" +
			`:UNKNOWN:Error received from peer  {grpc_status:14, grpc_message:"failed to connect\n\t [[{{node call}}]]"}` + "\n\t [[{{node x_S1}}]]\n" +
			"UNAVAILABLE: From /job:ps/replica:0/task:0:\nfailed to connect\n=====================",
			"x", "Placeholder", "UNAVAILABLE: From /job:worker/replica:0/task:0: failed to connect; UNAVAILABLE: From /job:ps/replica:0/task:0: failed to connect"},
		{"older words between servers", "gone\nAdditional GRPC error information:\n" + `:{"created":"@1","description":"Error received from peer"}`, "", "", "gone"},
		{"with the log of the server", "wrong dtype\n\t [[{{node w/read}}]]\nRecent warning and error logs:\n" +
			"  W0000 00:00:1795866267.598078   17108 conditional_accumulator_base.cc:47] Attempt to set current_global_step_ to smaller value\n", "w/read", "Identity", "wrong dtype"},
		{"what steers a terminal", "a\x1b[2J\rb", "", "", "a [2J b"},
		{"empty", "", "", "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			node, op, rest := parseMessage(test.message, graphOps)
			if node != test.node || op != test.op || rest != test.rest {
				t.Errorf("got node %q, op %q, rest %q; want %q, %q, %q", node, op, rest, test.node, test.op, test.rest)
			}
		})
	}
}

// A message of a hostile server, or of one that lists all that it has, is made short enough for a
// log, in no time, and still names the node.
func TestLongMessages(t *testing.T) {
	const node = "\n\t [[{{node x}}]]"
	for name, message := range map[string]string{
		"one line":               strings.Repeat("é", 8<<20),
		"lines":                  strings.Repeat("no such key\n", 1<<20),
		"a part of a part":       "bad {{node _arg_x" + strings.Repeat("_1", 4<<20) + "}}",
		"a copy of a copy":       "bad {{node x" + strings.Repeat("_S1", 4<<20) + "}}",
		"parts within the limit": "bad {{node _arg_x" + strings.Repeat("_1", 4<<10) + "}}",
	} {
		got, _, rest := parseMessage(message+node, graphOps)
		if got != "x" || len(rest) > messageBegin+messageEnd+100 || !utf8.ValidString(rest) {
			t.Errorf("%s: node %.50q, and %d bytes", name, got, len(rest))
		}
	}
}

func FuzzParseMessage(f *testing.F) {
	f.Add("a\n\t [[{{node x}}]]")
	f.Add("{{function_node f}} {{node x}} a")
	f.Add("a [[Node: b = C[d](e)]]\n [[node g (h)]]")
	f.Add("{{node _recv__arg__recv_x_0_1_2}}")
	f.Add("===\nABORTED: a\n:UNKNOWN: {}\nABORTED: b\n [[{{node x_S1_S2}}]]")
	f.Fuzz(func(t *testing.T, message string) {
		node, op, rest := parseMessage(message, graphOps)
		if node == "" && op != "" || len(rest) > 2*len(message) || strings.ContainsAny(node, "\n ") {
			t.Errorf("%q gives node %q, op %q, rest %q", message, node, op, rest)
		}
	})
}

func TestConnectionMessage(t *testing.T) {
	tests := map[string]string{
		`connection error: desc = "transport: Error while dialing: dial tcp 1.2.3.4:5: connect: connection refused"`: "dial tcp 1.2.3.4:5: connect: connection refused",
		`connection error: desc = "error reading server preface: EOF"`:                                               "error reading server preface: EOF",
		"Socket closed": "Socket closed",
	}
	for in, want := range tests {
		if got := connectionMessage(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestTensorsKeepTheirValues(t *testing.T) {
	tensors := map[string]*ckptfmt.Tensor{
		"float":           vector(1, 2, 3),
		"scalar":          ckptfmt.Scalar[int64](-7),
		"bool":            ckptfmt.Scalar(true),
		"no elements":     {DType: tfpb.DataType_DT_DOUBLE, Shape: []int64{0, 3}},
		"half":            {DType: tfpb.DataType_DT_HALF, Shape: []int64{2}, Data: []byte{1, 2, 3, 4}},
		"complex":         {DType: tfpb.DataType_DT_COMPLEX64, Shape: []int64{1}, Data: []byte{1, 2, 3, 4, 5, 6, 7, 8}},
		"strings":         {DType: tfpb.DataType_DT_STRING, Shape: []int64{2}, Strings: [][]byte{[]byte("a"), {}}},
		"string scalar":   ckptfmt.Scalar("prefix"),
		"strings, no one": {DType: tfpb.DataType_DT_STRING, Shape: []int64{0}},
	}
	for name, want := range tensors {
		t.Run(name, func(t *testing.T) {
			_, _, s := open(t)
			out, err := s.Run(t.Context(), map[string]*ckptfmt.Tensor{"x": want}, []string{"y"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := out[0].Validate(); err != nil {
				t.Error(err)
			}
			if got, want := out[0].Proto(), want.Proto(); got.String() != want.String() {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

func TestDecode(t *testing.T) {
	shape := func(sizes ...int64) *tfpb.TensorShapeProto {
		p := &tfpb.TensorShapeProto{}
		for _, n := range sizes {
			p.Dim = append(p.Dim, &tfpb.TensorShapeProto_Dim{Size: n})
		}
		return p
	}
	got, err := decode("y:0", &tfpb.TensorProto{Dtype: tfpb.DataType_DT_FLOAT, TensorShape: shape(3), FloatVal: []float32{5}})
	if err != nil || !cmp.Equal(got, vector(5, 5, 5)) {
		t.Errorf("one value for three elements: got %v, %v", got, err)
	}
	bad := map[string]*tfpb.TensorProto{
		"too few bytes":  {Dtype: tfpb.DataType_DT_FLOAT, TensorShape: shape(3), TensorContent: make([]byte, 8)},
		"handle":         {Dtype: tfpb.DataType_DT_RESOURCE, TensorShape: shape()},
		"no type":        {TensorShape: shape()},
		"unknown rank":   {Dtype: tfpb.DataType_DT_FLOAT, TensorShape: &tfpb.TensorShapeProto{UnknownRank: true}, TensorContent: make([]byte, 4)},
		"negative shape": {Dtype: tfpb.DataType_DT_FLOAT, TensorShape: shape(-1), TensorContent: make([]byte, 4)},
	}
	for name, p := range bad {
		t.Run(name, func(t *testing.T) {
			_, err := decode("y:0", p)
			wantError(t, err, session.ErrInvalidArgument, `fetch "y:0"`)
		})
	}
}
