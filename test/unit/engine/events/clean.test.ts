import { expect } from "chai";
import { cleanStrings, cleanText } from "#engine/events/clean.ts";

describe("cleanText", () => {
  it("removes terminal escape sequences (S-4)", () =>
    expect(
      cleanText(
        "\u001b[31mred\u001b[0m \u001b]0;title\u0007x\u001b]8;;http://evil\u001b\\link \u001bPq#0\u001b\\y \u009b2Jz",
      ),
    ).to.equal("red xlink y z"));

  it("takes time proportional to the text's length, also for unfinished sequences and deep values", () => {
    const began = process.threadCpuUsage().user;
    cleanText("\u009d".repeat(200_000));
    cleanText("\u001b]".repeat(100_000));
    let deep: unknown = "\u001b";
    for (let level = 0; level < 40; level++) deep = { deep };
    cleanStrings(deep);
    expect(process.threadCpuUsage().user - began).to.be.lessThan(2_000_000);
  });

  it("writes other control and bidirectional characters as escapes (S-4, F-11)", () => {
    expect(cleanText("a\u0000b\u0008c\u001b")).to.equal("a\\x00b\\x08c\\x1b");
    expect(cleanText("right \u202eleft")).to.equal("right \\u202eleft");
    expect(cleanText("right \u2067left")).to.equal("right \\u2067left");
  });

  it("keeps tabs and line breaks, and turns carriage returns into line breaks", () =>
    expect(cleanText("a\tb\r\nc\rd\n")).to.equal("a\tb\nc\nd\n"));

  it("cleanStrings cleans all strings and keys of a value, and returns a clean value itself (S-4)", () => {
    const clean = { a: ["b", { c: 1 }] };
    expect(cleanStrings(clean)).to.equal(clean);
    expect(cleanStrings({ "\u001b[1mk": ["\u001b[2Jv"], n: null })).to.deep.equal({ k: ["v"], n: null });
    const odd = JSON.parse('{"__proto__":{"x":"\\u001b[1my"}}') as object;
    expect(JSON.stringify(cleanStrings(odd))).to.equal('{"__proto__":{"x":"y"}}');
  });
});
