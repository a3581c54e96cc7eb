package systemd

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
)

// JournalSocket is where journald accepts entries.
const JournalSocket = "/run/systemd/journal/socket"

// JournalOptions says how entries are written. The zero value is useful.
type JournalOptions struct {
	// Level is the lowest level that is written. Nil means slog.LevelInfo.
	Level slog.Leveler
	// Socket is used instead of JournalSocket.
	Socket string
	// Prefix is prepended to the field names of attributes, as in TRAINERD_. It
	// must not begin with an underscore: those are journald's own.
	Prefix string
	// Identifier is SYSLOG_IDENTIFIER; "" leaves journald's own guess.
	Identifier string
}

// JournalHandler is a [slog.Handler] that writes journal entries. MESSAGE has the message with the
// attributes after it, for people; each attribute is also a field, for programs: step=7 becomes
// PREFIX_STEP=7. A journal that accepts nothing, for example because its disk hangs, blocks the
// caller once, for [journalPatience]; entries that it does not accept after that are lost, with the
// error [os.ErrDeadlineExceeded].
type JournalHandler struct {
	o     JournalOptions
	conn  *journalConn
	group string // before the names of attributes, each group with a dot
	text  string // attributes of With, as they go into MESSAGE
	wire  []byte // the same as fields
}

// NewJournalHandler connects to the journal.
func NewJournalHandler(o JournalOptions) (*JournalHandler, error) {
	if o.Socket == "" {
		o.Socket = JournalSocket
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: o.Socket, Net: "unixgram"})
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	return &JournalHandler{o: o, conn: newJournalConn(conn)}, nil
}

// Close ends the connection, for all handlers derived from this one.
func (h *JournalHandler) Close() error { return h.conn.conn.Close() }

// Enabled reports whether entries of a level are written.
func (h *JournalHandler) Enabled(_ context.Context, level slog.Level) bool {
	least := slog.LevelInfo
	if h.o.Level != nil {
		least = h.o.Level.Level()
	}
	return level >= least
}

// Handle writes an entry.
func (h *JournalHandler) Handle(_ context.Context, r slog.Record) error {
	e := entry{group: h.group, prefix: h.o.Prefix}
	e.text.WriteString(r.Message)
	e.text.WriteString(h.text)
	e.wire.Write(h.wire)
	r.Attrs(func(a slog.Attr) bool {
		e.add(a)
		return true
	})
	var b bytes.Buffer
	writeField(&b, "MESSAGE", e.text.String())
	writeField(&b, "PRIORITY", priority(r.Level))
	if h.o.Identifier != "" {
		writeField(&b, "SYSLOG_IDENTIFIER", h.o.Identifier)
	}
	b.Write(e.wire.Bytes())
	return h.conn.send(b.Bytes())
}

// WithAttrs returns a handler that adds attributes to each entry.
func (h *JournalHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	e := entry{group: h.group, prefix: h.o.Prefix}
	for _, a := range attrs {
		e.add(a)
	}
	c := *h
	c.text += e.text.String()
	c.wire = append(bytes.Clone(h.wire), e.wire.Bytes()...)
	return &c
}

// WithGroup returns a handler that prepends a name to those of attributes.
func (h *JournalHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	c := *h
	c.group += name + "."
	return &c
}

// entry is what attributes become.
type entry struct {
	group, prefix string
	text          strings.Builder
	wire          bytes.Buffer
}

func (e *entry) add(a slog.Attr) {
	v := a.Value.Resolve()
	if v.Kind() == slog.KindGroup {
		outer := e.group
		if a.Key != "" {
			e.group += a.Key + "."
		}
		for _, inner := range v.Group() {
			e.add(inner)
		}
		e.group = outer
		return
	}
	if a.Key == "" {
		return
	}
	key, value := e.group+a.Key, v.String()
	shown := value
	if value == "" || strings.ContainsAny(value, " \t\n\"=") {
		shown = strconv.Quote(value)
	}
	fmt.Fprintf(&e.text, " %s=%s", key, shown)
	writeField(&e.wire, fieldName(e.prefix+key), value)
}

// maxName is the length of a field's name that journald takes.
const maxName = 64

// fieldName makes a name that journald takes: capitals, digits and underscores,
// beginning with a capital.
func fieldName(name string) string {
	b := []byte(strings.ToUpper(name))
	for i, c := range b {
		if (c < 'A' || c > 'Z') && (c < '0' || c > '9') {
			b[i] = '_'
		}
	}
	if len(b) == 0 || b[0] < 'A' || b[0] > 'Z' {
		b = append([]byte("X"), b...)
	}
	return string(b[:min(len(b), maxName)])
}

func writeField(b *bytes.Buffer, name, value string) {
	b.WriteString(name)
	if !strings.Contains(value, "\n") {
		b.WriteByte('=')
	} else {
		b.WriteByte('\n')
		b.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(value))))
	}
	b.WriteString(value)
	b.WriteByte('\n')
}

// priority is syslog's number for a level.
func priority(level slog.Level) string {
	switch {
	case level >= slog.LevelError:
		return "3"
	case level >= slog.LevelWarn:
		return "4"
	case level >= slog.LevelInfo:
		return "6"
	}
	return "7"
}
