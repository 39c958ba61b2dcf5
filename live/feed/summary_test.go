package feed

import (
	"strings"
	"testing"
)

// TestSummary: of what an item says its text is kept, from its beginning.
func TestSummary(t *testing.T) {
	long := strings.Repeat("wörter ", 200)
	for _, tt := range []struct{ markup, want string }{
		{"", ""},
		{"plain, <3 & so on", "plain, <3 & so on"},
		{"<p>One.</p><p>T<b>w</b>o &amp; &uuml;<br>three</p>", "One. Two & ü three"},
		{"<style>p { color: red }</style>a<script>alert(1 < 2)</script>b<!-- c --><img alt=x>d", "ab d"},
		{"<p>never ended", "never ended"},
		{long, long[:len("wörter ")*71] + "wö…"},
	} {
		if got := Summary(tt.markup); got != tt.want {
			t.Errorf("%.50q: %q, want %q", tt.markup, got, tt.want)
		}
	}
	if n := len([]rune(Summary(long))); n > maxSummary {
		t.Errorf("%d characters", n)
	}
	for _, tt := range []struct{ format, text string }{
		{"RSS", `<rss><channel><item><guid>1</guid>` +
			`<description>&lt;p&gt;What it says.&lt;/p&gt;</description></item></channel></rss>`},
		{"RSS, the text alone", `<rss xmlns:content="http://purl.org/rss/1.0/modules/content/"><channel>` +
			`<item><guid>1</guid><content:encoded><![CDATA[<p>What it says.</p>]]></content:encoded></item>` +
			`</channel></rss>`},
		{"RSS, with a picture", `<rss xmlns:content="http://purl.org/rss/1.0/modules/content/"><channel>` +
			`<item><guid>1</guid><description>&lt;img src="a.png"/&gt;</description>` +
			`<content:encoded>What it says.</content:encoded></item></channel></rss>`},
		{"Atom", `<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>1</id>` +
			`<summary type="html">&lt;i&gt;What it says.&lt;/i&gt;</summary></entry></feed>`},
		{"JSON", `{"version":"https://jsonfeed.org/version/1.1",` +
			`"items":[{"id":"1","summary":"What it says."}]}`},
	} {
		t.Run(tt.format, func(t *testing.T) {
			f, err := Parse([]byte(tt.text), "", at)
			if err != nil || len(f.Items) != 1 || f.Items[0].Summary != "What it says." {
				t.Errorf("%+v, %v; want one item that says \"What it says.\"", f, err)
			}
		})
	}
}
