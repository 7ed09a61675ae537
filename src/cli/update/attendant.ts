import { hostname } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { UpdateView } from "#api/update-schemas.ts";
import { KcoreError } from "#errors/problem.ts";
import { shippedRoot } from "#engine/project/shipped.ts";
import { verifyStatement } from "#pki/statement.ts";
import { Statement, type UpdateSpec } from "#rollout/spec.ts";
import type { Cluster } from "../cluster/open-cluster.ts";
import type { Say } from "../terminal/say.ts";
import { askUpdates } from "./ask-updates.ts";
import { attendTo, untilReached, type Asked, type Attendant } from "./attend.ts";
import { takePlace } from "./attendant-place.ts";
import { attendedAddress, attendedNode, type AttendedNode } from "./attended-node.ts";
import { hooksOf, type Hook } from "./hooks.ts";
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
  const attendant = attendTo({
    say,
    carryOut: (asked) => carryOut(options, folder, asked),
    answer: (said) => askUpdates(cluster, (client) => client.call("answerHook", said, { id: name })),
    mostAtOnce: (view) => mostAtOnce(options, view),
    sleep: (ms, signal) => sleep(ms, undefined, { signal }),
  });
  const end = new AbortController();
  const told = tellThatBegun(options, end.signal);
  return {
    ...attendant,
    async close() {
      end.abort();
      await attendant.close();
      if (await told)
        await tell(options, true).catch((error: unknown) =>
          say(`the cluster shows still that this process attends: ${(error as Error).message}`),
        );
      place.leave();
    },
  };
}

/** Whether the cluster shows who attends: hooks are carried out all the same. */
async function tellThatBegun(options: AttendantOptions, signal: AbortSignal): Promise<boolean> {
  try {
    await untilReached(
      () => tell(options, false),
      (ms) => sleep(ms, undefined, { signal }),
    );
    return true;
  } catch (error) {
    if (!signal.aborted) options.say(`the cluster does not show who attends: ${(error as Error).message}`);
    return false;
  }
}

function tell({ cluster, name }: AttendantOptions, ended: boolean): Promise<unknown> {
  const host = hostname() || "localhost";
  return askUpdates(cluster, (client) => client.call("attendUpdate", { host, ended }, { id: name }));
}

/** What cannot be done at all has failed, and why is told: the rollout must not wait for it. */
async function carryOut(options: AttendantOptions, folder: string, asked: Asked): Promise<HookEnd> {
  const { signal, node } = asked;
  try {
    const spec = signedSpec(options, asked.view);
    const hook = hooksOf(spec).get(node.hook ?? "");
    if (!hook) return { ok: false, message: "the bastion signed no such hook" };
    const whose = attendedNode(options.project, spec, node);
    const program = hook.state === undefined ? await commandOf(options, hook, whose) : stateOf(options, hook, whose);
    const log = join(
      folder,
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
