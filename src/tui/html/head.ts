import { formatDuration } from "#base/units.ts";
import { runTime, type NodeModel, type RunModel } from "#engine/events/run-model.ts";
import { openQuestion } from "../questions.ts";
import { causeLine } from "../cause-line.ts";
import { dryRunTotal } from "../dry-run-plan.ts";
import { actionsByNode, bastionActions, causeIn, itemOf, workOn } from "../work-item.ts";
import { drawFactRows, type FactRow } from "./details.ts";
import { html, type Html } from "./html.ts";
import { countNoun, runningTime, makeLabel, timestamp, waitingForYou } from "./labels.ts";

const ends = {
  done: makeLabel("ok", "done"),
  failed: makeLabel("failed", "failed"),
  unreachable: makeLabel("failed", "unreachable nodes"),
  interrupted: makeLabel("interrupted", "interrupted"),
} as const;

/** The page's title. */
export function pageTitle(model: RunModel, isLive = false): string {
  const open = !isLive ? "not finished" : model.questions.length > 0 ? waitingForYou.word : "running";
  const outcome = model.outcome === undefined ? open : ends[model.outcome].word;
  return `${runName(model)}: ${outcome} · kcore run ${model.runId}`;
}

/** The page's head: the run, its end, operator, time and revision. `isLive`: the run's process works on it. */
export function drawHead(model: RunModel, isLive = false): Html {
  const { outcome, dryRun, startedAt, partAt, ranBefore, revision, dirty, who, command, runId, resumed } = model;
  const [question] = isLive && outcome === undefined ? model.questions : [];
  const open = makeLabel("running", isLive ? (model.state === "stopping" ? "stopping" : "running") : "not finished");
  const { mark, word, className } = outcome ? ends[outcome] : question ? waitingForYou : open;
  const isGoing = isLive && outcome === undefined;
  const cause = headCause(model);
  const facts: readonly FactRow[] = [
    ["Run", runId !== "" && html`<code>${runId}</code>${resumed && " (resumed)"}`],
    ["Started", startedAt > 0 && timestamp(startedAt)],
    [
      "Took",
      startedAt > 0 && (isGoing ? runningTime(partAt - ranBefore, runTime(model)) : formatDuration(runTime(model))),
    ],
    ["By", who],
    [
      "Revision",
      revision &&
        html`<code>${revision.slice(0, 12)}</code
          >${dirty && html` <span class="badge changed">${"●"} with uncommitted changes</span>`}`,
    ],
    ["Command", command && html`<code class="command">${command}</code>`],
    ["Asks", question && (question.node === undefined ? question.text : `${question.node}: ${question.text}`)],
    ["Answer with", question && html`<code>${openQuestion(question, runId).command}</code>`],
    ["Exit code", model.exitCode !== undefined && String(model.exitCode)],
    [
      "Resume with",
      outcome !== "done" && !dryRun && !isLive && runId !== "" && html`<code>kcore runs resume ${runId}</code>`,
    ],
  ];
  return html`<header class="head">
    <p class="brand">kcore run</p>
    <h1>
      ${runName(model)} <span class="verdict ${className}"><span aria-hidden="true">${mark}</span> ${word}</span>
    </h1>
    ${cause && html`<p class="cause">${cause}</p>`}
    <p class="lead">${leadOf(model, isGoing)}</p>
    ${dryRun && html`<p class="banner"><b>Dry run.</b> Nothing was changed: this is what would change.</p>`}
    <dl class="facts">${drawFactRows(facts)}</dl>
  </header>`;
}

/** The cause of the first failed node, else of the run itself. */
function headCause(model: RunModel): string | undefined {
  const actions = actionsByNode(model);
  const isFailed = ({ outcome }: NodeModel) => outcome === "failed" || outcome === "unreachable";
  const node = [...model.nodes.values()].find(isFailed);
  const item = causeIn(node ? workOn(node, actions.get(node.name) ?? []) : bastionActions(model));
  const found = item && causeLine(itemOf(item));
  return found ?? node?.problem?.message ?? (model.outcome === "done" ? undefined : model.problems[0]?.message);
}

function runName({ title }: RunModel): string {
  return title === "" ? "a run that did not begin" : title;
}

/** “2 of 3 nodes done, 1 failed, in 41 s”; without the time for a living run: the facts below show a running clock. */
function leadOf(model: RunModel, isGoing: boolean): string {
  const all = [...model.nodes.values()];
  const counted = (...outcomes: readonly unknown[]) => all.filter(({ outcome }) => outcomes.includes(outcome)).length;
  const open = all.filter(({ outcome }) => outcome === undefined);
  const waiting = open.filter(({ startedAt }) => startedAt === undefined).length;
  const rest = [
    [counted("failed"), "failed"],
    [counted("unreachable"), "unreachable"],
    [counted("interrupted"), "interrupted"],
    [counted("not-started"), "not started"],
    ...(isGoing
      ? ([
          [open.length - waiting, "running"],
          [waiting, "waiting"],
        ] as const)
      : ([[open.length, "not finished"]] as const)),
  ] as const;
  const done = counted("done");
  const head =
    done === all.length
      ? `${countNoun(done, "node")} done`
      : `${done.toLocaleString("en")} of ${countNoun(all.length, "node")} done`;
  return [
    ...(model.dryRun ? [dryRunTotal(model)] : []),
    head,
    ...rest.flatMap(([number, word]) => (number > 0 ? [`${number.toLocaleString("en")} ${word}`] : [])),
    ...(isGoing ? [] : [`in ${formatDuration(runTime(model))}`]),
  ].join(", ");
}
