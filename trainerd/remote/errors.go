package remote

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"google.golang.org/grpc/status"

	"github.com/trainerd/trainerd/internal/lazyregexp"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/session"
)

var (
	errSessionClosed error = &session.OpError{Code: tfpb.Code_CANCELLED, Message: "the session is closed"}
	errReleased      error = &session.OpError{Code: tfpb.Code_CANCELLED, Message: "the callable is closed"}
)

func statusOf(err error) *status.Status {
	st, _ := status.FromError(err)
	return st
}

func isCode(err error, code tfpb.Code) bool {
	var op *session.OpError
	return errors.As(err, &op) && op.Code == code
}

// messageOf returns what err says beyond its code.
func messageOf(err error) string {
	var op *session.OpError
	if errors.As(err, &op) && op.Message != "" {
		return op.Message
	}
	return err.Error()
}

// callError makes the error of a call from what came back.
func (c *Client) callError(ctx context.Context, method string, code tfpb.Code, message string, ops opTypes) error {
	if gaveUp(code) && ended(ctx) {
		_, reason, _ := strings.Cut(message, "latest balancer error: ")
		return c.contextError(ctx, reason)
	}
	e := &session.OpError{Code: reviseCode(code, message)}
	e.Node, e.Op, e.Message = parseMessage(message, ops)
	if e.Node != "" {
		return e
	}
	e.Message = connectionMessage(e.Message)
	if method != "" {
		e.Message = method + ": " + e.Message
	}
	e.Message = c.target + ": " + e.Message
	return e
}

// gaveUp reports whether code is that of a call whose ctx has ended.
func gaveUp(code tfpb.Code) bool {
	return code == tfpb.Code_CANCELLED || code == tfpb.Code_DEADLINE_EXCEEDED
}

// ended reports whether ctx is over. Its timer may lag behind the server,
// which knows the deadline and keeps it too.
func ended(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(deadline)
}

// contextError is the error of a call that was given up because its ctx ended.
// reason is what it waited for until then, if that is known.
func (c *Client) contextError(ctx context.Context, reason string) error {
	cause, err := context.Cause(ctx), ctx.Err()
	if cause == errSessionClosed {
		return errSessionClosed
	}
	if err == nil {
		cause, err = context.DeadlineExceeded, context.DeadlineExceeded // see ended
	}
	e := &session.OpError{Code: tfpb.Code_CANCELLED, Message: c.target, Err: cause}
	if !errors.Is(cause, err) {
		e.Err = fmt.Errorf("%w: %w", err, cause)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		e.Code = tfpb.Code_DEADLINE_EXCEEDED
	}
	if reason != "" {
		e.Message += ": " + connectionMessage(reason)
	}
	return e
}

// unknownOp begins the message for a graph with an op that the server lacks.
const unknownOp = "Op type not registered"

// reviseCode returns the code by which callers decide, where TensorFlow uses
// one for two things.
func reviseCode(code tfpb.Code, message string) tfpb.Code {
	switch {
	case code == tfpb.Code_ABORTED && strings.HasPrefix(message, "Current version is "):
		// A stale version of the graph. The session is alive.
		return tfpb.Code_FAILED_PRECONDITION
	case code == tfpb.Code_INVALID_ARGUMENT && strings.HasPrefix(message, "Session ") && strings.Contains(message, " is not found"):
		// What ListDevices says where other calls say ABORTED.
		return tfpb.Code_ABORTED
	case code == tfpb.Code_FAILED_PRECONDITION && message == "Session is closed.":
		// Somebody else closed it, as by Reset.
		return tfpb.Code_ABORTED
	case code == tfpb.Code_NOT_FOUND && strings.HasPrefix(message, unknownOp):
		return tfpb.Code_UNIMPLEMENTED
	case code == tfpb.Code_CANCELLED:
		return causeOfCancel(message)
	}
	return code
}

// lostBetween begins the part of a server whose step the cluster gave up, in a
// message that is made of several.
var lostBetween = lazyregexp.New(`(?m)^(ABORTED|UNAVAILABLE): From /job:`)

// causeOfCancel returns the code of a step that nobody here has cancelled. When
// a server fails the others cancel their parts of the step, and whichever
// answers first gives the code to the whole.
func causeOfCancel(message string) tfpb.Code {
	if m := lostBetween().FindStringSubmatch(message); m != nil {
		return tfpb.Code(tfpb.Code_value[m[1]])
	}
	if strings.Contains(message, "RecvFromRemoteAsync is cancelled") {
		return tfpb.Code_ABORTED
	}
	return tfpb.Code_CANCELLED
}

// transferNode is TensorFlow's name for a node that moves a fed or fetched
// tensor: the name of the tensor's node, and numbers.
// partitionNode is the name of a copy of a node made when the graph was divided
// among devices.
var (
	transferNode  = lazyregexp.New(`^_(?:recv|send|arg|retval)_(.+)_\d+$`)
	partitionNode = lazyregexp.New(`^(.+)_S\d+$`)
)

// mostParts is in how many parts, one of another, a node is looked for: servers make two.
const mostParts = 16

// find returns the graph's node of that name.
func (o opTypes) find(name string) (string, bool) {
	for range mostParts {
		if _, ok := o[name]; ok {
			return name, true
		}
		if m := partitionNode().FindStringSubmatch(name); m != nil {
			name = m[1]
			continue
		}
		m := transferNode().FindStringSubmatch(name)
		if m == nil {
			return "", false
		}
		if _, ok := o[m[1]]; ok {
			return m[1], true
		}
		name = "_arg_" + m[1] // another number may follow
	}
	return "", false
}

var (
	// nodeMark is how TensorFlow points at a node: {{node NAME}}. Before 1.14
	// it was [[Node: NAME = Op[attributes](inputs)]], and a server that knows
	// the place of definition writes [[node NAME (defined at ...)]].
	nodeMark = lazyregexp.New(`\{\{node ([^{}\s]+)\}\}|\[\[Node: (\S+) = (\w+)|\[\[node ([^\s\[\]]+)`)
	// nodeLine is a line that holds nothing but such marks.
	nodeLine = lazyregexp.New(`^\[\[.*\]\]$`)
	// nodePrefix are marks before the message.
	nodePrefix = lazyregexp.New(`^(\{\{(function_)?node [^{}]*\}\}\s*)+`)
	// wireLine matches a line about the call between two servers. The preceding lines have all that
	// it says about the failure.
	wireLine = lazyregexp.New(`^(Additional GRPC error information|:UNKNOWN:|:\{"created")`)
	// logLine is a line of a server's log that it puts after the message. It may be about any training.
	logLine = lazyregexp.New(`^(Recent warning and error logs:$|[IWEF]\d{4} \d\d:\d\d:\S+ +\d+ \S+:\d+\] )`)
	// rule is the line around a message that is made of several: one for each
	// server that failed, which begins with its code.
	rule     = lazyregexp.New(`^=+$`)
	codeLine = lazyregexp.New(`^[A-Z_]+: `)
)

// Of a longer message the begin, with the reason, and the end, with the nodes, are kept: it goes
// into logs, and a server may send megabytes.
const (
	messageBegin = 120 << 10
	messageEnd   = 8 << 10
)

// shorten leaves out the middle of a message that is too long.
func shorten(message string) string {
	out := len(message) - messageBegin - messageEnd
	if out <= 0 {
		return message
	}
	return strings.ToValidUTF8(fmt.Sprintf("%s ... (%d bytes left out) ... %s", message[:messageBegin], out, message[len(message)-messageEnd:]), "")
}

// visible replaces what would steer a terminal.
func visible(r rune) rune {
	if unicode.IsControl(r) {
		return ' '
	}
	return r
}

// parseMessage takes the failed node out of a message of TensorFlow, and makes
// one line of the rest. Where the failure is inside of a function, the message
// lists the nodes from the inside to the outside; the first that is in the
// session's graph is the one.
func parseMessage(message string, ops opTypes) (node, op, rest string) {
	var text strings.Builder
	var known, several bool
	for line := range strings.SplitSeq(shorten(message), "\n") {
		line = strings.TrimSpace(strings.Map(visible, line))
		if line == "" || wireLine().MatchString(line) || logLine().MatchString(line) {
			continue
		}
		if rule().MatchString(line) {
			several = true
			continue
		}
		if !known {
			node, op, known = nodeIn(line, ops, node, op)
		}
		if nodeLine().MatchString(line) {
			continue
		}
		switch {
		case text.Len() == 0:
		case several && codeLine().MatchString(line):
			text.WriteString("; ")
		default:
			text.WriteString(" ")
		}
		text.WriteString(line)
	}
	return node, op, nodePrefix().ReplaceAllString(text.String(), "")
}

// nodeIn returns the first node in line that is in the graph, which makes it
// known; or else the given one; or else the first of line.
func nodeIn(line string, ops opTypes, node, op string) (_, _ string, known bool) {
	for _, m := range nodeMark().FindAllStringSubmatch(line, -1) {
		name := m[1] + m[2] + m[4]
		if own, ok := ops.find(name); ok {
			return own, ops[own], true
		}
		if node == "" {
			node, op = name, m[3]
		}
	}
	return node, op, false
}

// connectionMessage takes the wrapping off grpc's words for a failed
// connection: connection error: desc = "transport: Error while dialing: ...".
func connectionMessage(s string) string {
	_, desc, ok := strings.Cut(s, `connection error: desc = "`)
	if !ok {
		return s
	}
	desc = strings.TrimSuffix(strings.TrimPrefix(desc, "transport: "), `"`)
	return strings.TrimPrefix(desc, "Error while dialing: ")
}

// distrust reports whether a connection failed because one side rejects the other's certificate, or
// does not encrypt. Trying again would not help.
func distrust(reason string) bool {
	return strings.Contains(reason, "x509: ") || strings.Contains(reason, "tls: ")
}
