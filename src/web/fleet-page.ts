import { html, Html } from "#tui/html/html.ts";
import { fleetPage, fleetTables, type FleetTable } from "#tui/ink/fleet/section-rows.ts";
import type { FleetLink, FleetSnapshot } from "#tui/ink/fleet/snapshot.ts";
import type { Line } from "#tui/ink/text.ts";
import { createTheme } from "#tui/ink/theme.ts";

/** The theme is used for its symbols alone: the page has its own colours. */
const theme = createTheme({ depth: 0, background: "unknown", unicode: true });

/** The known state of the cluster, and of the connection to it. */
export interface FleetState {
  readonly snapshot: FleetSnapshot;
  readonly link: FleetLink;
}

/** The parts of the fleet's page that change, by their elements' ids: its head, and each section. */
export function fleetPageParts(
  { snapshot, link }: FleetState,
  now: number,
  root: string,
): readonly (readonly [id: string, html: string])[] {
  return [
    ["fleet-head", drawFleetHead(snapshot, link).source],
    ...fleetTables(snapshot, { theme, now }).map(
      (table) => [`fleet-${table.name}`, drawFleetTable(table, root).source] as const,
    ),
  ];
}

function drawFleetHead({ context, nodes, asked }: FleetSnapshot, link: FleetLink): Html {
  const ready = nodes.filter(({ status }) => status === "ready").length;
  return html`<div id="fleet-head">
    <h1>${context}</h1>
    <p class="lead">
      ${ready} of ${nodes.length} nodes ready, as reported by
      ${asked}${
        link.state === "lost" &&
        html` <span class="failed"
          >${"✖"} lost ${link.endpoint}: ${link.why}; ${link.trying} is asked. This page shows the last known
          state.</span
        >`
      }
    </p>
  </div>`;
}

function drawFleetTable({ name, title, emptyText, headings, rows }: FleetTable, root: string): Html {
  return html`<section id="fleet-${name}" aria-labelledby="fleet-${name}-title">
    <h2 id="fleet-${name}-title">${title} <small>${rows.length}</small></h2>
    ${
      rows.length === 0
        ? html`<p class="gone">${emptyText}</p>`
        : html`<div class="wide" tabindex="0" role="group" aria-label="${title}">
            <table>
              <thead>
                <tr>
                  ${headings.map((heading) => (heading === "" ? html`<td></td>` : html`<th scope="col">${heading}</th>`))}
                </tr>
              </thead>
              <tbody>
                ${rows.map(
                  ({ key, cells }) =>
                    html`<tr>
                      ${cells.map((cell, index) =>
                        index === 1
                          ? html`<th scope="row">
                              <a href="${root}/fleet/${name}/${encodeURIComponent(key)}">${drawSpans(cell)}</a>
                            </th>`
                          : html`<td data-label="${headings[index]}">${drawSpans(cell)}</td>`,
                      )}
                    </tr>`,
                )}
              </tbody>
            </table>
          </div>`
    }
  </section>`;
}

/** The body of the fleet's page. */
export function drawFleet(state: FleetState, now: number, root: string): Html {
  return html`<main class="listing">${fleetPageParts(state, now, root).map(([, source]) => new Html(source))}</main>`;
}

/** The title and body of one row's page; undefined for an unknown section or key. */
export function drawFleetItem(
  { snapshot }: FleetState,
  {
    section,
    key,
    now,
    root,
  }: { readonly section: string; readonly key: string; readonly now: number; readonly root: string },
): { readonly title: string; readonly body: Html } | undefined {
  const page = fleetPage(snapshot, section, key, { theme, now, width: 100 });
  if (!page) return undefined;
  const body = html`<main class="listing">
    <p><a href="${root}/fleet">Fleet</a></p>
    <h1>${page.title}</h1>
    <pre class="lines" tabindex="0" aria-label="${page.title}">
${page.lines.map((line) => [drawSpans(line), "\n"])}</pre>
    <p><code>${page.command}</code></p>
    ${section === "nodes" && html`<p><a href="${root}/?node=${encodeURIComponent(page.title)}">Runs on ${page.title}</a></p>`}
  </main>`;
  return { title: page.title, body };
}

function drawSpans(line: Line): readonly (Html | string)[] {
  return line.map(({ text, role }) =>
    role === undefined || role === "plain" ? text : html`<span class="${role}">${text}</span>`,
  );
}
