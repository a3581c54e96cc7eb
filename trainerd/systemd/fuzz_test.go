package systemd

import "testing"

// FuzzEnvironment takes what systemd's environment variables may hold: an
// interval is never negative, and no socket is opened for nonsense.
func FuzzEnvironment(f *testing.F) {
	f.Add("/run/systemd/notify", "30000000", "1")
	f.Add("@abstract", "-1", "")
	f.Add("\x00", "99999999999999999999", "x")
	f.Fuzz(func(t *testing.T, socket, usec, pid string) {
		env := map[string]string{"NOTIFY_SOCKET": socket, "WATCHDOG_USEC": usec, "WATCHDOG_PID": pid}
		getenv := func(name string) string { return env[name] }
		if d := WatchdogInterval(getenv, 1); d < 0 {
			t.Errorf("interval %v", d)
		}
		n, err := NewNotifier(getenv)
		if err == nil && n != nil {
			n.Close()
		}
	})
}
