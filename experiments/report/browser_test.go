package report

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"ephemera/experiments/plot"
)

// tab is a page in a real browser, and what it complained of and asked for.
type tab struct {
	t        *testing.T
	ctx      context.Context
	mu       sync.Mutex
	errors   []string
	requests []string
}

// chromium returns the path of a browser.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			return p
		}
	}
	if os.Getenv("EPHEMERA_REQUIRE_ALL") == "1" {
		t.Fatal("no Chromium here, and EPHEMERA_REQUIRE_ALL=1; Debian's package is chromium")
	}
	t.Skip("no Chromium here; Debian's package is chromium")
	return ""
}

// show runs a sweep and shows its report in a browser. At the end the page may have
// complained of nothing, and asked for nothing but itself.
func show(t *testing.T, text string) (b *tab) {
	t.Helper()
	opts := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(chromium(t)), chromedp.NoSandbox,
		chromedp.WindowSize(1200, 900), chromedp.UserDataDir(t.TempDir()))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), opts...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	b = &tab{t: t, ctx: ctx}
	err := chromedp.Listen(ctx, func(ev any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch ev := ev.(type) {
		case *runtime.EventExceptionThrown:
			b.errors = append(b.errors, ev.ExceptionDetails.Text)
		case *network.EventRequestWillBeSent:
			b.requests = append(b.requests, ev.Request.URL)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, enable := range []func() error{
		func() error { _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); return err },
		func() error { _, err := chromedp.Call(ctx, runtime.Enable, cdp.Empty{}); return err },
	} {
		if err := enable(); err != nil {
			t.Fatal(err)
		}
	}
	dir := sweepIn(t, text)
	write(t, dir)
	page := "file://" + filepath.ToSlash(filepath.Join(dir, "report.html"))
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if len(b.errors) > 0 {
			t.Errorf("the page complained: %q", b.errors)
		}
		for _, url := range b.requests {
			if url != page && !strings.HasPrefix(url, "data:") {
				t.Errorf("the page asked for %s", url)
			}
		}
		if len(b.requests) == 0 {
			t.Error("not even the page itself was asked for: requests are not watched")
		}
	})
	b.do(chromedp.Navigate(page), chromedp.WaitVisible(curves+" canvas"), settle)
	return b
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

func eval[T any](b *tab, js string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](js))
	if err != nil {
		b.t.Fatalf("%v in %s", err, js)
	}
	return v
}

// pixels counts the pixels of a plot's canvas that have about the given colour.
func (b *tab) pixels(holder string, red, green, blue int) int {
	b.t.Helper()
	return eval[int](b, fmt.Sprintf(`(() => {
		const c = document.querySelector(%q + " canvas"), colour = [%d, %d, %d];
		const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
		let n = 0;
		for (let i = 0; i < d.length; i += 4) {
			if (d[i + 3] > 200 && colour.every((v, k) => Math.abs(d[i + k] - v) < 12)) n++;
		}
		return n;
	})()`, holder, red, green, blue))
}

// fits checks that no table of results is wider than its place.
func (b *tab) fits(where string) {
	b.t.Helper()
	wider := eval[int](b, `Math.max(...[...document.querySelectorAll("[aria-label^='Table:']")]
		.map(e => e.scrollWidth - e.clientWidth))`)
	if wider > 0 {
		b.t.Errorf("a table of results is %d pixels wider than %s", wider, where)
	}
}

// phone makes the screen narrow and dark. Nothing is wider than it.
func (b *tab) phone() {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(360, 740, chromedp.EmulateScale(2), chromedp.EmulateMobile))
	dark := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: dark})
	if err != nil {
		b.t.Fatal(err)
	}
	b.do(settle, settle)
	if wider := eval[int](b, `document.documentElement.scrollWidth - 360`); wider > 0 {
		b.t.Errorf("the page is %d pixels wider than a phone", wider)
	}
	b.fits("a phone")
}

var settle = chromedp.Sleep(150 * time.Millisecond) // uPlot draws in the next frame

// curves is the section of the learning curves.
const curves = "#section-2"

func TestBrowser(t *testing.T) {
	b := show(t, small)

	// Curves are drawn, as pixels: in the colours of the first two cells, and
	// in the profile in that of the best, which runs along the top.
	blue, orange := b.pixels(curves, 0, 114, 178), b.pixels(curves, 213, 94, 0)
	profile := b.pixels("#section-3", 86, 180, 233)
	if blue < 300 || orange < 300 || profile < 300 {
		t.Errorf("%d blue, %d orange and %d light blue pixels; want at least 300 of each", blue, orange, profile)
	}
	if n := b.pixels("#section-1", 0, 114, 178); n < 300 {
		t.Errorf("%d blue pixels along the setting; want at least 300", n)
	}

	// The table sorts, both ways, and with the keyboard.
	first := func() string { return eval[string](b, `document.querySelector("#section-0 tbody tr th").textContent`) }
	before := first()
	b.do(chromedp.Click(`#section-0 thead th:nth-child(3) button`))
	down := first()
	state := eval[string](b, `[...document.querySelectorAll("#section-0 thead th[aria-sort]")]
		.map(th => th.getAttribute("aria-sort")).join(" ")`)
	b.do(chromedp.Focus(`#section-0 thead th:nth-child(3) button`), chromedp.KeyEvent("\r"))
	if up := first(); before != "kappa/1/gamma/0.25" || down != "kappa/4/gamma/0.5" || up != "kappa/1/gamma/0.25" {
		t.Errorf("first row: %s, sorted down %s, sorted up %s", before, down, up)
	}
	if !strings.HasPrefix(state, "none descending none") {
		t.Errorf("aria-sort is %q", state)
	}

	// A cell toggles, from the table and by its name, and its pixels with it in
	// every figure.
	const entry = `.legend button[data-name="kappa/1/gamma/0.25"]`
	whole := b.pixels("#section-3", 0, 114, 178)
	b.do(chromedp.Click(`input[data-name="kappa/1/gamma/0.25"]`), settle)
	off, other := b.pixels(curves, 0, 114, 178), b.pixels("#section-3", 0, 114, 178)
	pressed := eval[string](b, `document.querySelector('`+curves+" "+entry+`').getAttribute("aria-pressed")`)
	b.do(chromedp.Click("#section-3 "+entry), settle)
	on := b.pixels(curves, 0, 114, 178)
	checked := eval[bool](b, `document.querySelector('input[data-name="kappa/1/gamma/0.25"]').checked`)
	if off > blue/10 || pressed != "false" || on < blue*9/10 || !checked || other > whole/10 {
		t.Errorf("pixels of a cell: %d, off %d (pressed %s), on again %d (checked %v); elsewhere %d, off %d",
			blue, off, pressed, on, checked, whole, other)
	}

	// Zoom, filter, figure.
	image := func() string { return eval[string](b, `document.querySelector("`+curves+` canvas").toDataURL()`) }
	zoom := func(k int) {
		b.do(chromedp.Click(fmt.Sprintf(`%s .controls button:nth-child(%d)`, curves, k)), settle)
	}
	wide := image()
	zoom(1)
	narrow := image()
	zoom(3)
	if again := image(); wide == narrow || wide != again {
		t.Errorf("zooming in changed the picture: %v; seeing all brought it back: %v", wide != narrow, wide == again)
	}
	// The filter leaves the rows that have the text in their name.
	eval[bool](b, `(() => {
		const f = document.querySelector("#section-0 input[type=search]");
		f.value = "gamma/0.5";
		return f.dispatchEvent(new Event("input"));
	})()`)
	if rows := eval[int](b, `document.querySelectorAll("#section-0 tbody tr").length`); rows != 3 {
		t.Errorf("%d rows left by the filter; want 3", rows)
	}
	b.do(chromedp.Click("#section-3 summary"), settle)
	if rows := eval[int](b, `document.querySelectorAll("#section-3 details tbody tr").length`); rows != 61 {
		t.Errorf("%d rows in the table of the profile", rows)
	}

	eval[bool](b, `(() => {
		const s = document.querySelector("`+curves+` select");
		s.value = "1";
		return s.dispatchEvent(new Event("change"));
	})()`)
	label := eval[string](b, `document.querySelector("`+curves+` .plot").getAttribute("aria-label")`)
	if !strings.Contains(label, "crawls per epoch over epoch: kappa/1/gamma/0.25 ends at 1000") {
		t.Errorf("description of the plot: %q", label)
	}

	// Hovering tells values.
	b.do(settle)
	eval[bool](b, `(() => {
		const o = document.querySelector("`+curves+` .u-over"), r = o.getBoundingClientRect();
		const at = {clientX: r.right - 1, clientY: r.top + r.height / 2, bubbles: true};
		o.dispatchEvent(new MouseEvent("mouseenter", at));
		return o.dispatchEvent(new MouseEvent("mousemove", at));
	})()`)
	b.do(settle)
	legend := eval[string](b, `document.querySelector("`+curves+` .legend").textContent`)
	if !strings.Contains(legend, "1000") {
		t.Errorf("legend under the pointer: %q", legend)
	}

	// The table fits a laptop.
	b.do(chromedp.EmulateViewport(1280, 800), settle)
	b.fits("its place at 1280")

	// Phone and dark mode: text is light.
	b.phone()
	colours := eval[string](b, `getComputedStyle(document.body).color + " on " +
		getComputedStyle(document.body).backgroundColor`)
	if colours != "rgb(232, 232, 236) on rgb(21, 22, 26)" {
		t.Errorf("dark mode: %s", colours)
	}

	// For a screen reader: every control and every plot has a name.
	nameless := eval[string](b, `[...document.querySelectorAll("button, input, select, [role=img], [role=region]")]
		.filter(e => !(e.getAttribute("aria-label") || e.textContent.trim() || e.closest("label")))
		.map(e => e.outerHTML.slice(0, 80)).join("; ")`)
	if nameless != "" {
		t.Errorf("without a name: %s", nameless)
	}
}

// TestLongNames: names at the side of a chart are drawn whole where the screen has room, and
// elsewhere without their middle, so that cells of different ends can be told apart.
func TestLongNames(t *testing.T) {
	b := show(t, strings.Replace(small, "learner.gamma = [0.25, 0.5]",
		`instance.name = ["lognormal:50:9001:exponential", "lognormal:50:9001:power"]`, 1))
	eval[bool](b, `(() => {
		const proto = CanvasRenderingContext2D.prototype, fill = proto.fillText;
		proto.fillText = function (text, x, y) {
			if (this.textAlign === "right") {
				drawn.push(text);
				if (x < this.measureText(text).width) cut.push(text);
			}
			return fill.call(this, text, x, y);
		};
		window.drawn = [];
		window.cut = [];
		return true;
	})()`)
	names := func() string {
		t.Helper()
		if cut := eval[string](b, `cut.join(", ")`); cut != "" {
			t.Errorf("beyond the edge of the chart: %s", cut)
		}
		return eval[string](b, `drawn.splice(0).join("\n")`)
	}
	b.do(chromedp.EmulateViewport(1100, 800), settle)
	if got := names(); !strings.Contains(got, "name/lognormal:50:9001:exponential/kappa/4\n") {
		t.Errorf("no whole name among\n%s", got)
	}
	b.phone()
	if got := names(); !strings.Contains(got, "…") || !strings.Contains(got, "/kappa/4\n") {
		t.Errorf("on a phone no end of a name without its middle among\n%s", got)
	}
}

// Each text of a picture lies inside its frame, whatever font the browser has.
func TestTextsOfPictures(t *testing.T) {
	b := show(t, small)
	dir := t.TempDir()
	f := plot.New("labels", "A title that takes most of the room that there is above a figure like this",
		"epochs that pass until 95 % of it are earned again", "share of epochs over the budget, while learning")
	for k := range 3 {
		s := f.Of(fmt.Sprintf("a threshold per source, %d of the sources known, nothing else", k))
		for x := range 20 {
			s.Add(float64(x), float64(k*x))
		}
	}
	if err := f.Put(dir); err != nil {
		t.Fatal(err)
	}
	svg, err := os.ReadFile(filepath.Join(dir, "labels.svg"))
	if err != nil {
		t.Fatal(err)
	}
	outside := eval[string](b, fmt.Sprintf(`(() => {
		const holder = document.createElement("div");
		holder.innerHTML = %s;
		document.body.append(holder);
		const frame = holder.querySelector("svg").getBoundingClientRect();
		return [...holder.querySelectorAll("text")].filter(e => {
			const r = e.getBoundingClientRect();
			return r.left < frame.left - 1 || r.right > frame.right + 1 ||
				r.top < frame.top - 1 || r.bottom > frame.bottom + 1;
		}).map(e => e.textContent).join("; ");
	})()`, quoteJS(svg)))
	if outside != "" {
		t.Errorf("outside the frame: %s", outside)
	}
}

func quoteJS(text []byte) string {
	quoted, _ := json.Marshal(string(text)) // a text always can
	return string(quoted)
}
