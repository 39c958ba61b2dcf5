package crawl

import "strings"

// Folder is where feeds are in a list: the names of folders, the outermost first, joined by /, as in
// News/Local. In a name ~ is written ~0 and / is written ~1 (RFC 6901), so no two folders are written alike.
// It is empty for none.
type Folder string

var (
	escapeName   = strings.NewReplacer("~", "~0", "/", "~1")
	unescapeName = strings.NewReplacer("~0", "~", "~1", "/")
)

// With returns the folder of a name in this one. A name without a letter adds none.
func (f Folder) With(name string) Folder {
	inner := Folder(escapeName.Replace(strings.TrimSpace(name)))
	if f == "" || inner == "" {
		return f + inner
	}
	return f + "/" + inner
}

// Name returns what people call it: its names as they are, joined by /.
func (f Folder) Name() string { return unescapeName.Replace(string(f)) }

// within reports whether it is a folder, or in one.
func (f Folder) within(g Folder) bool {
	inner, is := strings.CutPrefix(string(f), string(g))
	return is && (inner == "" || inner[0] == '/')
}
