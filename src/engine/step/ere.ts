import { withinCpuTime } from "./within-cpu-time.ts";

/** Characters that a back slash makes literal both in an ERE and in JavaScript; \< or \w are GNU extensions. */
const plainBehindSlash = String.raw`.[]()*+?{}|^$\/-"`;

const classes: Readonly<Record<string, string>> = {
  alnum: "A-Za-z0-9",
  alpha: "A-Za-z",
  blank: String.raw` \t`,
  digit: "0-9",
  lower: "a-z",
  punct: String.raw`!-\/:-@\[-\`{-~`,
  space: String.raw` \t\n\v\f\r`,
  upper: "A-Z",
  xdigit: "0-9A-Fa-f",
};

/**
 * Whether a POSIX extended regular expression (XBD 9.4), as `grep -E` reads it, matches a part of a line. Undefined for
 * patterns that POSIX leaves open, GNU's extensions, bytes beyond ASCII, and a search that takes longer than a second.
 */
export function ereFinds(pattern: string, line: string): boolean | undefined {
  const source = isAscii(pattern) && isAscii(line) ? translate(pattern) : undefined;
  if (source === undefined) return undefined;
  try {
    return withinCpuTime(() => new RegExp(source).test(line))?.value;
  } catch {
    return undefined;
  }
}

function isAscii(text: string): boolean {
  return /^[\t -~]*$/.test(text);
}

function translate(pattern: string): string | undefined {
  let made = "";
  for (let at = 0; at < pattern.length;) {
    const rest = pattern.slice(at);
    const piece = rest.startsWith("[") ? bracket(rest) : plain(rest);
    if (piece === undefined) return undefined;
    made += piece.made;
    at += piece.length;
  }
  return made;
}

interface RegexPiece {
  readonly made: string;
  readonly length: number;
}

function plain(rest: string): RegexPiece | undefined {
  if (rest.startsWith("\\"))
    return rest.length > 1 && plainBehindSlash.includes(rest.charAt(1))
      ? { made: rest.slice(0, 2), length: 2 }
      : undefined;
  const interval = /^\{\d+(,\d*)?\}/.exec(rest)?.[0];
  if (interval !== undefined) return { made: interval, length: interval.length };
  if (rest.startsWith("{") || rest.startsWith("(?") || /^[*+?][*+?]/.test(rest)) return undefined;
  return { made: rest.charAt(0), length: 1 };
}

/** In brackets a back slash is literal, and so is a `]` at the start. */
function bracket(rest: string): RegexPiece | undefined {
  const [whole, not = "", inner = ""] = /^\[(\^?)(\]?(?:\[:[a-z]+:\]|[^\]])*)\]/.exec(rest) ?? [];
  if (whole === undefined || /\[[.=]/.test(inner)) return undefined;
  let isKnown = true;
  const made = inner.replaceAll(/\[:([a-z]+):\]|[\\[\]^]/g, (found, name: string | undefined) => {
    if (name === undefined) return `\\${found}`;
    isKnown &&= name in classes;
    return classes[name] ?? "";
  });
  return isKnown ? { made: `[${not}${made}]`, length: whole.length } : undefined;
}
