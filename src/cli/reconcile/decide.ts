import type { RunModel } from "#engine/events/run-model.ts";
import { formatProblem, type Problem } from "#errors/problem.ts";
import { isInWindow } from "#rollout/window.ts";
import type { NodeDrift } from "../drift/look-for-drift.ts";
import type { ReconcileSettings } from "../project/project-settings.ts";

/** A message for a person, sent once while its key stands. */
export interface PassNotice {
  readonly key: string;
  /** `question`: a person has to decide. `failure`: a person has to mend something. */
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
  /** Milliseconds since the epoch. */
  readonly now: number;
}

export interface Decision {
  /** The nodes to change now. */
  readonly apply: readonly string[];
  /** Why no node is changed though some differ. */
  readonly waits?: string;
  readonly notices: readonly PassNotice[];
}

/** Decides which nodes a pass changes. A node that a dry run could not bring to its end is left alone. */
export function decide({ drifts, problems, questions, command, takesNodes, limits, isHeld, now }: PassFacts): Decision {
  const { maxChanges = Infinity, maxNodes = Infinity, windows } = limits;
  const notices = [...drifts.flatMap(nodeNotices), ...problems.map((one) => noticeOf("failure", formatProblem(one)))];
  const ready = drifts.filter(({ outcome, differs }) => outcome === "done" && differs.length > 0);
  const changes = ready.reduce((sum, { differs }) => sum + differs.length, 0);
  const wait = (waits: string): Decision => ({ apply: [], waits, notices });
  const ask = (waits: string, key = waits): Decision => {
    const text = `${waits}; to do it: ${command}`;
    return { apply: [], waits, notices: [...notices, { key, event: "question", text }] };
  };
  if (problems.length > 0) return wait("the dry run stopped");
  if (ready.length === 0) return { apply: [], notices };
  const undone = drifts.filter(({ outcome }) => outcome !== "done").map(({ node }) => node);
  if (!takesNodes && undone.length > 0) return wait(`this orchestration cannot leave out ${undone.join(", ")}`);
  if (questions.length > 0) return ask(`the run asks a person: ${questions.join("; ")}`);
  if (changes > maxChanges) return ask(`${changes} steps differ, and a pass may change ${maxChanges}`, "maxChanges");
  if (ready.length > maxNodes)
    return ask(`${ready.length} nodes differ, and a pass may change ${maxNodes}`, "maxNodes");
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
  const notices = left.map((text) => noticeOf("question", `${node}: ${text}`));
  if (outcome !== "failed" || isAway(drift)) return notices;
  const why = problem ? formatProblem(problem) : "its dry run failed";
  return [...notices, noticeOf(needsGrant(drift) ? "question" : "failure", `${node}: ${why}`)];
}

/** A notice that stands as long as its text. */
export function noticeOf(event: PassNotice["event"], text: string): PassNotice {
  return { key: text, event, text };
}

/** Actions that ask for the passphrase of CA keys when they have something to do. */
const sealing = /^(pki\.(create|issue|escrow)|update\.sign)/;

/** The questions that a run after this dry run would put to an operator. */
export function questionsOf({ stages }: Pick<RunModel, "stages">, hasPassphrase: boolean): readonly string[] {
  const asked = stages.flatMap(({ id, actions }) =>
    actions.flatMap(({ action, outcome = "", note = "" }) => {
      if (action === "confirm" && outcome === "ok") return note.replace(/^would ask: /, "");
      const isDue = ["would-change", "unknown"].includes(outcome) && sealing.test(action);
      return isDue && !hasPassphrase ? `the passphrase of the CA's keys, for “${id}”` : [];
    }),
  );
  return [...new Set(asked)];
}
