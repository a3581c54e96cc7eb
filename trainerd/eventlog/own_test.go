package eventlog

import "testing"

func TestIsOwn(t *testing.T) {
	for base, want := range map[string]bool{
		"events.out.tfevents.1700000000.host.trainerd":                      true,
		"events.out.tfevents.1700000000.trainerd.trainerd":                  true,
		"events.out.tfevents.1700000000.trainerd":                           false, // of a program on the host "trainerd"
		"events.out.tfevents.1700000000.host":                               false,
		"events.out.tfevents.1700000000.host.7.0.v2":                        false,
		"events.out.tfevents.1700000000.host.restart-1700000000.trainerd":   true,
		"events.out.tfevents.1700000000.trainerd.restart-17000000.trainerd": true,
		"own.tfevents.restart-1700000000.trainerd":                          true,
		"model.trainerd": false,
	} {
		if IsOwn(base) != want {
			t.Errorf("%s: %v, want %v", base, !want, want)
		}
	}
}
