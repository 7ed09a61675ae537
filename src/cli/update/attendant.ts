import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { NodeUpdateView, UpdateView } from "#api/update-schemas.ts";
import { KcoreError } from "#errors/problem.ts";
import { shippedRoot } from "#engine/project/shipped.ts";
import { verifyStatement } from "#pki/statement.ts";
import { Statement, type UpdateSpec } from "#rollout/spec.ts";
import type { Cluster } from "../cluster/open-cluster.ts";
import type { Say } from "../terminal/say.ts";
import { askUpdates } from "./ask-updates.ts";
import { takePlace } from "./attendant-place.ts";
import { attendedAddress, attendedNode, type AttendedNode } from "./attended-node.ts";
import { hooksOf, type Hook } from "./hooks.ts";
import { latestWord } from "./latest-word.ts";
import { runHook, type HookEnd } from "./run-hook.ts";
import { updateFolder } from "./updates-folder.ts";

export interface AttendantOptions {
  readonly cluster: Cluster;
  readonly name: string;
  /** Whose states are applied, and where commands are run. */
  readonly project: string;
  readonly passphraseFile?: string;
  readonly say: Say;
}

/** Does what a rollout asks of the bastion, and answers. */
export interface Attendant {
  /** How the rollout stands: what it asks now is begun, once. */
  readonly look: (view: UpdateView) => void;
  /** Something is still to be done, or is being done. */
  readonly isNeeded: (view: UpdateView) => boolean;
  /** Ends what is being done. */
  readonly close: () => Promise<void>;
}

/**
 * Attends to a rollout; undefined where another process of this machine does. Whose hooks it runs is told by a controller, which ones by
 * what the bastion signed alone; of one node one at a time, until it has ended. Two attendants on two machines do no harm as long as their hooks may be done twice: the first answer counts.
 */
export async function openAttendant(options: AttendantOptions): Promise<Attendant | undefined> {
  const { cluster, name, say } = options;
  const folder = await updateFolder(cluster.folder, name);
  const place = await takePlace(folder);
  if ("taken" in place) {
    say(`${place.taken === undefined ? "another process" : `the process ${place.taken}`} attends to “${name}” already`);
    return undefined;
  }
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
    const work = attend(options, { view, node, folder, signal }).catch((error: unknown) => {
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
      // What had to wait for it waits for no news.
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
      if (running.size >= mostAtOnce(options, view)) break;
      if (!running.has(node.id)) begin(view, node);
    }
  };
  return {
    look,
    isNeeded: (view) => running.size > 0 || asked(view).length > 0,
    async close() {
      end.abort();
      await Promise.all([...running.values()].map(({ work }) => work));
      place.leave();
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
 * Whether what is being done is not asked for any more. What is not asked for at the moment may be again, when its node is well; and a controller
 * that lags behind tells what was before.
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

interface Asked {
  readonly view: UpdateView;
  readonly node: NodeUpdateView;
  readonly folder: string;
  readonly signal: AbortSignal;
}

/** Over when nothing of it runs any more. */
async function attend(options: AttendantOptions, asked: Asked): Promise<void> {
  const { hook, hostname } = asked.node;
  options.say(`${hostname}: ${hook} is begun`);
  const { left, ...end } = await carryOut(options, asked);
  options.say(`${hostname}: ${hook} ${end.ok ? "is done" : `failed: ${end.message}`}`);
  try {
    await answer(options, asked, end);
  } finally {
    await left;
  }
}

async function answer({ cluster, name }: AttendantOptions, { view, node, signal }: Asked, end: HookEnd): Promise<void> {
  const { id, hook = "", seq = 0 } = node;
  const owner = { id: view.owner.id, epoch: view.owner.epoch };
  const said = { node: id, generation: view.generation, seq, owner, hook, ...end };
  for (;;) {
    try {
      await askUpdates(cluster, (client) => client.call("answerHook", said, { id: name }));
      return;
    } catch (error) {
      const code = error instanceof KcoreError ? error.problems[0]?.code : undefined;
      // Somebody else has answered, or its time is over.
      if (code === "UPDATE_NOT_ASKED") return;
      if (code !== "API_UNREACHABLE") throw error;
      await sleep(1_000, undefined, { signal });
    }
  }
}

/** What cannot be done at all has failed, and why is told: the rollout must not wait for it. */
async function carryOut(options: AttendantOptions, asked: Asked): Promise<HookEnd> {
  const { signal, node } = asked;
  try {
    const spec = signedSpec(options, asked.view);
    const hook = hooksOf(spec).get(node.hook ?? "");
    if (!hook) return { ok: false, message: "the bastion signed no such hook" };
    const whose = attendedNode(options.project, spec, node);
    const program = hook.state === undefined ? await commandOf(options, hook, whose) : stateOf(options, hook, whose);
    const log = join(
      asked.folder,
      `${encodeURIComponent(node.id)}-${hook.name.replaceAll(" ", "-")}-${asked.view.generation}-${node.seq}.log`,
    );
    const end = await runHook({
      ...program,
      cwd: options.project,
      log,
      limitSeconds: hook.limitSeconds,
      spareSeconds: hook.spareSeconds,
      isRepeated: hook.isGate && hook.state === undefined,
      signal,
    });
    return end.message === undefined ? end : { ...end, message: end.message.slice(0, 1_500) };
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof KcoreError)) throw error;
    return { ok: false, message: error.message };
  }
}

/** A controller may say anything: commands are run on this machine as the bastion signed them. @throws KcoreError UPDATE_UNSIGNED */
function signedSpec({ cluster, name }: AttendantOptions, { signed }: UpdateView): UpdateSpec {
  const { rootPem, cluster: own } = cluster;
  const said = Statement.safeParse(verifyStatement(signed, { rootPem, cluster: own }));
  if (said.success && said.data.name === name) return said.data.spec;
  throw new KcoreError({ code: "UPDATE_UNSIGNED", message: `what was signed is not the update “${name}”` });
}

/**
 * Whatever a controller in wrong hands asks for, no more is done at once. That a node has its work back before the next one is drained is the
 * controller's word: there need be nothing that gives it back, and another attendant may have done it.
 */
function mostAtOnce(options: AttendantOptions, view: UpdateView): number {
  try {
    return signedSpec(options, view).strategy.maxUnavailable;
  } catch {
    // What is wrong with it is told when a hook is to be run.
    return 1;
  }
}

type Program = Pick<Parameters<typeof runHook>[0], "command" | "words" | "env">;

async function commandOf(
  { project, cluster }: AttendantOptions,
  { command = "" }: Hook,
  whose: AttendedNode,
): Promise<Program> {
  const { id, name } = whose;
  const address = await attendedAddress(
    project,
    whose,
    async () => (await cluster.ask((client) => client.call("findNode", {}, { id }))).address,
  );
  return {
    command: "/bin/sh",
    words: ["-c", command],
    env: { KCORE_NODE: name, KCORE_NODE_ID: id, KCORE_ADDRESS: address },
  };
}

/** As an operator would apply it, so it leaves a record. @throws KcoreError NODE_UNKNOWN */
function stateOf(
  { project, cluster, passphraseFile }: AttendantOptions,
  { state = "", params }: Hook,
  { id, name, entry }: AttendedNode,
): Program {
  if (!entry)
    throw new KcoreError({
      code: "NODE_UNKNOWN",
      message: `“${name}” (${id}) is not in the roster of ${project}, so no state can be applied to it`,
    });
  return {
    command: join(shippedRoot(), "bin/kcore"),
    words: [
      "state",
      "apply",
      state,
      "--on",
      entry.name,
      "--wait",
      "--yes",
      "--output",
      "plain",
      "--project",
      project,
      "--context",
      cluster.context,
      ...(params === undefined ? [] : ["--params", JSON.stringify(params)]),
      ...(passphraseFile === undefined ? [] : ["--passphrase-file", passphraseFile]),
    ],
    env: {},
  };
}
