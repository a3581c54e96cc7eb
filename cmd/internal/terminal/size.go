package terminal

import "fmt"

// Size writes a number of bytes for people: "812 B", "41.5 KiB". All commands write
// sizes in this form.
func Size(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	const units = "KMGTPE"
	v, unit := float64(n)/1024, 0
	for v >= 1023.95 && unit < len(units)-1 { // which would be written as 1024.0
		v, unit = v/1024, unit+1
	}
	return fmt.Sprintf("%.1f %ciB", v, units[unit])
}
