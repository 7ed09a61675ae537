import type { Problem, SourcePosition } from "#errors/problem.ts";
import type { RunModel, StepModel } from "#engine/events/run-model.ts";
import { causeFirst } from "../cause-line.ts";
import { ownProblems } from "../own-problems.ts";
import { Budget } from "./budget.ts";
import { drawOutput, drawProblem } from "./details.ts";
import { html, type Html, type Part } from "./html.ts";
import { causeIn } from "../work-item.ts";
import type { Lane } from "./work.ts";
import { count } from "./words.ts";

/** What stopped one or more nodes: the same step at the same place with the same code. */
interface Cause {
  readonly title: string;
  readonly kind: string;
  readonly problem: Problem;
  readonly tail: string;
  readonly above: number;
  readonly lanes: Lane[];
}

/** Causes beyond these are told in the rows alone. */
const MANY = 100;
const NAMES = 60;

/** The first cause of each failure, and not what followed from it; nodes that failed alike stand together. */
export function drawFailures(
  model: RunModel,
  lanes: readonly Lane[],
  sourceLine?: (at: SourcePosition) => string | undefined,
): Part {
  const causes = causesOf(lanes);
  const own = ownProblems(model);
  if (causes.length + own.length === 0) return undefined;
  const budget = new Budget(400_000);
  return html`<section class="failures" aria-labelledby="failures">
    <h2 id="failures">What went wrong</h2>
    ${own.map(
      (problem) =>
        html`<article class="card failed">
          <h3>The run itself</h3>
          ${drawProblem(problem, sourceLine)}
        </article>`,
    )}
    ${causes.slice(0, MANY).map((cause) => drawCause(cause, budget, sourceLine))}
    ${causes.length > MANY && html`<p>${count(causes.length - MANY, "more cause")}: see the nodes below.</p>`}
  </section>`;
}

function drawCause(cause: Cause, budget: Budget, sourceLine?: (at: SourcePosition) => string | undefined): Html {
  const { title, kind, problem, lanes } = cause;
  const [first] = lanes;
  const named = lanes.slice(0, NAMES).map(({ id, name }) => html`<li><a href="#${id}">${name}</a></li>`);
  return html`<article class="card failed">
    <h3>${title} ${kind !== "" && html`<small>${kind}</small>`}</h3>
    <ul class="nodes" aria-label="Nodes">
      ${named}${lanes.length > NAMES && html`<li>and ${lanes.length - NAMES} more</li>`}
    </ul>
    ${lanes.length > 1 && html`<p class="gone">${count(lanes.length, "node")} failed the same way; ${first?.name} is shown.</p>`}
    ${drawProblem(problem, sourceLine)}${drawOutput(cause, budget, !problem.detail)}
  </article>`;
}

function causesOf(lanes: readonly Lane[]): readonly Cause[] {
  const causes = new Map<string, Cause>();
  for (const lane of lanes)
    for (const found of causesIn(lane)) {
      const { code, at } = found.problem;
      const key = JSON.stringify([found.title, found.kind, code, at?.file, at?.line, at?.column]);
      const known = causes.get(key);
      if (known) known.lanes.push(lane);
      else causes.set(key, { ...found, lanes: [lane] });
    }
  return [...causes.values()];
}

function causesIn({ name, node, pieces, tally }: Lane): readonly Omit<Cause, "lanes">[] {
  // On the bastion each action fails by itself; on a node the first failure is the cause of the rest.
  const cause = node && tally.failed + tally.interrupted > 0 ? causeIn(pieces) : undefined;
  const told = node ? (cause ? [cause] : []) : pieces.filter(({ outcome }) => outcome === "failed");
  if (told.length === 0) {
    if (!node?.problem || node.outcome === "done" || node.outcome === "not-started") return [];
    return [{ title: node.outcome ?? "not finished", kind: "", problem: node.problem, tail: "", above: 0 }];
  }
  return told.map(({ title, kind, step, action }) => {
    const found: Problem = (step ?? action)?.problem ??
      node?.problem ?? { code: "INTERNAL", message: `${title} failed on ${name} without saying why` };
    const problem = causeFirst(found, step?.exitStatus);
    const { position: at, tail = "", above = 0 }: Partial<StepModel> = step ?? action ?? {};
    return {
      title,
      kind,
      tail,
      above,
      problem: problem.at === undefined && at ? { ...problem, at } : problem,
    };
  });
}
