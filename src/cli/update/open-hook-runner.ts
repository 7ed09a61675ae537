import { readFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { createHookRunner, untilReached, type HookRequest, type HookRunner } from "#actions/hook-runner.ts";
import { hookCommand, runHook, type HookEnd, type HookProgram } from "#actions/run-hook.ts";
import type { UpdateView } from "#api/update-schemas.ts";
import { replaceFileSync } from "#base/file.ts";
import { lockFolder } from "#base/lock-folder.ts";
import { wait } from "#base/wait.ts";
import { shippedRoot } from "#engine/project/shipped.ts";
import { KcoreError } from "#errors/problem.ts";
import { verifyStatement } from "#pki/statement.ts";
import { bastionHooks, type BastionHook } from "#rollout/hooks.ts";
import { UpdateStatement, type UpdateSpec } from "#rollout/spec.ts";
import type { Cluster } from "../cluster/open-cluster.ts";
import type { Say } from "../terminal/say.ts";
import { askUpdates } from "./ask-updates.ts";
import { hookAddress, hookNode, type HookNode } from "./hook-node.ts";
import { updateFolder } from "./updates-folder.ts";

export interface HookRunnerOptions {
  readonly cluster: Cluster;
  readonly name: string;
  /** The project whose states are applied, and where commands run. */
  readonly project: string;
  readonly passphraseFile?: string;
  readonly say: Say;
}

/**
 * Opens the hook runner of a rollout; undefined while another process of this machine runs the hooks. A controller names
 * the node whose hook is due; the signed manifest has the hook. Hooks of one node run one at a time. Of two bastions the
 * first answer counts.
 */
export async function openHookRunner(options: HookRunnerOptions): Promise<HookRunner | undefined> {
  const { cluster, name, say } = options;
  const folder = await updateFolder(cluster.folder, name);
  const lock = await lockUpdate(folder);
  if ("taken" in lock) {
    say(`${lock.taken === undefined ? "another process" : `the process ${lock.taken}`} attends to “${name}” already`);
    return undefined;
  }
  const runner = createHookRunner({
    say,
    run: (request) => runRequested(options, folder, request),
    answer: (answer) => askUpdates(cluster, (client) => client.call("answerHook", answer, { id: name })),
    mostAtOnce: (view) => mostAtOnce(options, view),
    sleep: wait,
  });
  const end = new AbortController();
  const isAnnounced = announce(options, end.signal);
  return {
    ...runner,
    async close() {
      end.abort();
      await runner.close();
      if (await isAnnounced)
        await sendAttendance(options, true).catch((error: unknown) =>
          say(`the cluster shows still that this process attends: ${(error as Error).message}`),
        );
      lock.leave();
    },
  };
}

/** Locks the folder of an update for this process; `taken`: another process has locked it, with this id if the pid file has one. */
export async function lockUpdate(
  folder: string,
): Promise<{ readonly leave: () => void } | { readonly taken: number | undefined }> {
  const file = join(folder, "attendant.pid");
  const leave = await lockFolder(folder);
  if (!leave) return { taken: Number.parseInt(await readFile(file, "utf8").catch(() => ""), 10) || undefined };
  replaceFileSync(file, `${process.pid}\n`);
  return { leave };
}

/** Tells the cluster, for its views, that hooks run here. Returns false if that failed; the hooks run all the same. */
async function announce(options: HookRunnerOptions, signal: AbortSignal): Promise<boolean> {
  try {
    await untilReached(() => sendAttendance(options, false), signal);
    return true;
  } catch (error) {
    if (error !== signal.reason) options.say(`the cluster does not show who attends: ${(error as Error).message}`);
    return false;
  }
}

function sendAttendance({ cluster, name }: HookRunnerOptions, ended: boolean): Promise<unknown> {
  const host = hostname() || "localhost";
  return askUpdates(cluster, (client) => client.call("attendUpdate", { host, ended }, { id: name }));
}

/** Runs a requested hook. A hook that cannot run has failed, so that the rollout does not wait for it. */
async function runRequested(
  options: HookRunnerOptions,
  folder: string,
  { view, node, signal }: HookRequest,
): Promise<HookEnd> {
  try {
    const spec = signedSpec(options, view);
    const hook = bastionHooks(spec).find(({ name }) => name === node.hook);
    if (!hook) return { ok: false, message: "the bastion signed no such hook" };
    const { name, kind, limitSeconds, spareSeconds, isGate } = hook;
    const hookedNode = hookNode(options.project, spec, node);
    const program =
      kind === "state" ? stateProgram(options, hook, hookedNode) : await commandProgram(options, hook, hookedNode);
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

/** The spec that the bastion signed under this name: a controller can make this machine run only its commands. @throws KcoreError UPDATE_UNSIGNED */
function signedSpec({ cluster, name }: HookRunnerOptions, { signed }: UpdateView): UpdateSpec {
  const { rootPem, cluster: own } = cluster;
  const statement = UpdateStatement.safeParse(verifyStatement(signed, { rootPem, cluster: own }));
  if (statement.success && statement.data.name === name) return statement.data.spec;
  throw new KcoreError({ code: "UPDATE_UNSIGNED", message: `the signed update is not “${name}”` });
}

/** The most hooks at a time: the signed maxUnavailable. It is for controllers to wait until drained work is back. */
function mostAtOnce(options: HookRunnerOptions, view: UpdateView): number {
  try {
    return signedSpec(options, view).strategy.maxUnavailable;
  } catch {
    // runRequested reports the fault of the signature.
    return 1;
  }
}

type HookInvocation = Pick<HookProgram, "words" | "env">;

async function commandProgram(
  { project, cluster }: HookRunnerOptions,
  { command }: BastionHook,
  node: HookNode,
): Promise<HookInvocation> {
  const { id, name } = node;
  const ask = async (): Promise<string> => (await cluster.ask((client) => client.call("findNode", {}, { id }))).address;
  return hookCommand(command, { id, name, address: await hookAddress(project, node, ask) });
}

/** The hook as `kcore state apply`, which leaves a record. @throws KcoreError NODE_UNKNOWN */
function stateProgram(
  { project, cluster, passphraseFile }: HookRunnerOptions,
  { state, params }: BastionHook,
  { id, name, entry }: HookNode,
): HookInvocation {
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
