import type { SourcePosition } from "#errors/problem.ts";
import type { SourceNode, SourceScalar } from "#engine/yaml/node.ts";

/** The place of the longest argument whose value a failure's text `said` names as a whole word; else of the first argument. */
export function argumentPlace(args: SourceNode, said: string): SourcePosition | undefined {
  const all = scalarsIn(args);
  const named = all
    .filter(({ value }) => isNamed(String(value), said))
    .sort((a, b) => String(b.value).length - String(a.value).length);
  const found = named[0] ?? all[0];
  return found && placeOf(found);
}

/** The place of a value; for a block scalar, its first line of text instead of the indicator after the key. */
function placeOf({ file, start, source, style, at }: SourceScalar): SourcePosition {
  const line = style === "block" ? /\n\s*(?<text>\S.*)/.exec(source) : null;
  const text = line?.groups?.["text"]?.trimEnd();
  if (!line || text === undefined) return at;
  return file.position(start + line.index + line[0].indexOf(text), text.length);
}

function scalarsIn(node: SourceNode): readonly SourceScalar[] {
  if (node.kind === "scalar") return node.value === null ? [] : [node];
  const inner = node.kind === "list" ? node.items : [...node.entries.values()].map(({ value }) => value);
  return inner.flatMap(scalarsIn);
}

function isNamed(value: string, said: string): boolean {
  // Any text contains values of one or two characters by chance.
  if (value.length < 3) return false;
  for (let at = said.indexOf(value); at >= 0; at = said.indexOf(value, at + 1))
    if (!/[\w-]/.test(said.charAt(at - 1)) && !/[\w-]/.test(said.charAt(at + value.length))) return true;
  return false;
}
