package systemd

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func journal(t *testing.T) (log *slog.Logger, next func() string, conn *net.UnixConn) {
	t.Helper()
	name := socket(t)
	next, conn = listen(t, name)
	h, err := NewJournalHandler(JournalOptions{Socket: name, Prefix: "TRAINERD_", Identifier: "trainerd"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return slog.New(h), next, conn
}

func TestJournalEntries(t *testing.T) {
	log, next, _ := journal(t)
	for _, c := range []struct {
		name string
		log  func()
		want string
	}{
		{"fields", func() { log.Info("saved", "step", 7, "took", time.Second) },
			"MESSAGE=saved step=7 took=1s\nPRIORITY=6\nSYSLOG_IDENTIFIER=trainerd\nTRAINERD_STEP=7\nTRAINERD_TOOK=1s\n"},
		{"words", func() { log.Warn("gone", "err", errors.New("no room"), "name", "") },
			"MESSAGE=gone err=\"no room\" name=\"\"\nPRIORITY=4\nSYSLOG_IDENTIFIER=trainerd\nTRAINERD_ERR=no room\nTRAINERD_NAME=\n"},
		{"lines", func() { log.Error("bad", "text", "a\nb") },
			"MESSAGE=bad text=\"a\\nb\"\nPRIORITY=3\nSYSLOG_IDENTIFIER=trainerd\nTRAINERD_TEXT\n\x03\x00\x00\x00\x00\x00\x00\x00a\nb\n"},
		{"groups", func() { log.With("job", "x").WithGroup("g").Info("m", slog.Group("h", "k", 1), slog.Attr{}) },
			"MESSAGE=m job=x g.h.k=1\nPRIORITY=6\nSYSLOG_IDENTIFIER=trainerd\nTRAINERD_JOB=x\nTRAINERD_G_H_K=1\n"},
		{"debug is off", func() { log.Debug("no"); log.Info("yes") },
			"MESSAGE=yes\nPRIORITY=6\nSYSLOG_IDENTIFIER=trainerd\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.log()
			if got := next(); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// An entry beyond the size of a datagram comes as a sealed file.
func TestLargeJournalEntry(t *testing.T) {
	log, _, conn := journal(t)
	text := strings.Repeat("x", 4<<20)
	if err := log.Handler().Handle(t.Context(), slog.NewRecord(time.Now(), slog.LevelInfo, text, 0)); err != nil {
		t.Fatal(err)
	}
	conn.SetReadDeadline(time.Now().Add(2 * time.Minute))
	oob := make([]byte, 128)
	n, oobn, _, _, err := conn.ReadMsgUnix(make([]byte, 16), oob)
	if err != nil || n != 0 {
		t.Fatalf("read %d bytes, %v, want a descriptor alone", n, err)
	}
	messages, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil || len(messages) != 1 {
		t.Fatalf("got %d messages, %v", len(messages), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		t.Fatalf("got descriptors %v, %v", fds, err)
	}
	f := os.NewFile(uintptr(fds[0]), "entry")
	defer f.Close()
	got, err := io.ReadAll(io.NewSectionReader(f, 0, 8<<20))
	if err != nil || !bytes.HasPrefix(got, []byte("MESSAGE="+text+"\n")) {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
	if _, err := f.WriteAt([]byte("y"), 0); !errors.Is(err, unix.EPERM) {
		t.Errorf("writing to the entry: %v, want it sealed", err)
	}
}

func TestIsJournal(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		t.Fatal(err)
	}
	for stream, want := range map[string]bool{
		fmt.Sprintf("%d:%d", st.Dev, st.Ino):   true,
		fmt.Sprintf("%d:%d", st.Dev, st.Ino+1): false,
		"":                                     false, "x:y": false, "1": false,
	} {
		if got := IsJournal(f, env("JOURNAL_STREAM", stream)); got != want {
			t.Errorf("JOURNAL_STREAM=%q: got %v", stream, got)
		}
	}
}

// TestJournalThatHangs has a journal that takes nothing until it is read: entries are lost then,
// and nobody is held up for ever.
func TestJournalThatHangs(t *testing.T) {
	log, next, _ := journal(t)
	h := log.Handler().(*JournalHandler)
	write := func(text string) error {
		return h.Handle(t.Context(), slog.NewRecord(time.Time{}, slog.LevelInfo, text, 0))
	}
	taken := 0
	for err := error(nil); err == nil; taken++ {
		h.conn.stuck = true // it is tried once, however busy the machine is
		err = write("more")
	}
	taken-- // the last was not
	h.conn.stuck, h.conn.patience = false, time.Millisecond
	if err := write("waits"); !errors.Is(err, os.ErrDeadlineExceeded) || !h.conn.stuck {
		t.Errorf("an entry that waits: %v", err)
	}
	if err := write(strings.Repeat("large", 1<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a large entry: %v", err)
	}
	h.conn.patience = time.Hour // which nobody waits for: the journal hangs already
	if err := h.WithAttrs(nil).Handle(t.Context(), slog.NewRecord(time.Time{}, slog.LevelInfo, "lost", 0)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("an entry after that: %v", err)
	}
	for range taken {
		next()
	}
	if err := write("again"); err != nil {
		t.Error(err)
	}
	if got := next(); !strings.HasPrefix(got, "MESSAGE=again\n") {
		t.Errorf("after the hang: %q", got)
	}
}
