import { expect } from "chai";
import { Budget } from "#tui/html/details.ts";
import { html, Html } from "#tui/html/html.ts";

describe("HTML templates", () => {
  it("S-4: escape every value in elements and attributes", () => {
    const hostile = `</script><img src=x onerror="alert('1')">&`;
    expect(html`<p title="${hostile}">${hostile}</p>`.source).to.equal(
      `<p title="&lt;/script&gt;&lt;img src=x onerror=&quot;alert(&#39;1&#39;)&quot;&gt;&amp;">&lt;/script&gt;&lt;img src=x onerror=&quot;alert(&#39;1&#39;)&quot;&gt;&amp;</p>`,
    );
  });

  it("S-4: show control characters and bidirectional marks as escapes", () =>
    expect(html`${"a\u0000b\u202ec\u200fd\u2066e"}`.source).to.equal("a\\x00b\\u202ec\\u200fd\\u2066e"));

  it("drop terminal sequences", () => expect(html`${"\u001b[31mred\u001b[0m"}`.source).to.equal("red"));

  it("include other templates and lists of them unescaped", () =>
    expect(html`<b>${[html`<i>1</i>`, new Html("<i>2</i>")]}</b>`.source).to.equal("<b><i>1</i><i>2</i></b>"));

  it("show nothing for undefined and false, but show zero", () =>
    expect(html`[${undefined}${false}${0}]`.source).to.equal("[0]"));

  it("lose their own indentation, but not that of values", () =>
    expect(
      html`<p>
        <b>${"a\n    b"}</b>
      </p>`.source,
    ).to.equal("<p>\n<b>a\n    b</b>\n</p>"));
});

describe("The budget of a page", () => {
  it("allows whole texts while there is room", () => {
    const budget = new Budget(1000);
    expect([budget.end("x".repeat(300)), budget.start("abc")]).to.deep.equal(["x".repeat(300), "abc"]);
  });

  it("truncates a text that does not fit: to the end of output, or the start of a diff", () => {
    const text = `${"a".repeat(500)}${"b".repeat(500)}`;
    expect(new Budget(500).end(text)).to.equal("b".repeat(500));
    expect(new Budget(500).start(text)).to.equal("a".repeat(500));
  });

  it("allows no text with little room left", () => expect(new Budget(100).end("x".repeat(200))).to.equal(undefined));
});
