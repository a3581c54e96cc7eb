package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/internal/spelling"
)

// suggest returns which known key an unknown one may have been meant to be: the
// same name in another table, or the one that takes the fewest changed letters.
// When none is near, the hint lists the keys of the table.
func suggest(unknown string, known []string) (meant, hint string) {
	table, name := splitKey(unknown)
	if meant, ok := otherNames[name]; ok && slices.Contains(known, meant) {
		return meant, fmt.Sprintf("did you mean %s?", meant)
	}
	best, bestCost := "", 0
	for _, k := range known {
		knownTable, knownName := splitKey(k)
		cost := spelling.Distance(name, knownName)
		if knownTable == table && isPart(name, knownName) {
			cost = 1
		}
		if cost > spelling.MaxDistance(name) {
			continue
		}
		if knownTable != table {
			cost += 1 + spelling.Distance(table, knownTable)/4 // the own table first
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
	return "", listKeys(table, name, siblings)
}

// isPart reports whether a key is one of two words and more, and another the words that it
// begins or ends with.
func isPart(part, key string) bool {
	return strings.HasPrefix(key, part+"_") || strings.HasSuffix(key, "_"+part)
}

// otherNames are what other programs call keys of ours.
var otherNames = map[string]string{
	"lr": "model.learning_rate", "weight_decay": "model.l2", "layers": "model.hidden", "units": "model.hidden",
	"max_steps": "train.steps", "num_steps": "train.steps", "num_epochs": "train.epochs", "patience": "train.early_stopping",
	"bs": "data.batch_size", "sep": "data.separator", "delimiter": "data.separator", "target": "data.label", "test_size": "data.test_fraction",
	"save_total_limit": "supervisor.max_to_keep", "save_steps": "supervisor.save_model_steps", "output_dir": "logdir",
}

// listKeys says which keys a table has: of many those that are most like a name.
func listKeys(table, name string, keys []string) string {
	const most = 12
	of := "the keys"
	if table != "" {
		of += " of [" + table + "]"
	}
	switch {
	case len(keys) == 0:
		return ""
	case len(keys) <= most:
		return of + " are " + strings.Join(keys, ", ")
	}
	near := slices.Clone(keys)
	slices.SortStableFunc(near, func(a, b string) int {
		return cmp.Compare(spelling.Distance(name, a), spelling.Distance(name, b))
	})
	return fmt.Sprintf("%s most like it are %s; doc/config.md lists all %d", of, strings.Join(near[:5], ", "), len(keys))
}

func splitKey(key string) (table, name string) {
	i := strings.LastIndexByte(key, '.')
	if i < 0 {
		return "", key
	}
	return key[:i], key[i+1:]
}
