package governance_test

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

var (
	pageLink    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	pageHeading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	noAnchor    = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// anchors are the names that headings have in links.
func anchors(page string) map[string]bool {
	names := map[string]bool{}
	for _, m := range pageHeading.FindAllStringSubmatch(page, -1) {
		names[strings.ReplaceAll(noAnchor.ReplaceAllString(strings.ToLower(strings.TrimSpace(m[1])), ""), " ", "-")] = true
	}
	return names
}

// brokenLinks are the links of README.md and the pages in docs to what is not there, as "page: link".
func brokenLinks(t *testing.T, tree fs.FS) (broken []string, links int) {
	t.Helper()
	visit := func(page string, _ fs.DirEntry, err error) error {
		if err != nil || path.Ext(page) != ".md" {
			return err
		}
		text, err := fs.ReadFile(tree, page)
		if err != nil {
			return err
		}
		for _, m := range pageLink.FindAllStringSubmatch(string(text), -1) {
			file, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(file, "://") {
				continue
			}
			links++
			target, other := page, text
			if file != "" {
				target = path.Join(path.Dir(page), file)
				info, err := fs.Stat(tree, target)
				if err != nil {
					broken = append(broken, page+": "+m[1])
					continue
				}
				if !info.IsDir() {
					if other, err = fs.ReadFile(tree, target); err != nil {
						return err
					}
				}
			}
			if anchor != "" && !anchors(string(other))[anchor] {
				broken = append(broken, page+": "+m[1])
			}
		}
		return nil
	}
	require.NoError(t, fs.WalkDir(tree, "README.md", visit))
	require.NoError(t, fs.WalkDir(tree, "docs", visit))
	return broken, links
}

func TestPageLinks(t *testing.T) {
	made := fstest.MapFS{
		"README.md": {Data: []byte("# One, `two` and 3\n[a](docs/b.md) [b](docs/b.md#there) [c](#one-two-and-3) [d](docs) [e](https://x.org/y) [f](gone.md) [g](#gone) [h](docs/b.md#gone)\n")},
		"docs/b.md": {Data: []byte("## There\n[up](../README.md) ![gone](img/gone.png)\n")},
	}
	broken, links := brokenLinks(t, made)
	require.Equal(t, []string{"README.md: gone.md", "README.md: #gone", "README.md: docs/b.md#gone", "docs/b.md: img/gone.png"}, broken)
	require.Equal(t, 9, links)

	broken, links = brokenLinks(t, os.DirFS(root))
	require.Empty(t, broken)
	require.Greater(t, links, 100, "pages have next to no links")
}
