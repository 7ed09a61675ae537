import { expect } from "chai";
import { Budget } from "#tui/html/details.ts";
import { html, Html } from "#tui/html/html.ts";

describe("HTML templates", () => {
  it("escape every value, for elements and attributes alike (S-4)", () => {
    const hostile = `</script><img src=x onerror="alert('1')">&`;
    expect(html`<p title="${hostile}">${hostile}</p>`.source).to.equal(
      `<p title="&lt;/script&gt;&lt;img src=x onerror=&quot;alert(&#39;1&#39;)&quot;&gt;&amp;">&lt;/script&gt;&lt;img src=x onerror=&quot;alert(&#39;1&#39;)&quot;&gt;&amp;</p>`,
    );
  });

  it("write out control characters and marks that turn the writing direction (S-4)", () =>
    expect(html`${"a\u0000b\u202ec\u200fd\u2066e"}`.source).to.equal("a\\x00b\\u202ec\\u200fd\\u2066e"));

  it("drop terminal sequences", () => expect(html`${"\u001b[31mred\u001b[0m"}`.source).to.equal("red"));

  it("take other pieces as they are, and lists of them", () =>
    expect(html`<b>${[html`<i>1</i>`, new Html("<i>2</i>")]}</b>`.source).to.equal("<b><i>1</i><i>2</i></b>"));

  it("show nothing for undefined and false, but zero", () =>
    expect(html`[${undefined}${false}${0}]`.source).to.equal("[0]"));

  it("lose their own indentation, and no value loses its", () =>
    expect(
      html`<p>
        <b>${"a\n    b"}</b>
      </p>`.source,
    ).to.equal("<p>\n<b>a\n    b</b>\n</p>"));
});

describe("The budget of a page", () => {
  it("gives texts whole while there is room", () => {
    const budget = new Budget(1000);
    expect([budget.end("x".repeat(300)), budget.start("abc")]).to.deep.equal(["x".repeat(300), "abc"]);
  });

  it("cuts the one that does not fit: its end stays of output, its start of a diff", () => {
    const text = `${"a".repeat(500)}${"b".repeat(500)}`;
    expect(new Budget(500).end(text)).to.equal("b".repeat(500));
    expect(new Budget(500).start(text)).to.equal("a".repeat(500));
  });

  it("gives nothing when hardly anything is left", () =>
    expect(new Budget(100).end("x".repeat(200))).to.equal(undefined));
});
