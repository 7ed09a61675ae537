import { Composer, Document, isScalar, visit, type CST } from "yaml";
import { escapeControls, visible } from "#errors/draw.ts";
import { KcoreError } from "#errors/problem.ts";
import { SourceFile } from "./file.ts";
import { plainOf } from "./node.ts";
import { parseSource } from "./parse.ts";
import { decodeSource, tokenize } from "./scan.ts";

/** The value of a text of YAML 1.2 that needs no places: a daemon's configuration, `~/.kcore/config`. @throws as {@link parseSource} */
export function parsePlainYaml(text: string): unknown {
  return plainOf(parseSource("the YAML text", text));
}

/** All keys that a lenient reader of YAML or JSON might find in a text; rather too many than too few. */
export function keysIn(text: string): readonly string[] {
  const words = [...text.matchAll(/[\w-]+(?=["']?\s*:)/g)].map(([word]) => word);
  const tokens = tokensOf(text);
  if (tokens === undefined) return words;
  const composer = new Composer({ version: "1.1", uniqueKeys: false, strict: false });
  return [...composer.compose(tokens, true, text.length)].flatMap((document) => {
    const keys = document.errors.length > 0 ? [...words] : [];
    visit(document, { Pair: (_, { key }) => void (isScalar(key) && keys.push(String(key.value))) });
    return keys;
  });
}

/** Undefined for a text that is too large or too deep to be parsed. */
function tokensOf(text: string): CST.Token[] | undefined {
  try {
    return tokenize(new SourceFile("", decodeSource("", text)));
  } catch (error) {
    if (error instanceof KcoreError) return undefined;
    throw error;
  }
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
