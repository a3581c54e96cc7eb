//go:build unix

package child

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd/child/found"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// TestMain lets the test binary be the program that is looked after: with
// CHILD_SCRIPT set it follows that, line by line, or rather that of the attempt:
// scripts are divided by "|".
func TestMain(m *testing.M) {
	if scripts := os.Getenv("CHILD_SCRIPT"); scripts != "" {
		attempt, _ := strconv.Atoi(os.Getenv("TRAINERD_ATTEMPT"))
		all := strings.Split(scripts, "|")
		for line := range strings.SplitSeq(all[min(attempt, len(all))-1], ";") {
			act(strings.Fields(line))
		}
		os.Exit(0)
	}
	if dir := os.Getenv(asTrainerd); dir != "" {
		beTrainerd(dir)
	}
	os.Exit(m.Run())
}

// act does one thing that a training program may do.
func act(words []string) {
	if len(words) == 0 {
		return
	}
	text := strings.Join(words[1:], " ")
	switch words[0] {
	case "say":
		fmt.Println(text)
	case "complain":
		fmt.Fprintln(os.Stderr, text)
	case "env": // the variable of that name
		fmt.Printf("%s is %q\n", text, os.Getenv("TRAINERD_"+text))
	case "steps": // from to
		from, _ := strconv.Atoi(words[1])
		to, _ := strconv.Atoi(words[2])
		for step := from; step <= to; step++ {
			fmt.Printf("{\"step\": %d, \"loss\": %v}\n", step, 1/float64(step))
		}
	case "resume": // steps up to, from the checkpoint
		from, _ := strconv.Atoi(os.Getenv("TRAINERD_STEP"))
		act([]string{"steps", strconv.Itoa(from + 1), words[1]})
	case "write": // files below the logdir
		for _, name := range words[1:] {
			if folder, _, ok := strings.Cut(name, "/"); ok {
				os.Mkdir(filepath.Join(os.Getenv("TRAINERD_LOGDIR"), folder), 0o777)
			}
			os.WriteFile(filepath.Join(os.Getenv("TRAINERD_LOGDIR"), name), []byte("weights"), 0o666)
		}
	case "intact": // a file that can be verified
		os.WriteFile(filepath.Join(os.Getenv("TRAINERD_LOGDIR"), words[1]), []byte(childtest.TensorsOf(1)), 0o666)
	case "remove":
		os.Remove(filepath.Join(os.Getenv("TRAINERD_LOGDIR"), words[1]))
	case "link": // a name below the logdir to another
		os.Symlink(words[2], filepath.Join(os.Getenv("TRAINERD_LOGDIR"), words[1]))
	case "where": // a link leads
		to, _ := os.Readlink(filepath.Join(os.Getenv("TRAINERD_LOGDIR"), words[1]))
		fmt.Println(words[1], "leads to", to)
	case "empty": // a file
		os.WriteFile(filepath.Join(os.Getenv("TRAINERD_LOGDIR"), words[1]), nil, 0o666)
	case "tear": // a file that is cut short
		os.WriteFile(filepath.Join(os.Getenv("TRAINERD_LOGDIR"), words[1]), []byte("\xff"), 0o666)
	case "list": // what a pattern finds
		found, _ := filepath.Glob(filepath.Join(os.Getenv("TRAINERD_LOGDIR"), words[1]))
		for i, name := range found {
			found[i] = filepath.Base(name)
		}
		fmt.Println("found", strings.Join(found, " "))
	case "socket": // lines
		conn, err := net.Dial("unix", os.Getenv("TRAINERD_SOCKET"))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Fprintln(conn, text)
		conn.Close()
	case "exit":
		code, _ := strconv.Atoi(words[1])
		os.Exit(code)
	case "kill": // itself
		sig, _ := strconv.Atoi(words[1])
		syscall.Kill(os.Getpid(), syscall.Signal(sig))
		time.Sleep(time.Minute)
	case "deaf":
		signal.Ignore(syscall.SIGTERM)
	case "polite": // saves after SIGTERM
		term := make(chan os.Signal, 1)
		signal.Notify(term, syscall.SIGTERM)
		fmt.Println("ready")
		<-term
		act([]string{"write", words[1]})
	case "date": // a file an hour ahead: the time of one that has just been written may be older than now
		at := time.Now().Add(time.Hour)
		os.Chtimes(filepath.Join(os.Getenv("TRAINERD_LOGDIR"), words[1]), at, at)
	case "raise": // SIGTERM, as a handler does that leaves the rest to the system
		signal.Reset(syscall.SIGTERM)
		act([]string{"kill", "15"})
	case "onsignal": // a file that it saves after SIGUSR1, and what it does before
		usr1 := make(chan os.Signal, 1)
		signal.Notify(usr1, syscall.SIGUSR1)
		act(words[2:])
		fmt.Println("ready")
		<-usr1
		act([]string{"write", words[1]})
	case "await": // a file below the logdir, or what a pattern finds
		for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
			if found, _ := filepath.Glob(filepath.Join(os.Getenv("TRAINERD_LOGDIR"), words[1])); len(found) > 0 {
				return
			}
		}
		fmt.Fprintln(os.Stderr, "there is still no", words[1])
		os.Exit(1)
	case "pause": // longer than a report is under way
		time.Sleep(2 * inFlight)
	case "sleep":
		time.Sleep(time.Minute)
	}
}

// discard is a log that nobody reads.
var discard = slog.New(slog.DiscardHandler)

func linesOf(s *screen) []string { return strings.Split(s.String(), "\n") }

// becomeReaper makes this process inherit the orphans below it, as the first
// process of a container does; 0 ends that.
func becomeReaper(on uintptr) error {
	const setChildSubreaper = 36
	if runtime.GOOS+runtime.GOARCH != "linuxamd64" {
		return errors.ErrUnsupported
	}
	if _, _, errno := syscall.Syscall(157, setChildSubreaper, on, 0); errno != 0 { // prctl
		return errno
	}
	return nil
}

// logTo returns a log that a test reads.
func logTo(s *screen) *slog.Logger { return slog.New(slog.NewTextHandler(s, nil)) }

// logAllTo is logTo with what is for debugging.
func logAllTo(s *screen) *slog.Logger {
	return slog.New(slog.NewTextHandler(s, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// openStore returns the store of the checkpoints in a folder, without a program.
func openStore(t *testing.T, dir, pattern string, policy ...retention.Policy) *found.Store {
	t.Helper()
	return storeOn(t, nil, dir, pattern, policy...)
}

// storeOn is openStore with a disk; nil is the real one.
func storeOn(t *testing.T, disk atomicfile.FS, dir, pattern string, policy ...retention.Policy) *found.Store {
	t.Helper()
	root, err := os.OpenRoot(dir)
	childtest.Must(t, err)
	t.Cleanup(func() { root.Close() })
	return found.New(root, pattern, found.Options{FS: disk, Retention: policy})
}

// foundAt returns a checkpoint of some name that a scan has found at a moment.
func foundAt(t *testing.T, name string, at found.Moment) found.Checkpoint {
	t.Helper()
	return foundLast(t, name, at)
}

// foundLast returns a checkpoint that the program has written to before several scans; the
// last scan is at the end of it.
func foundLast(t *testing.T, name string, looks ...found.Moment) (c found.Checkpoint) {
	t.Helper()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	childtest.Must(t, err)
	defer root.Close()
	var now found.Moment
	s := found.New(root, "*", found.Options{Now: func() found.Moment { return now }, IsPast: func(*found.Checkpoint) bool { return now == looks[len(looks)-1] }})
	for i, at := range looks {
		now = at
		childtest.Write(t, filepath.Join(dir, name), strings.Repeat("weights", i+1))
		s.Candidates(false)
	}
	added, bad := s.Refresh(true)
	if len(added) != 1 || bad != nil {
		t.Fatalf("a look finds %v, and refuses %v", added, bad)
	}
	return added[0]
}
