import { cleanText } from "#engine/events/clean.ts";
import { readFileSync } from "node:fs";
import { createHash } from "node:crypto";

/** Escaped HTML; only {@link html} and the pages' own parts make it. */
export class Html {
  readonly source: string;

  constructor(source: string) {
    this.source = source;
  }
}

/** A value of a template: anything but `Html` is text, and shown as it is. */
export type HtmlValue = Html | string | number | undefined | false | readonly HtmlValue[];

/**
 * A piece of HTML. Every text is escaped, and its control characters are written out (S-4): the text of a node becomes
 * neither an element nor a script. `undefined` and `false` are nothing.
 */
export function html(parts: TemplateStringsArray, ...values: readonly HtmlValue[]): Html {
  const fixed = squeeze(parts);
  const pieces = [fixed[0]];
  for (let index = 0; index < values.length; index += 1) pieces.push(sourceOf(values[index]), fixed[index + 1]);
  return new Html(pieces.join(""));
}

const squeezed = new WeakMap<TemplateStringsArray, readonly string[]>();

/** The template's own text without its indentation, which would be a third of the page. */
function squeeze(parts: TemplateStringsArray): readonly string[] {
  let fixed = squeezed.get(parts);
  if (!fixed) {
    fixed = parts.map((part) => part.replace(/\n\s*/g, "\n"));
    squeezed.set(parts, fixed);
  }
  return fixed;
}

function sourceOf(value: HtmlValue): string {
  if (value === undefined || value === false) return "";
  if (value instanceof Html) return value.source;
  if (typeof value === "object") return value.map(sourceOf).join("");
  return escapeText(typeof value === "number" ? String(value) : cleanText(value));
}

const htmlEntities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

// Invisible marks that `cleanText` leaves: three of the writing direction (U+061C, U+200E, U+200F), and U+FEFF.
const invisible = /[\u061c\u200e\u200f\ufeff]/g;

function escapeText(text: string): string {
  return text
    .replace(/[&<>"']/g, (character) => htmlEntities[character] ?? "")
    .replace(invisible, (mark) => `\\u${mark.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** A style or script inside a page, and its hash for the page's policy (CSP Level 3, 2.3.1). */
export interface PagePart {
  readonly html: Html;
  readonly hash: string;
}

const style = new URL("./report-page.css", import.meta.url);
const script = new URL("./report-page.js", import.meta.url);

/** The style of all pages, with the texts of `more` behind it. */
export function pageStyle(...more: readonly URL[]): PagePart {
  return partOf("style", [style, ...more]);
}

/** The script of a run's page, with the texts of `more` behind it. */
export function pageScript(...more: readonly URL[]): PagePart {
  return partOf("script", [script, ...more]);
}

/** One element with the texts of these files, without indentation and lines that are comments. A comment must be one line. */
function partOf(name: "style" | "script", files: readonly URL[]): PagePart {
  const text = files
    .map((file) => readFileSync(file, "utf8"))
    .join("\n")
    .replace(/^\s*(\/\/|\/\*).*$/gm, "")
    .replace(/\n\s*/g, "\n");
  const hash = `sha256-${createHash("sha256").update(text).digest("base64")}`;
  return { html: new Html(`<${name}>${text}</${name}>`), hash };
}
