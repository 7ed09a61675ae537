import type { AcceptedBodyOf } from "#api/methods.ts";
import type { NodeUpdateView, UpdateView } from "#api/update-schemas.ts";
import { KcoreError } from "#errors/problem.ts";
import type { Say } from "../terminal/say.ts";
import { latestWord } from "./latest-word.ts";
import type { HookEnd } from "./run-hook.ts";

/** A hook that a rollout asks for, and when it is to be ended. */
export interface Asked {
  readonly view: UpdateView;
  readonly node: NodeUpdateView;
  readonly signal: AbortSignal;
}

export interface AttendPorts {
  readonly carryOut: (asked: Asked) => Promise<HookEnd>;
  /** Gives a controller the answer. @throws KcoreError */
  readonly answer: (said: AcceptedBodyOf<"answerHook">) => Promise<unknown>;
  readonly mostAtOnce: (view: UpdateView) => number;
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<unknown>;
  readonly say: Say;
}

/** Does what a rollout asks of the bastion, and answers. */
export interface Attendant {
  /** How the rollout stands: what it asks now is begun, once. */
  readonly look: (view: UpdateView) => void;
  /** Something is still to be done, or is being done. */
  readonly isNeeded: (view: UpdateView) => boolean;
  /** Ends the running hooks. */
  readonly close: () => Promise<void>;
}

/** Attends to a rollout: of one node one hook at a time, until it has ended. */
export function attendTo(ports: AttendPorts): Attendant {
  const { say } = ports;
  const end = new AbortController();
  const begun = new Set<string>();
  const latest = latestWord();
  let last: UpdateView | undefined;
  /** By node: its work is not taken away and given back at once. */
  const running = new Map<string, Running>();
  const keyOf = ({ id, hook, seq }: NodeUpdateView, generation: number): string => `${generation} ${id} ${seq} ${hook}`;
  const isNew = (node: NodeUpdateView, { generation }: UpdateView): boolean =>
    node.hook !== undefined && !begun.has(keyOf(node, generation));
  const asked = (view: UpdateView): readonly NodeUpdateView[] => view.nodeStatus.filter((node) => isNew(node, view));
  const begin = (view: UpdateView, node: NodeUpdateView): void => {
    const key = keyOf(node, view.generation);
    const stop = new AbortController();
    const signal = AbortSignal.any([end.signal, stop.signal]);
    const work = attend(ports, { view, node, signal }).catch((error: unknown) => {
      if (error === noMore) {
        say(`${node.hostname}: ${node.hook} is ended: ${noMore.message}`);
        // Should it be asked for after all, it is begun anew.
        begun.delete(key);
      } else if (!signal.aborted) say(`${node.hostname}: ${(error as Error).message}`);
    });
    begun.add(key);
    running.set(node.id, { view, node, stop, work });
    void work.finally(() => {
      running.delete(node.id);
      // Another hook that had to wait for this one begins now, without a new view.
      if (last && !end.signal.aborted) look(last);
    });
  };
  const look = (told: UpdateView): void => {
    if (!latest.isLatest(told)) return;
    const view = { ...told, nodeStatus: told.nodeStatus.filter(latest.isLatestOf) };
    last = view;
    for (const node of view.nodeStatus) {
      const present = running.get(node.id);
      if (present && isPast(present, view.generation, node, isNew(node, view))) present.stop.abort(noMore);
    }
    for (const node of asked(view)) {
      if (running.size >= ports.mostAtOnce(view)) break;
      if (!running.has(node.id)) begin(view, node);
    }
  };
  return {
    look,
    isNeeded: (view) => running.size > 0 || asked(view).length > 0,
    async close() {
      end.abort();
      await Promise.all([...running.values()].map(({ work }) => work));
    },
  };
}

interface Running {
  readonly view: UpdateView;
  readonly node: NodeUpdateView;
  readonly stop: AbortController;
  readonly work: Promise<void>;
}

const noMore = new Error("it is not asked for any more");

/**
 * Whether a running hook was withdrawn. One that is absent at the moment may be asked for again when its node is well. A controller that lags
 * behind shows an earlier state.
 */
function isPast(
  { view, node: { hook, seq = 0 } }: Pick<Running, "view" | "node">,
  generation: number,
  node: NodeUpdateView,
  isNew: boolean,
): boolean {
  if (generation !== view.generation) return generation > view.generation;
  const { seq: present = 0 } = node;
  return present === seq ? isNew && node.hook !== hook : present > seq;
}

/** Over when nothing of it runs any more. */
async function attend(ports: AttendPorts, asked: Asked): Promise<void> {
  const { hook, hostname } = asked.node;
  ports.say(`${hostname}: ${hook} is begun`);
  const { left, ...end } = await ports.carryOut(asked);
  ports.say(`${hostname}: ${hook} ${end.ok ? "is done" : `failed: ${end.message}`}`);
  try {
    await answer(ports, asked, end);
  } finally {
    await left;
  }
}

async function answer(ports: AttendPorts, { view, node, signal }: Asked, end: HookEnd): Promise<void> {
  const { id, hook = "", seq = 0 } = node;
  const owner = { id: view.owner.id, epoch: view.owner.epoch };
  const said = { node: id, generation: view.generation, seq, owner, hook, ...end };
  try {
    await untilReached(
      () => ports.answer(said),
      (ms) => ports.sleep(ms, signal),
    );
  } catch (error) {
    // Another bastion has answered, or the hook is over.
    if (codeOf(error) !== "UPDATE_NOT_ASKED") throw error;
  }
}

/** Asks until a controller can be reached. @throws KcoreError as the controller refuses */
export async function untilReached(ask: () => Promise<unknown>, wait: (ms: number) => Promise<unknown>): Promise<void> {
  for (;;) {
    try {
      await ask();
      return;
    } catch (error) {
      if (codeOf(error) !== "API_UNREACHABLE") throw error;
      await wait(1_000);
    }
  }
}

function codeOf(error: unknown): string | undefined {
  return error instanceof KcoreError ? error.problems[0]?.code : undefined;
}
