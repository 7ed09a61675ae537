import type { UpdateView } from "#api/update-schemas.ts";
import { setTimeout as sleep } from "node:timers/promises";
import { ApiRefusal, type ApiClient } from "#api/client.ts";
import { exitCodes, type ExitCode } from "#errors/problem.ts";
import { detectCi, escapeForCi } from "#tui/ci.ts";
import type { Cluster } from "../cluster/open-cluster.ts";
import { followChanges } from "../get/follow-changes.ts";
import type { ResultFormat } from "../options.ts";
import { formatOne, isForPeople } from "../terminal/format-result.ts";
import { toStderr, type Say } from "../terminal/say.ts";
import { redrawing } from "../terminal/redraw.ts";
import { askUpdates, callForUpdate } from "./ask-updates.ts";
import type { Attendant } from "./attend.ts";
import { drawRollout } from "./draw-rollout.ts";
import { hasEnded } from "#rollout/records.ts";
import { drawTransition, transitionsOf } from "./transitions.ts";

/** What a command did to a rollout, which another controller may not have heard of yet. */
export interface Since {
  /** At least this one. */
  readonly generation?: number;
  /** It has ended before: this is another end than the one at that time. */
  readonly endedAt?: string;
  /** How it shall end; `succeeded` unless told otherwise. */
  readonly wanted?: UpdateView["phase"];
}

/** The last one comes when the terminal, or the connection to it, is gone: what runs for a node must not outlive who answers for it. */
const leaving = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

export interface FollowOptions extends Since {
  readonly output: ResultFormat;
  /** Opens who attends to it, if anybody; what it has to say is shown as the rollout is. */
  readonly attend?: (say: Say) => Promise<Attendant | undefined>;
  /** Where it is shown; stdout unless told otherwise. */
  readonly stdout?: NodeJS.WriteStream;
}

/**
 * Shows a rollout until it ends: at a terminal anew each time, else a line for each transition. Ctrl-C, or a terminal that is gone, leaves it alone. Gives the exit code:
 * 0 for the end that was wanted, or that somebody asked for.
 */
export async function followUpdate(
  cluster: Cluster,
  name: string,
  { output, attend, stdout = process.stdout, ...since }: FollowOptions,
): Promise<ExitCode> {
  const stop = new AbortController();
  let isLeft = false;
  const leave = (): void => {
    isLeft = true;
    stop.abort();
  };
  // Whoever read our output has seen enough.
  stdout.once("error", () => stop.abort());
  for (const signal of leaving) process.once(signal, leave);
  const isScreen = stdout.isTTY && isForPeople(output);
  const { show, say } = isScreen ? redrawn(stdout) : appended(output, stdout);
  const attendant = await attend?.(say);
  const fetch = (client: ApiClient): Promise<UpdateView> => patiently(client, name, since);
  const options = { registers: [`update/${name}/`], fetch, signal: stop.signal, say };
  let last: UpdateView | undefined;
  try {
    // Ages grow without any change; and what an attendant has done may be news to nobody else.
    const again = isScreen || attendant ? { everyMs: 5_000 } : {};
    for await (const view of followChanges(cluster, { ...options, ...again })) {
      last = view;
      show(view);
      attendant?.look(view);
      if (isOver(view, since) && !attendant?.isNeeded(view)) break;
    }
  } finally {
    for (const signal of leaving) process.off(signal, leave);
    await attendant?.close();
  }
  if (!isLeft) return last && isOver(last, since) ? codeOf(last, since) : exitCodes.done;
  process.stderr.write(`\nThe rollout goes on. To look again: kcore update cluster get ${name} -w\n`);
  return exitCodes.interrupted;
}

function isOver(view: UpdateView, { endedAt, generation = 0 }: Since): boolean {
  return hasEnded(view.phase) && view.updatedAt !== endedAt && view.generation >= generation;
}

function codeOf({ phase, rolledBackBy }: UpdateView, { wanted = "succeeded" }: Since): ExitCode {
  return phase === wanted || rolledBackBy !== undefined ? exitCodes.done : exitCodes.failed;
}

const patience = { turns: 50, pauseMs: 200 } as const;

/** The update as it is at least since then. @throws KcoreError UPDATE_UNKNOWN */
export function getUpdateSince(cluster: Pick<Cluster, "ask">, name: string, since: Since = {}): Promise<UpdateView> {
  return askUpdates(cluster, (client) => patiently(client, name, since));
}

/** What one controller was told reaches the others in a moment: until then they know an older generation, or none. */
async function patiently(client: ApiClient, name: string, { generation = 0 }: Since): Promise<UpdateView> {
  for (let turn = 1; ; turn++) {
    try {
      const view = await callForUpdate(client, name);
      if (view.generation >= generation || turn === patience.turns) return view;
    } catch (error) {
      const isUnknown = error instanceof ApiRefusal && error.reason === "UPDATE_UNKNOWN" && generation > 0;
      if (!isUnknown || turn === patience.turns) throw error;
    }
    await sleep(patience.pauseMs);
  }
}

interface Shown {
  readonly show: (view: UpdateView) => void;
  readonly say: Say;
}

function redrawn(stdout: NodeJS.WriteStream): Shown {
  const redraw = redrawing(stdout);
  let lines: readonly string[] = [];
  return {
    show: (view) => redraw((lines = drawRollout(view, Date.now()))),
    // Not past the screen: what is drawn anew begins where it began before.
    say: (text) => redraw(lines, text),
  };
}

function appended(output: ResultFormat, stdout: NodeJS.WriteStream): Shown {
  let before: UpdateView | undefined;
  const show = (view: UpdateView): void => {
    const transitions = transitionsOf(before, view);
    before = view;
    const lines = transitions.map((transition) =>
      output === "json" || output === "yaml"
        ? formatOne(transition, output)
        : `${escapeForCi(detectCi(process.env), drawTransition(transition))}\n`,
    );
    if (lines.length > 0) stdout.write(lines.join(""));
  };
  return { show, say: toStderr };
}
