package daemon

import (
	"fmt"
	"strings"
)

// suggest returns which known key an unknown one may have been meant to be: the
// same name in another table, or the one that takes the fewest changed letters.
// When none is near, the hint lists the keys of the table.
func suggest(unknown string, known []string) (meant, hint string) {
	table, name := splitKey(unknown)
	best, bestCost := "", 0
	for _, k := range known {
		knownTable, knownName := splitKey(k)
		cost := distance(name, knownName)
		if cost > limit(name) {
			continue
		}
		if knownTable != table {
			cost += 1 + distance(table, knownTable)/4 // the own table first
		}
		if best == "" || cost < bestCost {
			best, bestCost = k, cost
		}
	}
	if best != "" {
		return best, fmt.Sprintf("did you mean %s?", best)
	}
	var siblings []string
	for _, k := range known {
		if t, n := splitKey(k); t == table {
			siblings = append(siblings, n)
		}
	}
	if len(siblings) == 0 {
		return "", ""
	}
	if table == "" {
		return "", "the keys are " + strings.Join(siblings, ", ")
	}
	return "", fmt.Sprintf("the keys of [%s] are %s", table, strings.Join(siblings, ", "))
}

// limit is how many changes still make a name a misspelling of another.
func limit(name string) int { return max(1, min(3, len(name)/3)) }

func splitKey(key string) (table, name string) {
	i := strings.LastIndexByte(key, '.')
	if i < 0 {
		return "", key
	}
	return key[:i], key[i+1:]
}

// distance counts the letters to insert, delete, replace or swap with their
// neighbour to turn a into b.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return max(len(a), len(b)) // no key is that long
	}
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next[j+1] = min(row[j+1]+1, next[j]+1, row[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
