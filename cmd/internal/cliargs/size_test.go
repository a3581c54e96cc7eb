package cliargs

import "testing"

func TestSize(t *testing.T) {
	for text, want := range map[string]int64{
		"1": 1, "7b": 7, "5GB": 5e9, "500 MiB": 500 << 20, "2kib": 2 << 10, "4611686018427387904": 1 << 62,
		"": 0, "GB": 0, "0": 0, "-1MB": 0, "1.5GB": 0, "5000000000GB": 0, "9223372036854775808": 0,
	} {
		got, err := Size(text)
		if got != want || (err != nil) != (want == 0) {
			t.Errorf("Size(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
}
