import { Document, isScalar, parseAllDocuments, parseDocument, visit } from "yaml";
import { escapeControls, visible } from "#errors/draw.ts";
import { KcoreError } from "#errors/problem.ts";

const largest = 1024 * 1024;
const deepest = 64;

/**
 * The value of one small YAML 1.2 document that needs no source positions: a daemon's configuration, `~/.kcore/config`.
 * Strict: at most 1 MiB, 64 levels, 50 uses of aliases; unknown tags and duplicate keys are errors (S-18).
 * @throws KcoreError YAML_SYNTAX, YAML_UNSUPPORTED, FILE_TOO_LARGE
 */
export function parsePlainYaml(text: string, file = "the YAML text"): unknown {
  if (Buffer.byteLength(text) > largest) {
    throw new KcoreError({ code: "FILE_TOO_LARGE", message: `${file} is larger than 1 MiB` });
  }
  if (isDeep(text)) {
    throw new KcoreError({ code: "YAML_UNSUPPORTED", message: `${file} is nested deeper than ${deepest} levels` });
  }
  const document = parseDocument(text, {
    version: "1.2",
    schema: "core",
    strict: true,
    uniqueKeys: true,
    prettyErrors: true,
  });
  // An unknown tag is only a warning to the library; here it is something we would read wrongly.
  const problems = [...document.errors, ...document.warnings].map((error) => ({
    code: "YAML_SYNTAX" as const,
    message: `${file}: ${error.message.split("\n")[0] ?? ""}`,
  }));
  if (problems.length > 0) throw new KcoreError(problems);
  try {
    return document.toJS({ maxAliasCount: 50 }) as unknown;
  } catch (error) {
    throw new KcoreError(
      { code: "YAML_UNSUPPORTED", message: `${file} uses more aliases than kcore expands` },
      { cause: error },
    );
  }
}

/** All keys in a text of YAML or JSON, in doubt more than there are: a lenient reader might find any of them. */
export function keysIn(text: string): readonly string[] {
  const words = (): string[] => [...text.matchAll(/[\w-]+(?=["']?\s*:)/g)].map(([word]) => word);
  if (text.length > largest || isDeep(text)) return words();
  const keys: string[] = [];
  for (const document of parseAllDocuments(text, { version: "1.1", uniqueKeys: false, strict: false }))
    if ("errors" in document) {
      if (document.errors.length > 0) keys.push(...words());
      visit(document, { Pair: (_, { key }) => void (isScalar(key) && keys.push(String(key.value))) });
    }
  return keys;
}

/** A value as a YAML 1.2 document, without characters that drive a terminal (S-4) or workflow commands of GitHub's runner. */
export function printYaml(value: unknown): string {
  const document = new Document(value, { version: "1.2" });
  visit(document, {
    Scalar(_, node) {
      if (typeof node.value !== "string") return;
      if (visible(node.value) !== node.value || /##\[|^\s*::/m.test(node.value)) node.type = "QUOTE_DOUBLE";
    },
  });
  return escapeControls(document.toString({ lineWidth: 0, doubleQuotedMinMultiLineLength: Infinity }));
}

/** Bounds the nesting before the parser recurses: by brackets for flow style, by indentation for block style. */
function isDeep(text: string): boolean {
  let depth = 0;
  for (const character of text) {
    if (character === "[" || character === "{") depth++;
    else if (character === "]" || character === "}") depth--;
    if (depth > deepest) return true;
  }
  return text.split("\n").some((line) => blockDepth(line) > deepest);
}

/** Levels that a single line can open at most: its indentation, and “- ” or “? ” repeated on it. */
function blockDepth(line: string): number {
  const indent = /^ */.exec(line)?.[0].length ?? 0;
  const markers = /^ *((?:[-?] +)*)/.exec(line)?.[1]?.match(/[-?]/g)?.length ?? 0;
  return indent > 2 * deepest ? indent : markers;
}
