import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { omitUndefined } from "#base/omit-undefined.ts";
import { readInput } from "#engine/orchestrate/execute-run.ts";
import { planForNodes } from "#engine/orchestrate/prepare.ts";
import type { RunRequest } from "#engine/orchestrate/run-types.ts";
import { fromJson } from "#engine/orchestrate/values-json.ts";
import { KcoreError } from "#errors/problem.ts";
import { unpackProject } from "#queue/archive.ts";
import { connectQueue } from "#queue/connect-queue.ts";
import { keys } from "#queue/keys.ts";
import { memberKey, openFrom, ownMember, sealFor } from "#queue/member-key.ts";
import type { RunPackage } from "#queue/messages.ts";
import type { QueueSettings } from "#queue/queue-settings.ts";
import type { Reach } from "#queue/reach.ts";
import type { ServedRun } from "#queue/serve-node.ts";
import { type OpenRun, serve } from "#queue/serve.ts";
import { kcoreHome } from "../process/kcore-home.ts";
import { loadDependencies } from "../process/load-run-parts.ts";
import { kcoreVersion } from "../process/version.ts";

export interface WorkerOptions {
  readonly project: string;
  readonly settings: QueueSettings;
  readonly reach: Reach;
  readonly concurrency: number;
  readonly say: (text: string) => void;
  /** Aborted when no further node is to be taken. */
  readonly signal: AbortSignal;
}

/** Takes nodes of runs from the project's queue until the signal. @throws KcoreError as connectQueue; QUEUE_KEY */
export async function serveRuns({ project, settings, reach, concurrency, say, signal }: WorkerOptions): Promise<void> {
  const home = kcoreHome();
  const { members } = settings;
  const own = await memberKey(home, { make: false });
  const { name } = await ownMember(members, own, "worker");
  const coordinators = members.filter(({ roles }) => roles.includes("coordinator"));
  const open = await loadDependencies();
  const { readSecret } = open({
    header: { id: "", nonce: "", who: "", created: 0, request: {} as RunRequest },
    io: silent(),
    project,
  }).deps;
  const { redis, connect, close } = await connectQueue(settings, { project, readSecret });
  const version = kcoreVersion();
  const openRun = async (run: string, part: number): Promise<OpenRun | undefined> => {
    const bytes = await redis.getBuffer(keys.package(run, part));
    const opened = bytes && (await openFrom(coordinators, own, `run ${run} ${part}`, bytes));
    if (bytes && !opened) say(`run ${run} is not from a coordinator that kcore.yaml names, or not for this machine`);
    if (!opened) return undefined;
    const given = opened.body as RunPackage;
    say(`run ${run} of ${given.who} at ${opened.member.name}`);
    let served: ReturnType<typeof serveRun> | undefined;
    return {
      key: Buffer.from(given.key, "base64"),
      served: () => (served ??= serveRun(given)),
      close: async () => (await served?.catch(() => undefined))?.close(),
    };
  };
  const serveRun = async (given: RunPackage): Promise<ServedRun & { readonly close: () => Promise<void> }> => {
    if (given.version !== version)
      throw new KcoreError({
        code: "WORKER_DIFFERS",
        message: `worker ${name} has kcore ${version}, the run's coordinator ${given.version}`,
        hint: "install the same version on both",
      });
    const hash = given.project;
    const bytes = await redis.getBuffer(keys.project(hash));
    const opened = bytes && (await openFrom(coordinators, own, `project ${hash}`, bytes));
    if (!opened)
      throw new KcoreError({ code: "QUEUE_ARCHIVE", message: "the run's project is not in the queue any more" });
    const { archive } = opened.body as { readonly archive: string };
    const unpacked = await unpackProject(join(home, "queue", "projects"), {
      hash,
      bytes: Buffer.from(archive, "base64"),
    });
    const request = fromJson(given.request) as RunRequest;
    const header = { id: given.runId, nonce: given.nonce, who: given.who, created: given.began, request };
    const file = join(home, "queue", "runs", `${given.runId}-${given.part}.json`);
    mkdirSync(join(home, "queue", "runs"), { recursive: true, mode: 0o700 });
    writeFileSync(file, given.factTerms ?? "{}", { mode: 0o600 });
    const { deps, close } = open({ header, io: silent(), project: unpacked, factTerms: { file, isResumed: true } });
    const { began, revision, dirty } = given;
    // The passphrase of the CA never leaves the coordinator, so a worker unlocks no disk.
    const { unlock: _, ...able } = deps;
    const all = { ...able, began, sources: { onlyKept: true }, ...omitUndefined({ revision, dirty }) };
    const input = await readInput(request, all);
    return {
      plan: await planForNodes(input),
      request: input.settled,
      deps: all,
      readSecret: input.catalogue.readSecret,
      close,
    };
  };
  try {
    await serve({
      redis,
      connect,
      reach,
      concurrency,
      describe: (id) => sealFor(coordinators, own, "worker", { id, name, version, reach }),
      openRun,
      say,
      signal,
    });
  } finally {
    close();
  }
}

/** A run's means before a node is taken: without a view. */
function silent() {
  return {
    emit: () => undefined,
    stop: new AbortController().signal,
    abort: new AbortController().signal,
    ask: ({ text }: { readonly text: string }) =>
      Promise.reject(new KcoreError({ code: "QUESTION_UNANSWERED", message: `no operator can answer here: ${text}` })),
    earlier: [],
  };
}
