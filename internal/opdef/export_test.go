package opdef

// Scan finds the definitions in the table, as the first Lookup does.
func Scan() int { return len(scan()) }

// Names returns the names of all ops of the table, sorted.
func Names() []string {
	list := entries()
	names := make([]string, len(list))
	for i, e := range list {
		names[i] = e.name
	}
	return names
}
