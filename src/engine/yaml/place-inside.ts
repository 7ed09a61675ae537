import type { SourcePosition } from "#errors/problem.ts";
import type { SourceScalar } from "./node.ts";

/**
 * The place in the file of a character inside a scalar's value. Exact for single-line scalars and literal blocks;
 * in folded text exact within the expression's first line. Anchored at the expression's `{{`, which no YAML style
 * changes, so escapes and folding before it do not matter.
 */
export function placeInside(scalar: SourceScalar, inner: number, length = 1): SourcePosition {
  const value = String(scalar.value);
  const anchor = value.lastIndexOf("{{", inner);
  if (anchor === -1) return scalar.at;
  const source = scalar.source;
  let at = -2;
  for (let seen = 0, from = 0; from !== -1 && from <= anchor; seen++) {
    const next = value.indexOf("{{", from);
    if (next === -1 || next > anchor) break;
    at = source.indexOf("{{", at + 2);
    if (at === -1) return scalar.at;
    from = next + 2;
  }
  if (at < 0) return scalar.at;
  return scalar.file.position(scalar.start + walk(scalar, at, value.slice(anchor, inner)), length);
}

/** Goes on from `at` in the source by as much as `text` takes there. */
function walk(scalar: SourceScalar, at: number, text: string): number {
  const { source, style } = scalar;
  for (const character of text) {
    if (style === "double" && source[at] === "\\") at += escapeLength(source, at);
    else if (style === "single" && character === "'") at += 2;
    else if (/\s/.test(character) && /[\r\n]/.test(source[at] ?? ""))
      at += /^\s+/.exec(source.slice(at))?.[0].length ?? 1;
    else at += character.length;
  }
  return at;
}

/** YAML 1.2.2, 5.7: how many characters an escape takes. */
function escapeLength(source: string, at: number): number {
  return { x: 4, u: 6, U: 10 }[source[at + 1] ?? ""] ?? 2;
}
