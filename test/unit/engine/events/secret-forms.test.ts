import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { expect } from "chai";
import { cpuClock } from "#support/cpu.ts";
import fc from "#support/properties.ts";
import { FormMask } from "#engine/events/find-forms.ts";
import { createRedactor } from "#engine/events/redact.ts";

const signs = Array.from("aZ7'\"\\/+&<>%$`! \n\t=~#{*;:?-_.,|^()[]@ü€ß😀\x1b\r");
const secretText = fc
  .array(fc.constantFrom(...signs), { minLength: 9, maxLength: 30 })
  .map((parts) => `k${parts.join("")}9`);

/** Key-like text of this length, the same for the same name. */
function digits(name: string, length: number): string {
  let text = "";
  while (text.length < length)
    text += createHash("sha512")
      .update(name + text.length)
      .digest("base64url");
  return text.slice(0, length);
}

/** The redacted output of a step whose output arrives in these pieces. */
function shown(secrets: readonly string[], pieces: readonly string[]): string {
  const redactor = createRedactor(secrets);
  const events = pieces.flatMap((text) =>
    redactor.pass({ type: "step.output", node: "n1", step: "a/b", stream: "out", text }),
  );
  return [...events, ...redactor.flush()].map((event) => ("text" in event ? event.text : "")).join("");
}

/** Each tool's encodings of a text t (or $s), and a command that prints every text in every encoding, each followed by NUL. */
const tools: readonly (readonly [
  tool: string,
  forms: readonly string[],
  program: (forms: readonly string[]) => readonly string[],
])[] = [
  [
    "jq",
    ["@uri", "@html", "@sh", "@json", "@base64", "[.] | @csv", "tojson | tojson"],
    (forms) => ["jq", "-j", forms.map((form) => `(.[] | (${form}) + "\\u0000")`).join(", ")],
  ],
  [
    "python3",
    [
      "json.dumps(t)",
      "json.dumps(json.dumps(t))",
      "json.dumps(t, ensure_ascii=False)",
      "repr(t)",
      "ascii(t)",
      "repr(t.encode())",
      "shlex.quote(t)",
      "html.escape(t)",
      "html.escape(t, quote=False)",
      "html.escape(t).encode('ascii', 'xmlcharrefreplace').decode()",
      "xml.sax.saxutils.quoteattr(t)",
      "urllib.parse.quote(t)",
      "urllib.parse.quote(t, safe='')",
      "urllib.parse.quote_plus(t)",
      "urllib.parse.quote(urllib.parse.quote(t))",
      "re.sub('%..', lambda m: m.group().lower(), urllib.parse.quote(t))",
      "base64.b64encode(t.encode()).decode()",
      "base64.urlsafe_b64encode(('user:' + t).encode()).decode()",
      "base64.encodebytes(('x' * 70 + t).encode()).decode()[92:]",
      "t.encode().hex()",
      "json.dumps(base64.encodebytes(t.encode()).decode())",
      "json.dumps(shlex.quote(t))",
      String.raw`re.sub(r'\\u....', lambda m: '\\u' + m.group()[2:].upper(), json.dumps(t))`,
    ],
    (forms) => [
      "python3",
      "-c",
      [
        "import sys, re, json, shlex, html, base64, urllib.parse, xml.sax.saxutils",
        "texts = json.load(sys.stdin)",
        ...forms.map((form) => String.raw`for t in texts: sys.stdout.buffer.write((${form}).encode() + b"\0")`),
      ].join("\n"),
    ],
  ],
  [
    "bash",
    [
      `printf %q "$s"`,
      `LC_ALL=C; printf %q "$s"`,
      `printf %s "\${s@Q}"`,
      `printf %s "$s" | base64 -w 11`,
      `printf 'user: %s' "$s" | base64 -w 16 | sed 's/^/    /'`,
      `printf 'k=%s\\n' "$s" | base64 -w 76`,
      `printf %s "$s" | xxd -p -c 7`,
      `printf %s "$s" | openssl base64`,
    ],
    (forms) => [
      "bash",
      "-c",
      `export LC_ALL=C.UTF-8; mapfile -d '' -t all; ${forms.map((form) => `for s in "\${all[@]}"; do (${form}); printf '\\0'; done`).join("\n")}`,
    ],
  ],
];

describe("the redactor masks a secret", () => {
  const texts = fc.sample(secretText, 25);
  const redactors = texts.map((text) => createRedactor([text]));

  for (const [tool, forms, program] of tools)
    it(`encoded by ${tool}`, function () {
      const [command = "", ...args] = program(forms);
      const input = tool === "bash" ? texts.map((text) => `${text}\0`).join("") : JSON.stringify(texts);
      const { stdout, status, error } = spawnSync(command, args, { input, encoding: "utf8" });
      if (error !== undefined) return this.skip();
      expect(status).to.equal(0);
      const printed = stdout.split("\0").slice(0, -1);
      expect(printed).to.have.lengthOf(texts.length * forms.length);
      for (const [place, form] of printed.entries()) {
        const text = texts[place % texts.length] ?? "";
        const masked = redactors[place % texts.length]?.text(`see ${form} end`) ?? "";
        // Quotes may stay, and base64 characters that hold other bytes beside the secret.
        const left = masked
          .replace("***", "")
          .slice("see ".length, -" end".length)
          .replaceAll(/user: |\s/g, "");
        const what = `${forms[Math.floor(place / texts.length)]} of ${JSON.stringify(text)}: ${masked}`;
        expect(left.length, what).to.be.at.most(/^dXNl|\n/.test(form) ? 14 : 8);
      }
    });

  it("in base64 with line breaks, split at any place between two outputs", () => {
    const secret = "correct horse battery staple, and then some";
    const wrapped = Buffer.from(`password: ${secret}\n`).toString("base64").replaceAll(/.{20}/g, "$&\n");
    const sure = Buffer.from(secret).toString("base64").slice(4, 24);
    for (let cut = 0; cut < wrapped.length; cut++) {
      const left = shown([secret], [wrapped.slice(0, cut), `${wrapped.slice(cut)}\nend\n`]).replaceAll("\n", "");
      expect(left, `cut at ${cut}`).to.contain("***").and.not.contain(sure);
      expect(left.length, `cut at ${cut}: ${left}`).to.be.lessThan(30);
    }
  });

  for (const [what, length, wrap, piece] of [
    ["lines", 6000, /.{76}/g, 77],
    ["pieces of 4,096 characters", 9000, /.{76}/g, 4096],
    ["pieces of 8,192 characters", 9000, /.{64}/g, 8192],
    ["short lines", 600, /.{11}/g, 12],
    ["single characters", 600, /.{20}/g, 1],
  ] as const)
    it(`in base64 with line breaks, output as ${what}`, () => {
      const secret = digits("long", length);
      const encoded = Buffer.from(`password: ${secret}\n`).toString("base64");
      for (const end of ["\n", "\r\n", "\\n", "\\r\\n", "\n    "]) {
        const wrapped = `${encoded.replaceAll(wrap, `$&${end}`)}${end}end`;
        const pieces = wrapped.match(new RegExp(`[^]{1,${piece}}`, "g")) ?? [];
        const left = shown([secret], pieces).replaceAll(end, "");
        expect(left.length, `${JSON.stringify(end)}: ${left.slice(0, 200)}`).to.be.lessThan(26);
      }
    });

  it("of 300,000 characters in time proportional to the output", () => {
    const secret = digits("long", 300_000);
    const lines =
      Buffer.from(secret)
        .toString("base64")
        .match(/.{1,76}/g) ?? [];
    const used = cpuClock();
    const left = shown(
      [secret],
      lines.map((line) => `${line}\n`),
    );
    expect(left.length).to.be.lessThan(10);
    expect(used()).to.be.lessThan(3000);
  });

  it("among 20,000 with one common prefix, in time proportional to their number", () => {
    const mask = new FormMask();
    const keys = Array.from({ length: 20_000 }, (_, key) => `-----BEGIN PRIVATE KEY-----\nMIIE${digits(`${key}`, 80)}`);
    const used = cpuClock();
    for (const key of keys) mask.add([key], []);
    expect(mask.mask(`${"-".repeat(100_000)}\n${keys[7]}\n`, "***")).to.equal(`${"-".repeat(100_000)}\n***\n`);
    expect(used()).to.be.lessThan(2000);
  });

  it("of one repeated character within a longer run of the character", () => {
    const same = "a".repeat(20_000);
    const used = cpuClock();
    expect(shown([`${same}z`], ["a".repeat(100_000), `z ${same}`])).to.equal(`${same.repeat(4)}*** ${same}`);
    expect(used()).to.be.lessThan(2000);
  });

  it("that overlaps another, whole and split at any two places", () => {
    for (const [secrets, text, left] of [
      [["abcdefgh", "efghijkl"], "abcdefghijkl", "***"],
      [["abcdefgh", "efghijkl"], "abcdefghijkl abcdefghefghijkl", "*** ******"],
      [["abcdefgh-and-more", "cdef"], "abcdefgh-and-more, abcdefgh", "***, ab***gh"],
      [["aXa1aXa"], "aXa1aXa1aXa1", "***1"],
    ] as const) {
      expect(createRedactor(secrets).text(text)).to.equal(left);
      for (let cut = 1; cut < text.length; cut++)
        for (let next = cut; next < text.length; next++)
          expect(shown(secrets, [text.slice(0, cut), text.slice(cut, next), text.slice(next)])).to.equal(left);
    }
  });

  it("alike wherever the output is split and however secrets overlap", () => {
    const text = fc.array(fc.constantFrom("a", "b", "é", " "), { maxLength: 8 }).map((parts) => parts.join(""));
    const secret = fc
      .array(fc.constantFrom("a", "b", "é"), { minLength: 4, maxLength: 9 })
      .map((parts) => parts.join(""));
    fc.assert(
      fc.property(fc.array(secret, { maxLength: 4 }), fc.array(text, { maxLength: 8 }), (secrets, pieces) => {
        expect(shown(secrets, pieces)).to.equal(createRedactor(secrets).text(pieces.join("")));
      }),
      { numRuns: 300 },
    );
  });

  it("and leaves other text unchanged", () => {
    const redactor = createRedactor(["s3cret/pass+word"]);
    for (const text of ["a\nb", "x\\ny", "AAAA\nBBBB\n", "", "\n\n", "  indented\n  lines\n"])
      expect(redactor.text(text)).to.equal(text);
  });
});
