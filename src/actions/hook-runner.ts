import type { AcceptedBodyOf } from "#api/methods.ts";
import type { NodeUpdateView, UpdateView } from "#api/update-schemas.ts";
import { retry, wait } from "#base/wait.ts";
import { KcoreError } from "#errors/problem.ts";
import type { HookEnd } from "./run-hook.ts";
import { staleViewFilter } from "./stale-view-filter.ts";

/** A node's hook that a rollout requests; the signal ends the hook. */
export interface HookRequest {
  readonly view: UpdateView;
  readonly node: NodeUpdateView;
  readonly signal: AbortSignal;
}

export interface HookPorts {
  readonly run: (request: HookRequest) => Promise<HookEnd>;
  /** Sends a controller the answer. @throws KcoreError */
  readonly answer: (answer: AcceptedBodyOf<"answerHook">) => Promise<unknown>;
  readonly mostAtOnce: (view: UpdateView) => number;
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<unknown>;
  readonly say: (text: string) => void;
}

interface RunningHook extends Pick<HookRequest, "view" | "node"> {
  readonly stop: AbortController;
  readonly work: Promise<void>;
}

const withdrawal = new Error("it is not asked for any more");

export type HookRunner = ReturnType<typeof createHookRunner>;

/** Runs the hooks that a rollout requests of the bastion, one at a time for each node, and sends the answers. */
export function createHookRunner(ports: HookPorts) {
  const { say } = ports;
  const closing = new AbortController();
  const begun = new Set<string>();
  const filter = staleViewFilter();
  let last: UpdateView | undefined;
  /** By node id: a node's drain and undrain never run at once. */
  const running = new Map<string, RunningHook>();
  const isNew = (node: NodeUpdateView, { generation }: UpdateView): boolean =>
    node.hook !== undefined && !begun.has(requestKey(node, generation));
  const newRequests = (view: UpdateView): readonly NodeUpdateView[] =>
    view.nodeStatus.filter((node) => isNew(node, view));
  const begin = (view: UpdateView, node: NodeUpdateView): void => {
    const key = requestKey(node, view.generation);
    const stop = new AbortController();
    const signal = AbortSignal.any([closing.signal, stop.signal]);
    const work = runAndAnswer(ports, { view, node, signal }).catch((error: unknown) => {
      if (error === withdrawal) {
        say(`${node.hostname}: ${node.hook} is ended: ${withdrawal.message}`);
        // A rollout that requests the hook again gets it.
        begun.delete(key);
      } else if (!signal.aborted) say(`${node.hostname}: ${(error as Error).message}`);
    });
    begun.add(key);
    running.set(node.id, { view, node, stop, work });
    void work.finally(() => {
      running.delete(node.id);
      // Another hook that had to wait for this one begins now, without a new view.
      if (last && !closing.signal.aborted) startHooks(last);
    });
  };
  const startHooks = (seen: UpdateView): void => {
    if (!filter.accept(seen)) return;
    const view = { ...seen, nodeStatus: seen.nodeStatus.filter(filter.acceptNode) };
    last = view;
    for (const node of view.nodeStatus) {
      const present = running.get(node.id);
      if (present && isWithdrawn(present, view.generation, node, isNew(node, view))) present.stop.abort(withdrawal);
    }
    for (const node of newRequests(view)) {
      if (running.size >= ports.mostAtOnce(view)) break;
      if (!running.has(node.id)) begin(view, node);
    }
  };
  return {
    /** Begins the hooks that the view requests, at most `mostAtOnce` together, and ends the withdrawn ones. A stale view changes nothing. */
    startHooks,
    /** Whether a hook is running, or still to be run. */
    isNeeded: (view: UpdateView): boolean => running.size > 0 || newRequests(view).length > 0,
    /** Ends the running hooks; resolves when none is left. */
    async close(): Promise<void> {
      closing.abort();
      await Promise.all([...running.values()].map(({ work }) => work));
    },
  };
}

function requestKey({ id, hook, seq }: NodeUpdateView, generation: number): string {
  return `${generation} ${id} ${seq} ${hook}`;
}

/**
 * Whether a later generation, a later request (`seq`) or a new hook of the same request has withdrawn a running hook. A view
 * of the same request without a hook does not withdraw it, because the rollout may request the hook again.
 */
function isWithdrawn(
  { view, node: { hook, seq = 0 } }: Pick<RunningHook, "view" | "node">,
  generation: number,
  node: NodeUpdateView,
  isNew: boolean,
): boolean {
  if (generation !== view.generation) return generation > view.generation;
  const { seq: present = 0 } = node;
  return present === seq ? isNew && node.hook !== hook : present > seq;
}

/** Runs the hook and sends the answer; resolves when no process of the hook is left. */
async function runAndAnswer(ports: HookPorts, request: HookRequest): Promise<void> {
  const { view, node, signal } = request;
  const { id, hostname: host, hook = "", seq = 0 } = node;
  ports.say(`${host}: ${hook} is begun`);
  const { exit, ...end } = await ports.run(request);
  ports.say(`${host}: ${hook} ${end.ok ? "is done" : `failed: ${end.message}`}`);
  const owner = { id: view.owner.id, epoch: view.owner.epoch };
  const answer = { node: id, generation: view.generation, seq, owner, hook, ...end };
  try {
    await untilReached(() => ports.answer(answer), signal, ports.sleep);
  } catch (error) {
    // Another bastion has answered, or the hook is over.
    if (codeOf(error) !== "UPDATE_NOT_ASKED") throw error;
  } finally {
    await exit;
  }
}

/** Calls `ask` each second until it reaches a controller. @throws KcoreError of a controller that refuses; the signal's reason */
export async function untilReached(
  ask: () => Promise<unknown>,
  signal: AbortSignal,
  sleep: HookPorts["sleep"] = wait,
): Promise<void> {
  const mayHelp = (error: unknown): boolean => codeOf(error) === "API_UNREACHABLE";
  await retry(ask, { mayHelp, everyMs: 1_000, signal, sleep });
}

function codeOf(error: unknown): string | undefined {
  return error instanceof KcoreError ? error.problems[0]?.code : undefined;
}
