import type { SourcePosition } from "#errors/problem.ts";
import type { RunModel } from "#engine/events/run-model.ts";
import { drawFailures, drawWarnings, drawForesight } from "./failures.ts";
import { drawFigures, drawSlowest } from "./figures.ts";
import { drawHead, pageTitle } from "./head.ts";
import { html, pageScript, pageStyle } from "./html.ts";
import { drawLanes } from "./lanes.ts";
import { lanesOf } from "./work.ts";

export interface ReportPageOptions {
  /** The source line of a problem; undefined if the file cannot be read. */
  readonly sourceLine?: (at: SourcePosition) => string | undefined;
  /** The path of a node's log; without `node`, of the bastion's log. */
  readonly logOf?: (node?: string) => string;
  /** The version of kcore that writes the page. */
  readonly version?: string;
}

/**
 * Draws a run as one self-contained HTML page of about 6 MB at most. The page's Content-Security-Policy forbids the network and
 * foreign scripts. Pure: the same run gives the same page.
 */
export function drawReport(model: RunModel, { sourceLine, logOf, version }: ReportPageOptions = {}): string {
  const lanes = lanesOf(model);
  const [style, script] = [pageStyle(), pageScript()];
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
        <title>${pageTitle(model)}</title>
        ${style.html}
      </head>
      <body>
        <a class="skip" href="#timeline">Skip to the timeline</a>
        ${drawHead(model)}
        <main>
          ${drawFailures(model, lanes, sourceLine)} ${drawFigures(model)} ${drawForesight(model)} ${drawWarnings(model)}
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
