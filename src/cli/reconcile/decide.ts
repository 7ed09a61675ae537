import type { RunModel } from "#engine/events/run-model.ts";
import { formatProblem, type Problem } from "#errors/problem.ts";
import { isInWindow } from "#rollout/window.ts";
import type { NodeDrift } from "../drift/look-for-drift.ts";
import type { ReconcileSettings } from "../project/project-settings.ts";

/** A message for a person, sent once while it stands. `question`: something to decide, `failure`: something to mend. */
export interface PassNotice {
  readonly event: "question" | "failure";
  readonly text: string;
}

/** The facts that decide which nodes a pass changes. */
export interface PassFacts {
  readonly drifts: readonly NodeDrift[];
  /** The problems that stopped the dry run itself. */
  readonly problems: readonly Problem[];
  /** The questions that a run would put to an operator. */
  readonly questions: readonly string[];
  /** The command that a person types to do it all. */
  readonly command: string;
  /** Whether the run can be narrowed to some nodes. */
  readonly takesNodes: boolean;
  readonly limits: Pick<ReconcileSettings, "maxChanges" | "maxNodes" | "windows">;
  /** Whether the same run failed in an earlier pass, and its turn has not come again. */
  readonly isHeld: boolean;
  readonly now: number;
}

/** The nodes to change now, or why none is changed though some differ. */
export interface Decision {
  readonly apply: readonly string[];
  readonly waits?: string;
  readonly notices: readonly PassNotice[];
}

/** Decides which nodes a pass changes. A node that a dry run could not bring to its end is left alone. */
export function decide({ drifts, problems, questions, command, takesNodes, limits, isHeld, now }: PassFacts): Decision {
  const { maxChanges = Infinity, maxNodes = Infinity, windows } = limits;
  const notices = [...drifts.flatMap(nodeNotices), ...problems.map(failureOf)];
  const wait = (waits: string): Decision => ({ apply: [], waits, notices });
  const ask = (waits: string): Decision => {
    return { apply: [], waits, notices: [...notices, { event: "question", text: `${waits}; to do it: ${command}` }] };
  };
  const ready = drifts.filter(({ outcome, differs }) => outcome === "done" && differs.length > 0);
  const others = drifts.flatMap(({ node, outcome }) => (outcome === "done" ? [] : node));
  // A run carries out the steps that only a run tells, and those without a probe, on each of its nodes.
  const ran = takesNodes ? ready : drifts;
  const changes = ran.reduce((sum, { differs, unknown, always }) => sum + [differs, unknown, always].flat().length, 0);
  if (problems.length > 0) return wait("the dry run stopped");
  if (ready.length === 0) return { apply: [], notices };
  if (!takesNodes && others.length > 0) return wait(`this orchestration cannot leave out ${others.join(", ")}`);
  if (questions.length > 0) return ask(`the run asks a person: ${questions.join("; ")}`);
  if (changes > maxChanges) return ask(`the run has more steps than a pass may change (${maxChanges})`);
  if (ready.length > maxNodes) return ask(`more nodes differ than a pass may change (${maxNodes})`);
  if (isHeld) return wait("the same run failed before: a later pass tries it again");
  if (windows.length > 0 && !windows.some((window) => isInWindow(window, now))) return wait("outside of the windows");
  return { apply: ready.map(({ node }) => node), notices };
}

/** Whether a node is down, or another run holds it: a later pass catches the node up. */
export function isAway({ outcome, problem }: NodeDrift): boolean {
  return outcome === "unreachable" || problem?.code === "NODE_LOCKED";
}

/** Whether the node waits for a grant, which only a person gives. */
export function needsGrant({ problem }: NodeDrift): boolean {
  return problem?.message.includes("--grant ") === true;
}

function nodeNotices(drift: NodeDrift): readonly PassNotice[] {
  const { node, outcome, left, problem } = drift;
  const notices = left.map((text): PassNotice => ({ event: "question", text: `${node}: ${text}` }));
  if (outcome !== "failed" || isAway(drift)) return notices;
  const text = `${node}: ${problem ? formatProblem(problem) : "its dry run failed"}`;
  return [...notices, { event: needsGrant(drift) ? "question" : "failure", text }];
}

/** The notice of a problem that a person has to mend. */
export function failureOf(problem: Problem): PassNotice {
  return { event: "failure", text: formatProblem(problem) };
}

/** The questions that a run after this dry run would put to an operator: confirmations, and the passphrase where a key of a CA is due. */
export function questionsOf({ stages }: Pick<RunModel, "stages">, hasPassphrase: boolean): readonly string[] {
  const actions = stages.flatMap((stage) => stage.actions);
  const confirms = actions.filter(({ action, outcome }) => action === "confirm" && outcome === "ok");
  const isDue = actions.some(
    ({ action, outcome = "" }) =>
      /^(pki\.(create|issue|escrow)|update\.sign)/.test(action) && ["would-change", "unknown"].includes(outcome),
  );
  const asked = confirms.map(({ note = "" }) => note.replace(/^would ask: /, ""));
  return isDue && !hasPassphrase ? [...asked, "the passphrase of the CA's keys"] : asked;
}
