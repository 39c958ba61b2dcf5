package report

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// overlaps returns what is wrong with the picture on the page: texts that overlap each
// other, an axis or a marker, leave the frame, or have figures too small to read; and how many
// texts it has.
const overlaps = `(() => {
	const svg = document.querySelector("svg"), found = [], eps = .3;
	const box = e => {
		const b = e.getBBox(), r = e.getBoundingClientRect();
		return { w: b.width, h: b.height, l: r.left, r: r.right, t: r.top, b: r.bottom };
	};
	const hit = (a, b) => a.l < b.r - eps && b.l < a.r - eps && a.t < b.b - eps && b.t < a.b - eps;
	const texts = [...svg.querySelectorAll("text, path[aria-label], g[id^=text_]")] // the last of matplotlib
		.map(e => ({ e, say: e.getAttribute("aria-label") || e.textContent.trim() || e.id, ...box(e) }));
	const style = e => e.getAttribute("style") || "";
	const axes = [...svg.querySelectorAll("path")].filter(e => /stroke:#1B1B1F/.test(style(e))).map(box);
	const markers = [...svg.querySelectorAll("path")]
		.filter(e => !e.hasAttribute("aria-label") && /A3,3/.test(e.getAttribute("d"))).map(box);
	const frame = svg.getBoundingClientRect();
	texts.forEach((a, k) => {
		if (!(a.w > 0 && a.h > 0)) found.push(a.say + " is not drawn");
		if (a.l < frame.left - eps || a.r > frame.right + eps || a.t < frame.top - eps || a.b > frame.bottom + eps) {
			found.push(a.say + " leaves the frame");
		}
		const high = a.h * frame.width / svg.viewBox.baseVal.width;
		if (/\d/.test(a.say) && high < .7 * 8.5) found.push(a.say + " is " + high + " px high"); // of a font of 8.5
		texts.slice(k + 1).filter(b => hit(a, b)).forEach(b => found.push(a.say + " overlaps " + b.say));
		const wider = b => ({ ...b, l: b.l - 2 * eps, r: b.r + 2 * eps, t: b.t - 2 * eps, b: b.b + 2 * eps });
		if (axes.some(b => hit(a, wider(b)))) found.push(a.say + " overlaps an axis");
		if (markers.some(b => hit(a, b))) found.push(a.say + " overlaps a marker");
	});
	const seen = new Set(texts.map(a => getComputedStyle(a.e).fill));
	const back = getComputedStyle(svg.querySelector("path[style*='fill:#FFFFFF'], path[style*='fill: #ffffff']")).fill;
	if (seen.has(back)) found.push("text has the colour of what it stands on");
	return JSON.stringify({ found, texts: texts.length, colours: [...seen, back] });
})()`

// In every picture that is shipped no text overlaps another, an axis or a marker, none leaves
// the frame, and all can be read, wide and narrow, by day and by night.
func TestPicturesInChromium(t *testing.T) {
	if testing.Short() && os.Getenv("EPHEMERA_REQUIRE_ALL") != "1" {
		t.Skip("starts a browser")
	}
	var pictures []string
	for _, pattern := range []string{"docs/*.svg", "docs/*/*.svg", "python/*/*.svg"} {
		found, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		pictures = append(pictures, found...)
	}
	if len(pictures) < 12 {
		t.Fatalf("%d pictures", len(pictures))
	}
	opts := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(chromium(t)), chromedp.NoSandbox,
		chromedp.WindowSize(1200, 900), chromedp.UserDataDir(t.TempDir()))
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), opts...)
	defer cancel()
	ctx, cancel = chromedp.NewContext(ctx)
	defer cancel()
	b := &tab{t: t, ctx: ctx}
	file := filepath.Join(t.TempDir(), "picture.html")
	colours := map[string]string{}
	for _, path := range pictures {
		svg := get(t, path)
		for _, width := range []int{900, 360} {
			for _, by := range []string{"light", "dark"} {
				_, drawing, _ := strings.Cut(svg, "<svg")
				style := fmt.Sprintf(`svg { width: %dpx; height: auto }`, width)
				page := `<!doctype html><meta charset="utf-8"><style>` + style + `</style><svg` + drawing
				if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
					t.Fatal(err)
				}
				scheme := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: by}}
				media := emulation.SetEmulatedMediaParams{Features: scheme}
				if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, media); err != nil {
					t.Fatal(err)
				}
				b.do(chromedp.Navigate("file://" + filepath.ToSlash(file)))
				var got struct {
					Found   []string
					Texts   int
					Colours []string
				}
				if err := json.Unmarshal([]byte(eval[string](b, overlaps)), &got); err != nil {
					t.Fatal(err)
				}
				if len(got.Found) > 0 || got.Texts < 3 {
					t.Errorf("%s, %d px, %s: %d texts; %q", filepath.Base(path), width, by, got.Texts, got.Found)
				}
				if other := colours[path]; other == fmt.Sprint(got.Colours) && by == "dark" {
					t.Errorf("%s is the same by day and by night", filepath.Base(path))
				}
				if by == "light" {
					colours[path] = fmt.Sprint(got.Colours)
				}
			}
		}
	}
}
