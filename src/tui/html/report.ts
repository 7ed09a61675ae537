import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import type { SourcePosition } from "#errors/problem.ts";
import type { RunModel } from "#engine/events/run-model.ts";
import { drawFailures } from "./failures.ts";
import { drawFigures, drawSlowest } from "./figures.ts";
import { drawHead, titleOf } from "./head.ts";
import { html, Html } from "./html.ts";
import { drawLanes } from "./lanes.ts";
import { lanesOf } from "./work.ts";

export interface ReportOptions {
  /** Gives the line a problem points at, if it can be read. */
  readonly sourceLine?: (at: SourcePosition) => string | undefined;
  /** Where a node's log lies, or the bastion's, to be shown. */
  readonly logOf?: (node?: string) => string;
  /** The kcore that writes the page. */
  readonly version?: string;
}

/**
 * A run as one self-contained HTML page: no network, nothing to build, no script but its own (a policy in the page
 * itself sees to that). Pure: the same run gives the same page. It is at most about 6 MB whatever the nodes printed.
 */
export function drawReport(model: RunModel, { sourceLine, logOf, version }: ReportOptions = {}): string {
  const lanes = lanesOf(model);
  const [style, script] = [element("style"), element("script")];
  const policy = `default-src 'none'; style-src '${style.hash}'; script-src '${script.hash}'; base-uri 'none'; form-action 'none'`;
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta http-equiv="Content-Security-Policy" content="${policy}" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <meta name="referrer" content="no-referrer" />
        <meta name="generator" content="kcore ${version ?? ""}" />
        <title>${titleOf(model)}</title>
        ${style.html}
      </head>
      <body>
        <a class="skip" href="#timeline">Skip to the timeline</a>
        ${drawHead(model)}
        <main>
          ${drawFigures(model, lanes)} ${drawFailures(model, lanes, sourceLine)}
          ${model.warnings.length > 0 && drawWarnings(model)}
          ${lanes.length > 0 && drawLanes({ model, lanes, ...(logOf && { logOf }) })} ${drawSlowest(model, lanes)}
        </main>
        <footer>
          <p>
            Written by kcore ${version} from the record of run <code>${model.runId}</code>. This page is complete in
            itself: it loads nothing.
          </p>
        </footer>
        ${script.html}
      </body>
    </html> `.source;
}

function drawWarnings({ warnings }: RunModel): Html {
  const shown = warnings.slice(0, 500);
  return html`<section aria-labelledby="warnings">
    <h2 id="warnings">Warnings</h2>
    <ul class="warnings">
      ${shown.map(({ node, text }) => html`<li>${node !== undefined && html`<b>${node}</b> `}${text}</li>`)}${warnings.length > shown.length && html`<li>and ${warnings.length - shown.length} more</li>`}
    </ul>
  </section>`;
}

const files = {
  style: new URL("./report-page.css", import.meta.url),
  script: new URL("./report-page.js", import.meta.url),
} as const;

/** The page's own style or script, without what only its readers need, and its hash for the policy (CSP Level 3, 2.3.1). */
function element(name: keyof typeof files): { readonly html: Html; readonly hash: string } {
  const text = readFileSync(files[name], "utf8")
    .replace(/^\s*(\/\/|\/\*).*$/gm, "")
    .replace(/\n\s*/g, "\n");
  const hash = `sha256-${createHash("sha256").update(text).digest("base64")}`;
  return { html: new Html(`<${name}>${text}</${name}>`), hash };
}
