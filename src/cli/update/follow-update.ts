import { ApiRefusal, type ApiClient } from "#api/client.ts";
import type { HookRunner } from "#actions/hook-runner.ts";
import type { UpdateView } from "#api/update-schemas.ts";
import { poll } from "#base/wait.ts";
import { KcoreError, exitCodes, type ExitCode } from "#errors/problem.ts";
import { bastionHooks } from "#rollout/hooks.ts";
import { hasEnded } from "#rollout/records.ts";
import { detectCi, escapeForCi } from "#tui/ci.ts";
import { openCluster, type Cluster } from "../cluster/open-cluster.ts";
import { followChanges } from "../cluster/follow.ts";
import type { ClusterFlags, ResultFormat } from "../options.ts";
import { findProject } from "../project/find-project.ts";
import { formatOne, isForPeople } from "../terminal/format-result.ts";
import { createRedraw } from "../terminal/redraw.ts";
import { toStderr, type Say } from "../terminal/say.ts";
import { updateNameOf, type NameFlags, askUpdates, callForUpdate } from "./ask-updates.ts";
import { openHookRunner } from "./open-hook-runner.ts";
import { drawRollout, drawTransition, transitionsOf } from "./draw-rollout.ts";

export type FollowFlags = ClusterFlags & { readonly output: ResultFormat; readonly passphraseFile?: string };

/**
 * `-w`: follows a rollout to its end, and runs its hooks if this machine has the project. Sets the exit code. With
 * `isForHooks`, an update without hooks or a missing project is an error. @throws KcoreError UPDATE_UNKNOWN, USAGE
 */
export async function followOne(
  name: string,
  flags: FollowFlags,
  { isForHooks = false, ...since }: AwaitedChange & { readonly isForHooks?: boolean } = {},
): Promise<void> {
  let say: Say = toStderr;
  const cluster = await openCluster(flags, (text) => say(text));
  const { spec } = await getUpdateSince(cluster, name, since);
  const hooks = bastionHooks(spec).map((hook) => hook.name);
  if (isForHooks && hooks.length === 0)
    throw new KcoreError({
      code: "USAGE",
      message: `“${name}” asks nothing of the bastion: neither its drain nor a gate names a state or a command`,
      hint: `kcore update cluster get ${name} -w`,
    });
  const openHooks = async (shown: Say): Promise<HookRunner | undefined> => {
    say = shown;
    if (hooks.length === 0) return undefined;
    try {
      return await openHookRunner({ ...flags, cluster, name, project: findProject(flags.project), say });
    } catch (error) {
      if (isForHooks || !(error instanceof KcoreError)) throw error;
      say(`no hook runner attends to ${hooks.join(", ")}: ${error.message}`);
      return undefined;
    }
  };
  process.exitCode = await followUpdate(cluster, name, { ...since, output: flags.output, openHooks });
  cluster.close();
}

/** `kcore update cluster run-hooks`. @throws KcoreError UPDATE_UNKNOWN, USAGE */
export async function runUpdateHooks(
  given: string | undefined,
  { filename, ...flags }: FollowFlags & NameFlags,
): Promise<void> {
  await followOne(await updateNameOf(given, { filename }), flags, { isForHooks: true });
}

/** The change that a command made, which may not have reached the controller that answers. */
export interface AwaitedChange {
  /** The generation is at least this one. */
  readonly generation?: number;
  /** The `updatedAt` of the rollout before the change: an end at that time does not count. */
  readonly endedAt?: string;
  /** The phase that is a success; by default `succeeded`. */
  readonly wanted?: UpdateView["phase"];
}

/** Signals that end the view; SIGHUP, too, as a hook must not outlive the process that answers for it. */
const leaveSignals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

export interface FollowUpdateOptions extends AwaitedChange {
  readonly output: ResultFormat;
  /** Opens the hook runner, if there is one to open; `say` shows its lines. */
  readonly openHooks?: (say: Say) => Promise<HookRunner | undefined>;
  /** Replaces process.stdout in tests. */
  readonly stdout?: NodeJS.WriteStream;
}

/**
 * Shows a rollout until it ends: at a terminal redrawn after each change, else as a line for each transition. Ctrl-C ends the view, not the
 * rollout. Returns the exit code: 0 for the wanted end, and for a rollback that an operator requested.
 */
export async function followUpdate(
  cluster: Cluster,
  name: string,
  { output, openHooks, stdout = process.stdout, ...since }: FollowUpdateOptions,
): Promise<ExitCode> {
  const stop = new AbortController();
  let isLeft = false;
  const leave = (): void => {
    isLeft = true;
    stop.abort();
  };
  // The reader of the pipe may close it.
  stdout.once("error", () => stop.abort());
  for (const signal of leaveSignals) process.once(signal, leave);
  const isScreen = stdout.isTTY && isForPeople(output);
  const { show, say } = isScreen ? onScreen(stdout) : inLines(output, stdout);
  const hooks = await openHooks?.(say);
  const fetch = (client: ApiClient): Promise<UpdateView> => pollUpdate(client, name, since);
  const options = { registers: [`update/${name}/`], fetch, signal: stop.signal, say };
  let last: UpdateView | undefined;
  try {
    // Ages on the screen grow without a change, and an answer to a hook may change no watched register.
    const again = isScreen || hooks ? { everyMs: 5_000 } : {};
    for await (const view of followChanges(cluster, { ...options, ...again })) {
      last = view;
      show(view);
      hooks?.startHooks(view);
      if (isOver(view, since) && !hooks?.isNeeded(view)) break;
    }
  } finally {
    for (const signal of leaveSignals) process.off(signal, leave);
    await hooks?.close();
  }
  if (!isLeft) return last && isOver(last, since) ? exitCodeOfEnd(last, since) : exitCodes.done;
  process.stderr.write(`\nThe rollout goes on. To look again: kcore update cluster get ${name} -w\n`);
  return exitCodes.interrupted;
}

function isOver(view: UpdateView, { endedAt, generation = 0 }: AwaitedChange): boolean {
  return hasEnded(view.phase) && view.updatedAt !== endedAt && view.generation >= generation;
}

function exitCodeOfEnd({ phase, rolledBackBy }: UpdateView, { wanted = "succeeded" }: AwaitedChange): ExitCode {
  return phase === wanted || rolledBackBy !== undefined ? exitCodes.done : exitCodes.failed;
}

const pollOptions = { everyMs: 200, limitMs: 10_000 } as const;

/** The update in the awaited generation or a later one; after 10 s as the controller knows it. @throws KcoreError UPDATE_UNKNOWN */
export function getUpdateSince(
  cluster: Pick<Cluster, "ask">,
  name: string,
  since: AwaitedChange = {},
): Promise<UpdateView> {
  return askUpdates(cluster, (client) => pollUpdate(client, name, since));
}

/** Reads the update until it has the awaited generation: until a change has reached a controller, it knows an older one, or none. */
async function pollUpdate(client: ApiClient, name: string, { generation = 0 }: AwaitedChange): Promise<UpdateView> {
  const isUnknown = (error: unknown): boolean =>
    error instanceof ApiRefusal && error.reason === "UPDATE_UNKNOWN" && generation > 0;
  const call = (): Promise<UpdateView> => callForUpdate(client, name);
  const readIfChanged = async (): Promise<UpdateView | undefined> => {
    const view = await call().catch((error: unknown) => {
      if (!isUnknown(error)) throw error;
      return undefined;
    });
    return view && view.generation >= generation ? view : undefined;
  };
  return (await poll(readIfChanged, pollOptions)) ?? call();
}

interface RolloutOutput {
  readonly show: (view: UpdateView) => void;
  readonly say: Say;
}

function onScreen(stdout: NodeJS.WriteStream): RolloutOutput {
  const redraw = createRedraw(stdout);
  let lines: readonly string[] = [];
  return {
    show: (view) => redraw((lines = drawRollout(view, Date.now()))),
    // Redrawn with the lines, since each drawing begins where the last one began.
    say: (text) => redraw(lines, text),
  };
}

function inLines(output: ResultFormat, stdout: NodeJS.WriteStream): RolloutOutput {
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
