import { html, type Html, type HtmlValue, pageScript, pageStyle } from "#tui/html/html.ts";

export interface WebPage {
  readonly title: string;
  readonly body: HtmlValue;
  /** The entry of the navigation to which this page belongs. */
  readonly entry?: "runs" | "fleet";
  /** The address of the page's changes, and the version that the body shows; absent: the page does not change. */
  readonly news?: { readonly path: string; readonly version: string };
}

/** The part of a page that all pages of one kcore web share. */
export interface PageFrame {
  /** The project's name in the head. */
  readonly project: string;
  /** The version of kcore. */
  readonly version: string;
  /**
   * The secret path before all addresses; empty without one. A browser sends the cookie below this path alone, so no server on
   * another port gets the cookie.
   */
  readonly root: string;
}

const style = pageStyle(new URL("./web-page.css", import.meta.url));
const script = pageScript(new URL("./web-page.js", import.meta.url));

/** Headers of every answer: a page has only this server's own style, script and data, stands in no frame and is not cached. */
export const headers = {
  "content-security-policy": `default-src 'none'; style-src '${style.hash}'; script-src '${script.hash}'; connect-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "cache-control": "no-store",
} as const;

/** A whole page: head with navigation, the body, and the one script. */
export function drawPage({ title, body, entry, news }: WebPage, { project, version, root }: PageFrame): string {
  const to = (name: "runs" | "fleet", path: string, word: string): Html =>
    html`<a href="${root + path}" ${entry === name && html` aria-current="page"`}>${word}</a>`;
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <meta name="generator" content="kcore ${version}" />
        <link rel="icon" href="data:," />
        <title>${title + " · kcore"}</title>
        ${style.html}
      </head>
      <body ${news && html` data-news="${news.path}" data-version="${news.version}"`} data-now="${Date.now()}">
        <a class="skip" href="#main">Skip to the content</a>
        <nav class="places" aria-label="Places">
          <b>kcore</b> <span class="project">${project}</span>
          ${to("runs", "/", "Runs")} ${to("fleet", "/fleet", "Fleet")}
          <span id="link" role="status">${news && "…"}</span>
        </nav>
        <div id="main">${body}</div>
        ${script.html}
      </body>
    </html> `.source;
}

/** A page with the reason for a refusal. */
export function drawRefusal(why: string, frame: PageFrame, title = "Not here"): string {
  const body = html`<main class="alone">
    <h1>${title}</h1>
    <p>${why}</p>
  </main>`;
  return drawPage({ title, body }, frame);
}
