import { spawnSync } from "node:child_process";
import { expect } from "chai";
import fc from "#support/properties.ts";
import { createRedactor } from "#engine/events/redact.ts";

const signs = Array.from("aZ7'\"\\/+&<>%$`! \n\t=~#{*;:?-_.,|^()[]@ü€ß😀\x1b\r");
const secretText = fc
  .array(fc.constantFrom(...signs), { minLength: 9, maxLength: 30 })
  .map((parts) => `k${parts.join("")}9`);

/** What each tool prints of each of the texts, a NUL behind each form: all forms of a tool by one process. */
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

describe("S10: the redactor knows a secret", () => {
  const texts = fc.sample(secretText, 25);
  const redactors = texts.map((text) => createRedactor([text]));

  for (const [tool, forms, program] of tools)
    it(`as ${tool} prints it`, function () {
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
        // Quotes, and characters of base64 that hold more than the secret alone, may be left.
        const left = masked
          .replace("***", "")
          .slice("see ".length, -" end".length)
          .replaceAll(/user: |\s/g, "");
        const what = `${forms[Math.floor(place / texts.length)]} of ${JSON.stringify(text)}: ${masked}`;
        expect(left.length, what).to.be.at.most(/^dXNl|\n/.test(form) ? 14 : 8);
      }
    });

  it("in base64 with line breaks, cut anywhere between two pieces of output", () => {
    const secret = "correct horse battery staple, and then some";
    const wrapped = Buffer.from(`password: ${secret}\n`).toString("base64").replaceAll(/.{20}/g, "$&\n");
    const sure = Buffer.from(secret).toString("base64").slice(4, 24);
    for (let cut = 0; cut < wrapped.length; cut++) {
      const redactor = createRedactor([secret]);
      const piece = (text: string) =>
        redactor.pass({ type: "step.output", node: "n1", step: "a/b", stream: "out", text });
      const passed = [...piece(wrapped.slice(0, cut)), ...piece(`${wrapped.slice(cut)}\nend\n`), ...redactor.flush()];
      const whole = passed.map((event) => ("text" in event ? event.text : "")).join("");
      const left = whole.replaceAll("\n", "");
      expect(left, `cut at ${cut}`).to.contain("***").and.not.contain(sure);
      expect(left.length, `cut at ${cut}: ${left}`).to.be.lessThan(30);
    }
  });

  it("and leaves all else as it is", () => {
    const redactor = createRedactor(["s3cret/pass+word"]);
    for (const text of ["a\nb", "x\\ny", "AAAA\nBBBB\n", "", "\n\n", "  indented\n  lines\n"])
      expect(redactor.text(text)).to.equal(text);
  });
});
