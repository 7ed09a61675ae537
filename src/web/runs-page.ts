import { formatDuration } from "#base/units.ts";
import { html, type Html, type HtmlValue } from "#tui/html/html.ts";
import { countNoun, makeLabel, timestamp, waitingForYou, type Label } from "#tui/html/labels.ts";
import type { OpenQuestion } from "#tui/questions.ts";

export interface ListedRun {
  readonly id: string;
  readonly state: string;
  /** Milliseconds since the epoch. */
  readonly created: number;
  /** The duration, for a living run so far. */
  readonly milliseconds: number;
  /** Milliseconds since the epoch from which a living run's duration counts. */
  readonly since: number;
  readonly who: string;
  readonly command: string;
  readonly dryRun: boolean;
  readonly nodes: readonly string[];
  /** The question that the run waits for. */
  readonly question?: OpenQuestion;
}

/** A filter of runs; the newest runs come first. */
export interface RunsQuery {
  readonly state?: string;
  readonly node?: string;
  /** The id of a run: only older runs. */
  readonly before?: string;
  readonly limit: number;
}

/** The marks, as on a run's own page, by the states of the list. */
const marksByState: Readonly<Record<string, Parameters<typeof makeLabel>[0]>> = {
  starting: "running",
  running: "running",
  stopping: "running",
  done: "ok",
  interrupted: "interrupted",
  failed: "failed",
  unreachable: "failed",
  refused: "failed",
  died: "failed",
};

function runStateLabel(state: string): Label {
  return state === "waiting" ? waitingForYou : makeLabel(marksByState[state] ?? "unknown", state);
}

export interface RunsPage {
  readonly runs: readonly ListedRun[];
  readonly query: RunsQuery;
  readonly states: readonly string[];
  /** The secret path before all addresses. */
  readonly root: string;
}

export function drawRunsPage({ runs, query, states, root }: RunsPage): Html {
  return html`<main class="listing">
    <h1>Runs</h1>
    <form class="controls" method="get" action="${root}/" role="search">
      <label class="find"
        >On node <input type="search" name="node" value="${query.node ?? ""}" autocomplete="off" spellcheck="false"
      /></label>
      <label
        >State
        <select name="state">
          <option value="">any</option>
          ${states.map((state) => html`<option ${state === query.state && html` selected`}>${state}</option>`)}
        </select></label
      >
      <button type="submit">Show</button>
    </form>
    ${drawRunList(runs, query, root)}
  </main>`;
}

/** The changing part of the list. */
export function drawRunList(runs: readonly ListedRun[], query: RunsQuery, root: string): Html {
  const last = runs.at(-1);
  const older = runs.length === query.limit && last ? root + linkTo({ ...query, before: last.id }) : undefined;
  return html`<div id="runs">
    ${runs.length === 0 ? html`<p class="gone">${noneOf(query)}</p>` : drawRunsTable(runs, root)}
    ${older !== undefined && html`<p><a href="${older}" rel="next">Older runs</a></p>`}
  </div>`;
}

function noneOf({ state, node, before }: RunsQuery): string {
  const narrow = [state && `that are ${state}`, node && `on a node “${node}”`].filter(Boolean).join(" ");
  if (narrow !== "") return `There are no ${before === undefined ? "" : "older "}runs ${narrow}.`;
  return before === undefined ? "Nothing has been run in this project yet." : "There are no older runs.";
}

function linkTo({ state, node, before }: RunsQuery): string {
  const words = new URLSearchParams();
  for (const [name, value] of Object.entries({ state, node, before })) if (value) words.set(name, value);
  return `/?${words.toString()}`;
}

function drawRunsTable(runs: readonly ListedRun[], root: string): Html {
  return html`<table>
    <caption class="hidden">
      Runs, the newest first
    </caption>
    <thead>
      <tr>
        <th scope="col">State</th>
        <th scope="col">Run</th>
        <th scope="col">Began</th>
        <th scope="col" class="time">Time</th>
        <th scope="col">Nodes</th>
        <th scope="col">By</th>
      </tr>
    </thead>
    <tbody>
      ${runs.map((run) => drawRow(run, root))}
    </tbody>
  </table>`;
}

function drawRow(
  { id, state, created, milliseconds, who, command, dryRun, nodes, question, since }: ListedRun,
  root: string,
): Html {
  const { mark, word, className } = runStateLabel(state);
  return html`<tr>
    <td class="badge ${className}"><span aria-hidden="true">${mark}</span> ${word}</td>
    <th scope="row">
      <a href="${root}/runs/${id}">${command.replace(/^kcore /, "")}</a>
      <small>${id}${dryRun && ", dry run"}</small
      >${question && html`<small>${question.text} <code>${question.command}</code></small>`}
    </th>
    <td data-label="Began">${timestamp(created)}</td>
    ${
      className === "running" || state === "waiting"
        ? html`<td class="time" data-label="Time" data-since="${since}"></td>`
        : html`<td class="time" data-label="Time">${formatDuration(milliseconds)}</td>`
    }
    <td data-label="Nodes">${nodesCell(nodes)}</td>
    <td data-label="By">${who.replace(/@.*/, "")}</td>
  </tr>`;
}

function nodesCell(nodes: readonly string[]): HtmlValue {
  if (nodes.length <= 3) return nodes.join(", ");
  return html`<span title="${nodes.slice(0, 200).join(", ")}">${countNoun(nodes.length, "node")}</span>`;
}
