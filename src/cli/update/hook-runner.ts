import { readFile, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { hookCommand, runHook, type HookEnd, type HookProgram } from "#actions/run-hook.ts";
import type { AcceptedBodyOf } from "#api/methods.ts";
import type { NodeUpdateView, UpdateView } from "#api/update-schemas.ts";
import { lockFolder } from "#base/lock-folder.ts";
import { retry, wait } from "#base/wait.ts";
import { shippedRoot } from "#engine/project/shipped.ts";
import { KcoreError } from "#errors/problem.ts";
import { verifyStatement } from "#pki/statement.ts";
import { bastionHooks, type BastionHook } from "#rollout/hooks.ts";
import { Statement, type UpdateSpec } from "#rollout/spec.ts";
import type { Cluster } from "../cluster/open-cluster.ts";
import type { Say } from "../terminal/say.ts";
import { askUpdates } from "./ask-updates.ts";
import { hookAddress, hookNode, type HookNode } from "./hook-node.ts";
import { staleViewFilter } from "./stale-view-filter.ts";
import { updateFolder } from "./updates-folder.ts";

export interface HookRunnerOptions {
  readonly cluster: Cluster;
  readonly name: string;
  /** The project whose states are applied, and where commands run. */
  readonly project: string;
  readonly passphraseFile?: string;
  readonly say: Say;
}

/** A hook that a rollout requests; the signal ends it. */
export interface Asked {
  readonly view: UpdateView;
  readonly node: NodeUpdateView;
  readonly signal: AbortSignal;
}

export interface HookPorts {
  readonly run: (asked: Asked) => Promise<HookEnd>;
  /** Sends a controller the answer. @throws KcoreError */
  readonly answer: (answer: AcceptedBodyOf<"answerHook">) => Promise<unknown>;
  readonly mostAtOnce: (view: UpdateView) => number;
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<unknown>;
  readonly say: Say;
}

interface Running extends Pick<Asked, "view" | "node"> {
  readonly stop: AbortController;
  readonly work: Promise<void>;
}

const withdrawn = new Error("it is not asked for any more");

/**
 * Opens the one process of this machine that runs the hooks of a rollout; undefined while another one does. A
 * controller names the node whose hook is due; the signed manifest has the hook. Hooks of one node run one at a time.
 * Of two bastions the first answer counts.
 */
export async function openHookRunner(options: HookRunnerOptions): Promise<HookRunner | undefined> {
  const { cluster, name, say } = options;
  const folder = await updateFolder(cluster.folder, name);
  const place = await takePlace(folder);
  if ("taken" in place) {
    say(`${place.taken === undefined ? "another process" : `the process ${place.taken}`} attends to “${name}” already`);
    return undefined;
  }
  const runner = createHookRunner({
    say,
    run: (asked) => runAsked(options, folder, asked),
    answer: (answer) => askUpdates(cluster, (client) => client.call("answerHook", answer, { id: name })),
    mostAtOnce: (view) => mostAtOnce(options, view),
    sleep: wait,
  });
  const end = new AbortController();
  const attended = tellBegin(options, end.signal);
  return {
    ...runner,
    async close() {
      end.abort();
      await runner.close();
      if (await attended)
        await tellAttendance(options, true).catch((error: unknown) =>
          say(`the cluster shows still that this process attends: ${(error as Error).message}`),
        );
      place.leave();
    },
  };
}

export type HookRunner = ReturnType<typeof createHookRunner>;

/** Runs the hooks that a rollout asks of the bastion, of a node one at a time, and answers. */
export function createHookRunner(ports: HookPorts) {
  const { say } = ports;
  const end = new AbortController();
  const begun = new Set<string>();
  const filter = staleViewFilter();
  let last: UpdateView | undefined;
  /** By node, so that a drain and its end never run at once. */
  const running = new Map<string, Running>();
  const isNew = (node: NodeUpdateView, { generation }: UpdateView): boolean =>
    node.hook !== undefined && !begun.has(requestKey(node, generation));
  const asked = (view: UpdateView): readonly NodeUpdateView[] => view.nodeStatus.filter((node) => isNew(node, view));
  const begin = (view: UpdateView, node: NodeUpdateView): void => {
    const key = requestKey(node, view.generation);
    const stop = new AbortController();
    const signal = AbortSignal.any([end.signal, stop.signal]);
    const work = runAndAnswer(ports, { view, node, signal }).catch((error: unknown) => {
      if (error === withdrawn) {
        say(`${node.hostname}: ${node.hook} is ended: ${withdrawn.message}`);
        // A rollout that requests the hook again gets it.
        begun.delete(key);
      } else if (!signal.aborted) say(`${node.hostname}: ${(error as Error).message}`);
    });
    begun.add(key);
    running.set(node.id, { view, node, stop, work });
    void work.finally(() => {
      running.delete(node.id);
      // Another hook that had to wait for this one begins now, without a new view.
      if (last && !end.signal.aborted) startHooks(last);
    });
  };
  const startHooks = (seen: UpdateView): void => {
    if (!filter.isCurrent(seen)) return;
    const view = { ...seen, nodeStatus: seen.nodeStatus.filter(filter.isCurrentNode) };
    last = view;
    for (const node of view.nodeStatus) {
      const present = running.get(node.id);
      if (present && isWithdrawn(present, view.generation, node, isNew(node, view))) present.stop.abort(withdrawn);
    }
    for (const node of asked(view)) {
      if (running.size >= ports.mostAtOnce(view)) break;
      if (!running.has(node.id)) begin(view, node);
    }
  };
  return {
    /** Begins each hook that the rollout asks for now, once. */
    startHooks,
    /** Whether a hook is running, or still to be run. */
    isNeeded: (view: UpdateView): boolean => running.size > 0 || asked(view).length > 0,
    /** Ends the running hooks. */
    async close(): Promise<void> {
      end.abort();
      await Promise.all([...running.values()].map(({ work }) => work));
    },
  };
}

/** Locks the folder of an update for this process. If another process has locked it, gives its id, if the pid file has one. */
export async function takePlace(
  folder: string,
): Promise<{ readonly leave: () => void } | { readonly taken: number | undefined }> {
  const file = join(folder, "attendant.pid");
  const leave = await lockFolder(folder);
  if (!leave) return { taken: Number.parseInt(await readFile(file, "utf8").catch(() => ""), 10) || undefined };
  await writeFile(file, `${process.pid}\n`, { mode: 0o600 });
  return { leave };
}

function requestKey({ id, hook, seq }: NodeUpdateView, generation: number): string {
  return `${generation} ${id} ${seq} ${hook}`;
}

/**
 * Whether a running hook was withdrawn, by a later request or generation. A hook that is only absent may be requested
 * again when its node is ready; a lagging controller shows earlier requests.
 */
function isWithdrawn(
  { view, node: { hook, seq = 0 } }: Pick<Running, "view" | "node">,
  generation: number,
  node: NodeUpdateView,
  isNew: boolean,
): boolean {
  if (generation !== view.generation) return generation > view.generation;
  const { seq: present = 0 } = node;
  return present === seq ? isNew && node.hook !== hook : present > seq;
}

/** Tells the cluster that hooks run here, for its views. False if that failed: the hooks run all the same. */
async function tellBegin(options: HookRunnerOptions, signal: AbortSignal): Promise<boolean> {
  try {
    await untilReached(() => tellAttendance(options, false), signal);
    return true;
  } catch (error) {
    if (error !== signal.reason) options.say(`the cluster does not show who attends: ${(error as Error).message}`);
    return false;
  }
}

function tellAttendance({ cluster, name }: HookRunnerOptions, ended: boolean): Promise<unknown> {
  const host = hostname() || "localhost";
  return askUpdates(cluster, (client) => client.call("attendUpdate", { host, ended }, { id: name }));
}

/** Runs the hook and sends the answer; resolves when no process of the hook is left. */
async function runAndAnswer(ports: HookPorts, asked: Asked): Promise<void> {
  const { view, node, signal } = asked;
  const { id, hostname: host, hook = "", seq = 0 } = node;
  ports.say(`${host}: ${hook} is begun`);
  const { left, ...end } = await ports.run(asked);
  ports.say(`${host}: ${hook} ${end.ok ? "is done" : `failed: ${end.message}`}`);
  const owner = { id: view.owner.id, epoch: view.owner.epoch };
  const answer = { node: id, generation: view.generation, seq, owner, hook, ...end };
  try {
    await untilReached(() => ports.answer(answer), signal, ports.sleep);
  } catch (error) {
    // Another bastion has answered, or the hook is over.
    if (codeOf(error) !== "UPDATE_NOT_ASKED") throw error;
  } finally {
    await left;
  }
}

/** A hook that cannot run at all has failed, with the reason: the rollout must not wait for it. */
async function runAsked(options: HookRunnerOptions, folder: string, { view, node, signal }: Asked): Promise<HookEnd> {
  try {
    const spec = signedSpec(options, view);
    const hook = bastionHooks(spec).find(({ name }) => name === node.hook);
    if (!hook) return { ok: false, message: "the bastion signed no such hook" };
    const { name, kind, limitSeconds, spareSeconds, isGate } = hook;
    const whose = hookNode(options.project, spec, node);
    const program = kind === "state" ? stateOf(options, hook, whose) : await commandOf(options, hook, whose);
    const file = `${encodeURIComponent(node.id)}-${name.replaceAll(" ", "-")}-${view.generation}-${node.seq}.log`;
    const isRepeated = isGate && kind === "command";
    const limits = { limitSeconds, spareSeconds, isRepeated, signal };
    const end = await runHook({ ...program, ...limits, cwd: options.project, log: join(folder, file) });
    return end.message === undefined ? end : { ...end, message: end.message.slice(0, 1_500) };
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof KcoreError)) throw error;
    return { ok: false, message: error.message };
  }
}

/** The spec that the bastion signed: a controller cannot make this machine run another command. @throws KcoreError UPDATE_UNSIGNED */
function signedSpec({ cluster, name }: HookRunnerOptions, { signed }: UpdateView): UpdateSpec {
  const { rootPem, cluster: own } = cluster;
  const said = Statement.safeParse(verifyStatement(signed, { rootPem, cluster: own }));
  if (said.success && said.data.name === name) return said.data.spec;
  throw new KcoreError({ code: "UPDATE_UNSIGNED", message: `the signed update is not “${name}”` });
}

/** The signed maxUnavailable bounds the hooks at a time. Controllers alone see to it that work is back before the next drain. */
function mostAtOnce(options: HookRunnerOptions, view: UpdateView): number {
  try {
    return signedSpec(options, view).strategy.maxUnavailable;
  } catch {
    // runAsked reports the fault of the signature.
    return 1;
  }
}

type Program = Pick<HookProgram, "words" | "env">;

async function commandOf(
  { project, cluster }: HookRunnerOptions,
  { command }: BastionHook,
  node: HookNode,
): Promise<Program> {
  const { id, name } = node;
  const ask = async (): Promise<string> => (await cluster.ask((client) => client.call("findNode", {}, { id }))).address;
  return hookCommand(command, { id, name, address: await hookAddress(project, node, ask) });
}

/** `kcore state apply`, so it leaves a record. @throws KcoreError NODE_UNKNOWN */
function stateOf(
  { project, cluster, passphraseFile }: HookRunnerOptions,
  { state, params }: BastionHook,
  { id, name, entry }: HookNode,
): Program {
  if (!entry)
    throw new KcoreError({
      code: "NODE_UNKNOWN",
      message: `“${name}” (${id}) is not in the roster of ${project}, so no state can be applied to it`,
    });
  const usual = ["--wait", "--yes", "--output", "plain", "--project", project, "--context", cluster.context];
  const passphrase = passphraseFile === undefined ? [] : ["--passphrase-file", passphraseFile];
  const given = Object.keys(params).length === 0 ? [] : ["--params", JSON.stringify(params)];
  const program = join(shippedRoot(), "bin/kcore");
  return { words: [program, "state", "apply", state, "--on", entry.name, ...usual, ...given, ...passphrase], env: {} };
}

/** Asks until a controller can be reached. @throws KcoreError as the controller refuses */
async function untilReached(
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
