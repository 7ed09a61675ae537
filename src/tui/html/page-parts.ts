import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { Html } from "./html.ts";

/** A style or script that stands in a page, and its hash for the page's policy (CSP Level 3, 2.3.1). */
export interface PagePart {
  readonly html: Html;
  readonly hash: string;
}

const style = new URL("./report-page.css", import.meta.url);
const script = new URL("./report-page.js", import.meta.url);

/** The style of all pages; then those of `more`. */
export function pageStyle(...more: readonly URL[]): PagePart {
  return partOf("style", [style, ...more]);
}

/** The script of a run's page; then those of `more`. */
export function pageScript(...more: readonly URL[]): PagePart {
  return partOf("script", [script, ...more]);
}

/** One element with the texts of these files, without comments and indentation. */
function partOf(name: "style" | "script", files: readonly URL[]): PagePart {
  const text = files
    .map((file) => readFileSync(file, "utf8"))
    .join("\n")
    .replace(/^\s*(\/\/|\/\*).*$/gm, "")
    .replace(/\n\s*/g, "\n");
  const hash = `sha256-${createHash("sha256").update(text).digest("base64")}`;
  return { html: new Html(`<${name}>${text}</${name}>`), hash };
}
