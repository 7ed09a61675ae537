import { blobOf, asSensitive, type Blob } from "../blob.ts";
import type { StepContext } from "../define.ts";
import { Secret } from "../secret.ts";

/** A module's arguments for a file's content: one of content, template, source and base64. */
export interface ContentArgs {
  readonly content?: string | Secret | undefined;
  readonly template?: string | undefined;
  readonly vars?: Readonly<Record<string, unknown>> | undefined;
  readonly source?: string | undefined;
  readonly base64?: string | Secret | undefined;
  readonly sensitive: boolean;
}

/** The wanted bytes; `text` is set if a diff may show it: not of `source`, not sensitive, without NUL, at most 64 KiB. */
export function contentOf(
  given: ContentArgs,
  context: StepContext,
): { readonly blob: Blob; readonly text?: string; readonly sensitive: boolean } {
  const sensitive =
    given.sensitive ||
    context.sensitive === true ||
    [given.content, given.base64].some((value) => value instanceof Secret);
  if (given.source !== undefined) {
    const blob = context.readFile(given.source);
    return { blob: sensitive ? asSensitive(blob) : blob, sensitive };
  }
  const bytes = givenBytes(given, context);
  const blob = blobOf(bytes, { sensitive });
  const isText = bytes.length <= 65_536 && !bytes.includes(0);
  return sensitive || !isText ? { blob, sensitive } : { blob, sensitive, text: bytes.toString("utf8") };
}

/** The bytes of the arguments `content`, `template` or `base64`. */
export function givenBytes({ content, template, vars, base64 }: ContentArgs, context: StepContext): Buffer {
  if (template !== undefined) return Buffer.from(context.renderTemplate(template, vars));
  if (base64 !== undefined) return Buffer.from(reveal(base64), "base64");
  return Buffer.from(reveal(content ?? ""));
}

/** The plain text of a value that may be secret, for a content that the bastion composes. */
export function reveal(text: string | Secret): string {
  return text instanceof Secret ? text.reveal() : text;
}
