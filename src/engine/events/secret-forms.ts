/** Shorter values are not masked: their masks would hit half of every text and protect nothing. */
const SHORTEST_VALUE = 4;
/** Fewer base64 characters are not masked: they occur in any text. Only characters that the value alone decides count. */
const SHORTEST_BASE64 = 6;

type Encode = (text: string) => string;

/** Spellings of a secret: `plain` spellings match as they are, `wrapped` spellings also with line breaks at any place. */
export interface SecretForms {
  readonly plain: readonly string[];
  readonly wrapped: readonly string[];
}

/** The forms in which the usual tools print a value. Each long line of a value (a PEM key) has forms of its own. */
export function formsOf(value: string): SecretForms {
  const [plain, wrapped] = [new Set<string>(), new Set<string>()];
  for (const text of withLines(value).filter(({ length }) => length >= SHORTEST_VALUE)) {
    // A JSON log quotes the output of another tool, which may be JSON itself.
    for (const form of encodedForms(text))
      for (const one of [form, json(form), json(json(form)), inAscii(form), json(inAscii(form))]) plain.add(one);
    for (const form of inDigits(text)) wrapped.add(form);
  }
  return { plain: [...new Set([...plain, ...wrapped])], wrapped: [...wrapped] };
}

function withLines(value: string): string[] {
  const lines = value.includes("\n") ? value.split("\n") : [];
  return [value, ...lines.filter((line) => line.length >= 16 && !line.startsWith("-----"))];
}

const json: Encode = (text) => JSON.stringify(text).slice(1, -1);
const replacing =
  (pattern: RegExp, encode: Encode): Encode =>
  (text) =>
    text.replaceAll(pattern, encode);
const inTurn =
  (...encoders: readonly Encode[]): Encode =>
  (text) =>
    encoders.reduce((encoded, encode) => encode(encoded), text);
const backslashed = (pattern: RegExp): Encode => replacing(pattern, (char) => `\\${char}`);

/** Bytes in hexadecimal after a sign: `%c3%bc` of URIs, `=C3=BC` of quoted-printable, `\xc3\xbc` of Python. */
const inBytes = (pattern: RegExp, sign: string): readonly Encode[] =>
  [false, true].map((upper) =>
    replacing(pattern, (char) => {
      const digits = Buffer.from(char).toString("hex");
      return (upper ? digits.toUpperCase() : digits).replaceAll(/../g, `${sign}$&`);
    }),
  );
/** UTF-16 units as `\u00fc` and as `\u00FC`. */
const inUnits = (pattern: RegExp): readonly Encode[] => {
  const lower = replacing(pattern, (char) =>
    [...Buffer.from(char, "utf16le").swap16().toString("hex").matchAll(/.{4}/g)].map(([unit]) => `\\u${unit}`).join(""),
  );
  return [
    lower,
    inTurn(
      lower,
      replacing(/\\u[0-9a-f]{4}/g, (unit) => `\\u${unit.slice(2).toUpperCase()}`),
    ),
  ];
};
const octal: Encode = (char) => [...Buffer.from(char)].map((byte) => `\\${byte.toString(8).padStart(3, "0")}`).join("");

const NO_ASCII = /[^\0-\x7f]/gu;
// oxlint-disable-next-line no-control-regex -- finding control characters is the purpose
const CONTROL = /[\0-\x1f\x7f]/g;

/** Percent-encodings: encodeURIComponent, jq's @uri, Python's quote without and with its `/`, and of all but letters and digits. */
const uris = [/[^A-Za-z0-9_.!~*'()-]/gu, /[^A-Za-z0-9_.~-]/gu, /[^A-Za-z0-9_.~/-]/gu, /[^A-Za-z0-9]/gu].flatMap(
  (pattern) => inBytes(pattern, "%"),
);

const entities = ["&#39;", "&#x27;", "&#039;", "&apos;", "'"].flatMap((apostrophe) =>
  ["&quot;", "&#34;", '"'].flatMap((quote): Encode[] => {
    const names = new Map([
      ["&", "&amp;"],
      ["<", "&lt;"],
      [">", "&gt;"],
      ['"', quote],
    ]);
    const named = replacing(/[&<>'"]/g, (char) => names.get(char) ?? apostrophe);
    const numbered = (pattern: RegExp): Encode => replacing(pattern, (char) => `&#${char.codePointAt(0)};`);
    return [named, inTurn(named, numbered(NO_ASCII)), inTurn(named, numbered(/[\t\n\r]/g))];
  }),
);

const letters = new Map(["\x07a", "\bb", "\tt", "\nn", "\vv", "\ff", "\rr", "\x1bE"].map((pair) => [pair[0], pair[1]]));
/** `$'…'` of bash. */
const ansi = inTurn(
  backslashed(/[\\']/g),
  replacing(CONTROL, (char) => (letters.has(char) ? `\\${letters.get(char)}` : octal(char))),
);
/** Python's repr, in double and in single quotes. */
const reprs = [/\\/g, /[\\']/g].map((quotes) =>
  inTurn(
    backslashed(quotes),
    replacing(CONTROL, (char) => (/[\t\n\r]/.test(char) ? json(char) : `\\x${Buffer.from(char).toString("hex")}`)),
  ),
);
const pythonAscii = replacing(NO_ASCII, (char) => {
  const code = (char.codePointAt(0) ?? 0).toString(16);
  return code.length < 3
    ? `\\x${code}`
    : code.length < 5
      ? `\\u${code.padStart(4, "0")}`
      : `\\U${code.padStart(8, "0")}`;
});

/** Quoted words: single and double quotes, doubled quotes of SQL, YAML and CSV, bash's printf %q, also in the C locale. */
const shells: readonly Encode[] = [
  ...[String.raw`'\''`, `'"'"'`, "''"].map((quote) => replacing(/'/g, () => quote)),
  replacing(/"/g, () => '""'),
  ...[/[\\']/g, /[\\"$`]/g, /[\\"$`!]/g, /[^A-Za-z0-9_@%+=:,./-]/gu].map((pattern) => backslashed(pattern)),
  backslashed(/[\s!"$&'()*,;<>?[\\\]^`{|}]|^[#~]|(?<=[:=])~/g),
  ansi,
  inTurn(ansi, replacing(NO_ASCII, octal)),
];

/** JSON with escapes for all but ASCII, for HTML's special characters, or for both. */
const [inAscii, ...jsons] = [NO_ASCII, /[^\0-\x7f]|[<>&]/gu, /[<>&]/g, /[^\0-\x7f]|[<>&'+]/gu].flatMap((pattern) =>
  inUnits(pattern).map((encode) => inTurn(json, encode)),
) as [Encode, ...Encode[]];

/** Encoders, each group with the characters that it changes: most secrets need none, and a run may know thousands of secrets. */
const encodings: readonly (readonly [changes: RegExp, encoders: readonly Encode[]])[] = [
  [
    /[^A-Za-z0-9]/,
    [
      ...uris.flatMap((encode) => [
        encode,
        inTurn(
          encode,
          replacing(/%20/g, () => "+"),
        ),
        inTurn(
          encode,
          replacing(/%/g, () => "%25"),
        ),
      ]),
      ...jsons.flatMap((encode) => [encode, inTurn(encode, backslashed(/\//g))]),
      inTurn(json, backslashed(/\//g)),
      ...inBytes(/[^\t -<>-~]/gu, "="),
    ],
  ],
  [/[&<>'"\t\n\r]|[^\0-\x7f]/, entities],
  [
    /[^A-Za-z0-9_@%+=:,./-]/,
    [
      ...shells,
      ...reprs.flatMap((repr) =>
        [(text: string) => text, pythonAscii, ...inBytes(NO_ASCII, "\\x")].map((encode) => inTurn(repr, encode)),
      ),
    ],
  ],
];

function encodedForms(text: string): Set<string> {
  const used = encodings.flatMap(([changes, encoders]) => (changes.test(text) ? encoders : []));
  return new Set([text, ...used.map((encode) => encode(text.toWellFormed()))]);
}

/** Hexadecimal, and base64 at each of the three offsets in a longer text, without characters that the neighbouring bytes decide. */
function inDigits(text: string): string[] {
  const bytes = Buffer.from(text);
  const sure = [0, 1, 2].flatMap((lead) => {
    const encoded = Buffer.concat([Buffer.alloc(lead), bytes])
      .toString("base64")
      .replace(/=+$/, "");
    const form = encoded.slice(Math.ceil((lead * 4) / 3), Math.floor(((lead + bytes.length) * 8) / 6));
    return form.length >= SHORTEST_BASE64 ? [form, form.replaceAll("+", "-").replaceAll("/", "_")] : [];
  });
  return [...sure, bytes.toString("hex"), bytes.toString("hex").toUpperCase()];
}
