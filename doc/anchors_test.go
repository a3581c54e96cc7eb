package doc_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	anchorLink = regexp.MustCompile(`\]\(([^)#:\s]*)#([^)\s]+)\)`)
	heading    = regexp.MustCompile("(?m)^#+ (.+)$")
	notInSlug  = regexp.MustCompile(`[^\pL\pN _-]`)
)

// slugs returns the anchors of a page's headings, as GitHub makes them.
func slugs(page string) map[string]bool {
	all := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(page, ""), -1) {
		all[strings.ReplaceAll(notInSlug.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	return all
}

// TestAnchors makes sure that a link into a page leads to a heading of it.
func TestAnchors(t *testing.T) {
	found := 0
	for _, page := range append(pages(t), "../README.md", "../CHANGELOG.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range anchorLink.FindAllStringSubmatch(string(text), -1) {
			found++
			target := page
			if m[1] != "" {
				target = filepath.Join(filepath.Dir(page), m[1])
			}
			if !strings.HasSuffix(target, ".md") {
				continue
			}
			if to, err := os.ReadFile(target); err == nil && !slugs(string(to))[m[2]] { // TestLinks has those without a page
				t.Errorf("%s: %s has no heading #%s", page, target, m[2])
			}
		}
	}
	if found < 20 {
		t.Errorf("found %d links with an anchor; the pattern is wrong", found)
	}
}

func TestSlugs(t *testing.T) {
	got := slugs("# Listing 100,000 tensors\n\n```sh\n# no heading\n```\n\n## What a program gets, and what it can't\n")
	for _, want := range []string{"listing-100000-tensors", "what-a-program-gets-and-what-it-cant"} {
		if !got[want] {
			t.Errorf("slugs = %v; want %q in them", got, want)
		}
	}
	if len(got) != 2 {
		t.Errorf("slugs = %v; a comment in a block is not a heading", got)
	}
}
