package table

import (
	"strconv"
	"strings"
)

// degrees returns a place on the globe as a number: 52°31'12"N, 13.4° W and the
// like, south and west being negative. A temperature, whose sign ends with the unit,
// stays.
func degrees(field string) (number string, ok bool) {
	const longest = 32
	if len(field) > longest {
		return "", false
	}
	whole, rest, ok := strings.Cut(field, "°")
	whole = strings.TrimSpace(whole)
	value, err := strconv.ParseFloat(whole, 64)
	if !ok || err != nil || !IsNumber(whole) || value < -180 || value > 180 {
		return "", false
	}
	rest, sign, named := hemisphere(rest)
	rest, minutes, hasMinutes := cutPart(rest, "'", "′", "’")
	rest, seconds, hasSeconds := cutPart(rest, `"`, "″", "''", "”")
	negative := strings.HasPrefix(whole, "-")
	if strings.TrimSpace(rest) != "" || !named && !hasMinutes || hasSeconds && !hasMinutes || named && negative {
		return "", false
	}
	part := minutes/60 + seconds/3600
	if negative {
		part = -part
	}
	return strconv.FormatFloat(sign*(value+part), 'f', -1, 64), true
}

// hemisphere takes the letter off that ends a place.
func hemisphere(text string) (rest string, sign float64, ok bool) {
	text = strings.TrimSpace(text)
	if text == "" {
		return "", 1, false
	}
	switch last := len(text) - 1; text[last] {
	case 'N', 'E':
		return text[:last], 1, true
	case 'S', 'W':
		return text[:last], -1, true
	}
	return text, 1, false
}

// cutPart takes minutes or seconds off, with one of the marks after them.
func cutPart(text string, marks ...string) (rest string, value float64, ok bool) {
	for _, mark := range marks {
		before, after, found := strings.Cut(text, mark)
		before = strings.TrimSpace(before)
		value, err := strconv.ParseFloat(before, 64)
		if found && err == nil && value >= 0 && value < 60 {
			return after, value, true
		}
	}
	return text, 0, false
}
